"""Prometheus metrics of the controller, with the names and labels of the built-in controller.

Dashboards and alerts for the built-in controller work with this one. There are two differences: the series of a deleted
autoscaler are dropped, and there are two more gauges: the state of each autoscaler, and their number in each state.

Source: `pkg/controller/podautoscaler/monitor` of Kubernetes 1.36.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from ocf.controllers.durations import Durations

__all__ = ["BUCKETS", "HpaMonitor"]

BUCKETS: Final = tuple(0.001 * 2**power for power in range(15))
"""Upper bounds of the duration histograms, in seconds."""

_PREFIX: Final = "horizontal_pod_autoscaler_controller"
_STATES: Final = "ocf_hpa_controller_autoscalers"
_STATE: Final = "ocf_hpa_controller_autoscaler_state"
_EACH: Final = ("namespace", "hpa_name", "state")
_RECONCILE: Final = ("action", "error")
_METRIC: Final = ("action", "error", "metric_type")

_Labels: TypeAlias = tuple[str, ...]
_Family: TypeAlias = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


class HpaMonitor:
    """The metrics of one controller.

    Args:
        registry: The registry of the metrics; a new one by default.

    Attributes:
        registry: The registry of the metrics.

    Example:
        >>> monitor = HpaMonitor()
        >>> monitor.observe_reconcile("scale_up", "none", 0.004)
        >>> monitor.registry.get_sample_value(
        ...     "horizontal_pod_autoscaler_controller_reconciliations_total", {"action": "scale_up", "error": "none"})
        1
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry: Final = CollectorRegistry() if registry is None else registry
        self._reconciles: defaultdict[_Labels, Durations] = defaultdict(lambda: Durations(BUCKETS))
        self._metrics: defaultdict[_Labels, Durations] = defaultdict(lambda: Durations(BUCKETS))
        self._desired: dict[_Labels, int] = {}
        self._states: dict[_Labels, str] = {}
        self._lock = Lock()
        self.registry.register(self)

    def observe_reconcile(self, action: str, error: str, seconds: float) -> None:
        """Count a reconcile.

        Args:
            action: `scale_up`, `scale_down` or `none`.
            error: `spec`, `internal` or `none`.
            seconds: Its duration.
        """
        with self._lock:
            self._reconciles[action, error].add(seconds)

    def observe_metric(self, action: str, error: str, metric_type: str, seconds: float) -> None:
        """Count the computation of one metric.

        Args:
            action: The proposal compared with the replicas of the status: `scale_up`, `scale_down` or `none`.
            error: `spec`, `internal` or `none`.
            metric_type: The type of the metric as in the spec.
            seconds: The duration of the computation.
        """
        with self._lock:
            self._metrics[action, error, metric_type].add(seconds)

    def set_desired_replicas(self, namespace: str, name: str, replicas: int) -> None:
        """Set the desired replicas of an autoscaler.

        Args:
            replicas: The desired replicas.
        """
        with self._lock:
            self._desired[namespace, name] = replicas

    def set_state(self, namespace: str, name: str, state: str) -> None:
        """Set how the controller treats an autoscaler.

        Args:
            state: `waiting`, `running`, `invalid`, `refused`, `taking_over` or `left_alone`.
        """
        with self._lock:
            self._states[namespace, name] = state

    def forget(self, namespace: str, name: str) -> None:
        """Drop the gauges of a deleted autoscaler."""
        with self._lock:
            self._desired.pop((namespace, name), None)
            self._states.pop((namespace, name), None)

    def forget_all(self) -> None:
        """Drop the gauges of all autoscalers; counters and histograms stay."""
        with self._lock:
            self._desired.clear()
            self._states.clear()

    def describe(self) -> Iterator[_Family]:
        """Yield the families without samples, so that a registry rejects a second set of them."""
        yield from _durations("reconciliations", "reconciliation", "reconciliation", _RECONCILE, {})
        yield from _durations("metric_computation", "metric_computation", "computation of one metric", _METRIC, {})
        yield from self._gauges()

    def collect(self) -> Iterator[_Family]:
        """Yield the families with their current samples."""
        with self._lock:
            families: list[_Family] = [
                *_durations("reconciliations", "reconciliation", "reconciliation", _RECONCILE, self._reconciles),
                *_durations(
                    "metric_computation", "metric_computation", "computation of one metric", _METRIC, self._metrics
                ),
            ]
            number, desired, states, each = self._gauges()
            number.add_metric((), len(self._states))
            for labels, replicas in self._desired.items():
                desired.add_metric(labels, replicas)
            for state, count in sorted(Counter(self._states.values()).items()):
                states.add_metric((state,), count)
            for labels, state in self._states.items():
                each.add_metric((*labels, state), 1)
        yield from (*families, number, desired, states, each)

    def _gauges(self) -> tuple[GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily]:
        wants, known = "How many replicas an autoscaler wants.", "How many autoscalers there are."
        return (
            GaugeMetricFamily(f"{_PREFIX}_num_horizontal_pod_autoscalers", known),
            GaugeMetricFamily(f"{_PREFIX}_desired_replicas", wants, labels=("namespace", "hpa_name")),
            GaugeMetricFamily(_STATES, "How many autoscalers are run, and how many are not.", labels=("state",)),
            GaugeMetricFamily(_STATE, "The state of an autoscaler: 1 for its current one.", labels=_EACH),
        )


def _durations(
    counted: str, timed: str, what: str, labels: Sequence[str], found: Mapping[_Labels, Durations]
) -> tuple[CounterMetricFamily, HistogramMetricFamily]:
    counter = CounterMetricFamily(f"{_PREFIX}_{counted}", f"How often there was a {what}.", labels=labels)
    histogram = HistogramMetricFamily(f"{_PREFIX}_{timed}_duration_seconds", f"How long a {what} takes.", labels=labels)
    for values, durations in found.items():
        counter.add_metric(values, durations.count)
        histogram.add_metric(values, durations.buckets, durations.total)
    return counter, histogram
