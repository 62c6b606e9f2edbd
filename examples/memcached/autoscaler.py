"""The HorizontalPodAutoscaler: the user's autoscaling section, with the Deployment as its target.

No defaults are added here. The webhook sets them, so the cache always shows the settings that are in effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from examples.memcached.model import Autoscaling
from examples.memcached.naming import labels
from ocf.feature import BooleanGate
from ocf.objects import write_model
from ocf.primitives import hpa

if TYPE_CHECKING:
    from examples.memcached.model import Memcached
    from ocf.feature import Gate
    from ocf.objects import Manifest

__all__ = ["autoscaler", "manifest", "wanted"]


def wanted(cache: Memcached) -> Gate:
    """Return the gate, which is open only if the autoscaling section exists and is enabled."""
    return BooleanGate(cache.autoscaled)


def autoscaler(cache: Memcached) -> hpa.Builder:
    """Return the autoscaler.

    Args:
        cache: The owner.
    """
    return hpa.Builder(manifest(cache))


def manifest(cache: Memcached) -> Manifest:
    """Return the manifest of the autoscaler, which the webhook validates, without fields that the cache does not set.

    Args:
        cache: The owner. Without `maxReplicas` the API server rejects the returned manifest with a reason.
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
        "metadata": {"name": cache.metadata.name, "namespace": cache.metadata.namespace, "labels": labels(cache)},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": cache.metadata.name},
            **{field: value for field, value in given.items() if value is not None},
        },
    }
