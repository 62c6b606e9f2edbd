"""The HorizontalPodAutoscaler: what the user wrote, copied field by field, with the Deployment as its target.

It adds nothing of its own: defaults come from the webhook, so what a user reads in the cache is what is scaled by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from examples.memcached.model import Autoscaling
from examples.memcached.naming import named
from ocf.feature import BooleanGate
from ocf.objects import write_model
from ocf.primitives import hpa

if TYPE_CHECKING:
    from examples.memcached.model import Memcached
    from ocf.feature import Gate
    from ocf.objects import Manifest

__all__ = ["autoscaler", "manifest", "wanted"]


def wanted(cache: Memcached) -> Gate:
    """Return the gate: it is open only if autoscaling is there, and enabled."""
    return BooleanGate(cache.autoscaled)


def autoscaler(cache: Memcached) -> hpa.Resource:
    """Describe the autoscaler.

    Args:
        cache: The owner.
    """
    return hpa.Builder(manifest(cache)).build()


def manifest(cache: Memcached) -> Manifest:
    """Return the autoscaler that a cache asks for; what the cache leaves out is left out.

    Args:
        cache: The owner. Without an upper limit the API server refuses what is returned, and says why.
    """
    scaling = cache.spec.autoscaling or Autoscaling()
    given = {
        "minReplicas": scaling.min_replicas,
        "maxReplicas": scaling.max_replicas or 0,
        "metrics": [write_model(metric) for metric in scaling.metrics or ()] or None,
        "behavior": None if scaling.behavior is None else write_model(scaling.behavior),
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": named(cache),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": cache.metadata.name},
            **{field: value for field, value in given.items() if value is not None},
        },
    }
