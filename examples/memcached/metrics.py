"""Prometheus metrics of the operator, with names that start with `memcached_operator_`.

They are collected by a recorder, which receives every attempt of a reconcile. The series of a cache are removed when
the cache is deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from ocf.concepts import SystemClock

if TYPE_CHECKING:
    from datetime import timedelta

    from examples.memcached.conditions import View
    from examples.memcached.model import Memcached
    from ocf.concepts import Attempt, Clock, Event
    from ocf.objects import Manifest, ObjectKey

__all__ = ["Metrics"]

_PREFIX: Final = "memcached_operator"
_OWNER: Final = ("name", "namespace")


class Metrics:
    """The operator's metrics.

    Args:
        registry: The registry of the metrics; a new one by default.
        clock: Measures the duration of reconciles; must be the clock of the operator.

    Attributes:
        registry: The registry of the metrics.

    Example:
        >>> from datetime import timedelta
        >>> from ocf.objects import ObjectKey
        >>> metrics, cache = Metrics(), ObjectKey("memcached.c5c3.io/v1alpha1", "Memcached", "my-cache", "default")
        >>> metrics.reconciled(cache, since=timedelta(0))
        >>> metrics.registry.get_sample_value(
        ...     "memcached_operator_reconcile_total",
        ...     {"name": "my-cache", "namespace": "default", "result": "success"})
        1.0
    """

    def __init__(self, registry: CollectorRegistry | None = None, clock: Clock | None = None) -> None:
        self.registry: Final = registry or CollectorRegistry()
        self._clock = clock or SystemClock()
        self._images: dict[ObjectKey, str] = {}
        self._resources = Counter(
            f"{_PREFIX}_reconcile_resource_total",
            "Attempts to bring an object to its desired state.",
            ("resource_kind", "result"),
            registry=self.registry,
        )
        self._reconciles = Counter(
            f"{_PREFIX}_reconcile_total", "Reconciles of a cache.", (*_OWNER, "result"), registry=self.registry
        )
        self._duration = Histogram(
            f"{_PREFIX}_reconcile_duration_seconds", "Duration of a reconcile.", _OWNER, registry=self.registry
        )
        self._info = Gauge(f"{_PREFIX}_instance_info", "Caches.", (*_OWNER, "image"), registry=self.registry)
        self._desired = Gauge(
            f"{_PREFIX}_instance_replicas_desired", "Desired number of pods.", _OWNER, registry=self.registry
        )
        self._ready = Gauge(
            f"{_PREFIX}_instance_replicas_ready", "Number of ready pods.", _OWNER, registry=self.registry
        )

    def attempted(self, attempt: Attempt) -> None:
        """Count an attempt to bring an object to its desired state.

        Args:
            attempt: The attempt, successful or not.
        """
        self._resources.labels(attempt.resource.kind, _result(failed=attempt.operation is None)).inc()

    def happened(self, event: Event) -> None:
        """Ignore an event: its attempt is counted already.

        Args:
            event: The event.
        """

    def observed(self, owner: ObjectKey, conditions: Sequence[Manifest]) -> None:
        """Ignore the conditions: `ocf.runtime.PrometheusRecorder` exports them.

        Args:
            owner: The owner.
            conditions: All conditions of the owner.
        """

    def reconciled(self, owner: ObjectKey, *, since: timedelta, failed: bool = False) -> None:
        """Count a reconcile and its duration.

        Args:
            owner: The cache.
            since: Its start, as elapsed time of the monotonic clock.
            failed: Whether it failed.
        """
        self._reconciles.labels(owner.name, owner.namespace, _result(failed=failed)).inc()
        self._duration.labels(owner.name, owner.namespace).observe((self._clock.elapsed() - since).total_seconds())

    def seen(self, owner: ObjectKey, cache: Memcached, view: View) -> None:
        """Export the image and the replica counts of a cache.

        Args:
            owner: The key of the cache.
            cache: The cache as it was read.
            view: The observed state.
        """
        image, before = cache.spec.image, self._images.get(owner)
        if before not in {None, image}:
            self._info.remove(owner.name, owner.namespace, before)
        self._images[owner] = image
        self._info.labels(owner.name, owner.namespace, image).set(1)
        self._desired.labels(owner.name, owner.namespace).set(view.desired)
        self._ready.labels(owner.name, owner.namespace).set(view.pods.ready if view.pods else 0)

    def forget(self, owner: ObjectKey) -> None:
        """Remove all series of a deleted cache.

        Args:
            owner: The cache.
        """
        series: tuple[tuple[Counter | Gauge | Histogram, tuple[str, ...]], ...] = (
            (self._reconciles, (_result(failed=False),)),
            (self._reconciles, (_result(failed=True),)),
            (self._duration, ()),
            (self._info, (self._images.pop(owner, ""),)),
            (self._desired, ()),
            (self._ready, ()),
        )
        for family, further in series:
            with suppress(KeyError):  # never counted
                family.remove(owner.name, owner.namespace, *further)


def _result(*, failed: bool) -> str:
    return "error" if failed else "success"
