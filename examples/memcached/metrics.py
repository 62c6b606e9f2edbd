"""What the operator counts, under the names that its users' dashboards know: `memcached_operator_...`.

It is a recorder like any other: a pass tells it what was tried. What it is told about a cache goes when the cache goes.
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
        registry: Where they are registered; one of their own by default.
        clock: Measures how long passes take; the one that the operator is run with.

    Attributes:
        registry: Where they are registered.

    Example:
        >>> from datetime import timedelta
        >>> from ocf.objects import ObjectKey
        >>> metrics, cache = Metrics(), ObjectKey("memcached.c5c3.io/v1alpha1", "Memcached", "my-cache", "default")
        >>> metrics.passed(cache, since=timedelta(0))
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
            "Objects brought to their desired state, or not.",
            ("resource_kind", "result"),
            registry=self.registry,
        )
        self._passes = Counter(
            f"{_PREFIX}_reconcile_total", "Passes over a cache.", (*_OWNER, "result"), registry=self.registry
        )
        self._duration = Histogram(
            f"{_PREFIX}_reconcile_duration_seconds", "How long a pass took.", _OWNER, registry=self.registry
        )
        self._info = Gauge(f"{_PREFIX}_instance_info", "Caches.", (*_OWNER, "image"), registry=self.registry)
        self._desired = Gauge(
            f"{_PREFIX}_instance_replicas_desired", "How many pods there should be.", _OWNER, registry=self.registry
        )
        self._ready = Gauge(f"{_PREFIX}_instance_replicas_ready", "How many serve.", _OWNER, registry=self.registry)

    def attempted(self, attempt: Attempt) -> None:
        """Count an object that was brought to its desired state, or was not.

        Args:
            attempt: What was tried.
        """
        self._resources.labels(attempt.resource.kind, _result(failed=attempt.operation is None)).inc()

    def happened(self, event: Event) -> None:
        """Take an event, which is counted as an attempt already.

        Args:
            event: What was done.
        """

    def observed(self, owner: ObjectKey, conditions: Sequence[Manifest]) -> None:
        """Take conditions, which `ocf.runtime.PrometheusRecorder` shows better.

        Args:
            owner: The owner.
            conditions: All of them.
        """

    def passed(self, owner: ObjectKey, *, since: timedelta, failed: bool = False) -> None:
        """Count a pass.

        Args:
            owner: The cache.
            since: When it began, on the clock that nobody sets.
            failed: Whether it failed.
        """
        self._passes.labels(owner.name, owner.namespace, _result(failed=failed)).inc()
        self._duration.labels(owner.name, owner.namespace).observe((self._clock.elapsed() - since).total_seconds())

    def seen(self, owner: ObjectKey, cache: Memcached, view: View) -> None:
        """Show what is known of a cache.

        Args:
            owner: The cache.
            cache: The same, as it was read.
            view: What was seen of it.
        """
        image, before = cache.spec.image, self._images.get(owner)
        if before not in {None, image}:
            self._info.remove(owner.name, owner.namespace, before)
        self._images[owner] = image
        self._info.labels(owner.name, owner.namespace, image).set(1)
        self._desired.labels(owner.name, owner.namespace).set(view.desired)
        self._ready.labels(owner.name, owner.namespace).set(view.pods.ready if view.pods else 0)

    def forget(self, owner: ObjectKey) -> None:
        """Drop all series of a cache that is gone.

        Args:
            owner: The cache.
        """
        series: tuple[tuple[Counter | Gauge | Histogram, tuple[str, ...]], ...] = (
            (self._passes, (_result(failed=False),)),
            (self._passes, (_result(failed=True),)),
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
