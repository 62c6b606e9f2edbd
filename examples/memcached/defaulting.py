"""Defaults that the mutating webhook sets: `default`, a pure function.

These defaults depend on other fields, so the schema cannot express them. `default` never overwrites a value, and it is
idempotent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kubernetes.client import V2HorizontalPodAutoscalerBehavior, V2HPAScalingRules

from examples.memcached.model import ServerSettings
from ocf.autoscaling import metrics

if TYPE_CHECKING:
    from examples.memcached.model import Autoscaling, Memcached

__all__ = ["CPU_UTILIZATION", "SCALE_DOWN_WINDOW_SECONDS", "default"]

CPU_UTILIZATION: Final = 80
SCALE_DOWN_WINDOW_SECONDS: Final = 300
"""Without a window, scaling down quickly causes many cache misses at once, and then scaling up again."""


def default(cache: Memcached) -> Memcached:
    """Return a cache with its defaults set.

    Args:
        cache: The cache as the user wrote it; it is not changed.

    Returns:
        A copy with a replica count (only without autoscaling), server settings, and, while autoscaling is enabled, a
        metric and a behavior.

    Example:
        >>> from examples.memcached.model import Autoscaling, Memcached, MemcachedSpec
        >>> default(Memcached(spec=MemcachedSpec())).spec.replicas
        1
        >>> scaled = Memcached(spec=MemcachedSpec(autoscaling=Autoscaling(enabled=True, max_replicas=5)))
        >>> spec = default(scaled).spec
        >>> spec.replicas, spec.autoscaling.metrics[0].resource.target.average_utilization
        (None, 80)
        >>> default(default(scaled)) == default(scaled)
        True
    """
    spec = cache.spec
    added: dict[str, object] = {}
    if spec.replicas is None and not cache.autoscaled:
        added["replicas"] = 1
    if spec.memcached is None:
        added["memcached"] = ServerSettings()
    if spec.autoscaling is not None and spec.autoscaling.enabled:
        added["autoscaling"] = _scaling(spec.autoscaling)
    return cache.model_copy(update={"spec": spec.model_copy(update=added)})


def _scaling(given: Autoscaling) -> Autoscaling:
    """Return the section with cpu as its metric and slow scaling down; an existing behavior is never changed."""
    added: dict[str, object] = {}
    if not given.metrics:
        added["metrics"] = [metrics.cpu(average_utilization=CPU_UTILIZATION)]
    if given.behavior is None:
        slowly = V2HPAScalingRules(stabilization_window_seconds=SCALE_DOWN_WINDOW_SECONDS)
        added["behavior"] = V2HorizontalPodAutoscalerBehavior(scale_down=slowly)
    return given.model_copy(update=added)
