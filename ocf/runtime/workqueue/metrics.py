"""Prometheus metrics of work queues and their workers.

Names, help, buckets and meaning are those of controller-runtime (`pkg/internal/metrics`, `pkg/metrics/workqueue.go`),
so existing dashboards work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Protocol
from weakref import WeakSet

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily

from ocf.errors import ConfigError

__all__ = ["QueueMetrics", "QueueSeries", "QueueView"]

_LABELS: Final = ("name", "controller")
_SECONDS: Final = tuple(10.0**power for power in range(-8, 4))
_RECONCILE_SECONDS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60),
)


class QueueView(Protocol):
    """The part of a queue that the metrics read."""

    @property
    def name(self) -> str:
        """Name of the queue."""
        ...

    @property
    def depths(self) -> Mapping[int, int]:
        """Number of waiting keys of each priority."""
        ...

    @property
    def durations(self) -> tuple[float, ...]:
        """How many seconds each key in process has been processed so far, the longest first."""
        ...


class QueueSeries:
    """The metrics of one queue."""

    def __init__(self, metrics: QueueMetrics, name: str) -> None:
        self._adds = metrics.adds.labels(name, name)
        self._retries = metrics.retries.labels(name, name)
        self._waited = metrics.waited.labels(name, name)
        self._worked = metrics.worked.labels(name, name)

    def added(self) -> None:
        """Count an add."""
        self._adds.inc()

    def retried(self) -> None:
        """Count a retry."""
        self._retries.inc()

    def started(self, waited: float) -> None:
        """Observe for how many seconds a key waited before processing."""
        self._waited.observe(waited)

    def finished(self, took: float) -> None:
        """Observe for how many seconds a key was processed."""
        self._worked.observe(took)


class QueueMetrics:
    """The metrics of the queues of a process, and of their workers.

    Args:
        registry: The registry of the metrics.

    Raises:
        ConfigError: If the registry has these metrics already: queues of one registry share one `QueueMetrics`.

    Example:
        >>> registry = CollectorRegistry()
        >>> metrics = QueueMetrics(registry)
        >>> metrics.reconciled("shop", "success", 0.02)
        >>> registry.get_sample_value("controller_runtime_reconcile_total", {"controller": "shop", "result": "success"})
        1.0
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._queues: WeakSet[QueueView] = WeakSet()
        try:
            self.adds: Final = Counter(
                "workqueue_adds", "Total number of adds handled by workqueue", _LABELS, registry=registry
            )
            self.retries: Final = Counter(
                "workqueue_retries", "Total number of retries handled by workqueue", _LABELS, registry=registry
            )
            self.waited: Final = Histogram(
                "workqueue_queue_duration_seconds",
                "How long in seconds an item stays in workqueue before being requested",
                _LABELS,
                registry=registry,
                buckets=_SECONDS,
            )
            self.worked: Final = Histogram(
                "workqueue_work_duration_seconds",
                "How long in seconds processing an item from workqueue takes.",
                _LABELS,
                registry=registry,
                buckets=_SECONDS,
            )
            self._reconciles = Counter(
                "controller_runtime_reconcile",
                "Total number of reconciliations per controller",
                ("controller", "result"),
                registry=registry,
            )
            self._took = Histogram(
                "controller_runtime_reconcile_time_seconds",
                "Length of time per reconciliation per controller",
                ("controller",),
                registry=registry,
                buckets=_RECONCILE_SECONDS,
            )
            registry.register(self)
        except ValueError as error:
            raise ConfigError(
                "metrics of queues: the registry has them already; pass one QueueMetrics to all queues"
            ) from error

    def follow(self, queue: QueueView) -> QueueSeries:
        """Add a queue to the metrics, for as long as it exists."""
        self._queues.add(queue)
        return QueueSeries(self, queue.name)

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        """Count a reconcile.

        Args:
            controller: Name of the controller.
            result: `success`, `error` or `requeue_after`.
            seconds: Its duration.
        """
        self._reconciles.labels(controller, result).inc()
        self._took.labels(controller).observe(seconds)

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Return the gauges without samples, so that a registry rejects duplicates."""
        return self._gauges()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges with their present values."""
        depth, longest, unfinished = self._gauges()
        for queue in sorted(self._queues, key=lambda queue: queue.name):
            labels, durations = (queue.name, queue.name), queue.durations
            for priority, waiting in queue.depths.items():
                depth.add_metric((*labels, str(int(priority))), waiting)
            longest.add_metric(labels, max(durations, default=0.0))
            unfinished.add_metric(labels, sum(durations))
        yield from (depth, longest, unfinished)

    def _gauges(self) -> tuple[GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily]:
        return (
            GaugeMetricFamily(
                "workqueue_depth",
                "Current depth of workqueue by workqueue and priority",
                labels=(*_LABELS, "priority"),
            ),
            GaugeMetricFamily(
                "workqueue_longest_running_processor_seconds",
                "How many seconds has the longest running processor for workqueue been running.",
                labels=_LABELS,
            ),
            GaugeMetricFamily(
                "workqueue_unfinished_work_seconds",
                "How many seconds of work has been done that is in progress and hasn't been observed by work_duration.",
                labels=_LABELS,
            ),
        )
