"""Prometheus metrics of the controller.

Counters and histograms are those of decisions and their outcomes; the gauges follow the status of each group, and are
dropped with it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import Final, NamedTuple, TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from ocf.controllers.durations import Durations

__all__ = ["DRAIN_BUCKETS", "PROVISIONING_BUCKETS", "GroupSize", "NodeGroupMonitor"]

PROVISIONING_BUCKETS: Final = tuple(10.0 * 2**power for power in range(10))
"""Upper bounds of the time from the request of a machine until its node is ready, in seconds."""

DRAIN_BUCKETS: Final = tuple(1.0 * 2**power for power in range(12))
"""Upper bounds of the duration of drains, in seconds."""

_PREFIX: Final = "ocf_nodegroup"
_GROUP: Final = ("namespace", "nodegroup")

_Labels: TypeAlias = tuple[str, ...]

_COUNTERS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "scaling_decisions": ("How often there was a decision about a node group.", ("decision", "reason")),
    "scale_up": ("How often nodes were added, one or several at once.", ()),
    "scale_down": ("How often nodes were removed, one or several at once.", ()),
    "scale_down_blocked": ("How often a rule began to block the removal of a node.", ("reason",)),
}
_HISTOGRAMS: Final[Mapping[str, tuple[str, tuple[str, ...], tuple[float, ...]]]] = {
    "node_provisioning_duration_seconds": (
        "Time from the request of a machine until its node is ready.",
        (),
        PROVISIONING_BUCKETS,
    ),
    "node_drain_duration_seconds": ("How long a drain takes, by its result.", ("result",), DRAIN_BUCKETS),
}
_GAUGES: Final[Mapping[str, str]] = {
    "desired_nodes": "How many nodes a group should have.",
    "current_nodes": "How many nodes a group has, those that have not joined yet included.",
    "ready_nodes": "How many nodes of a group are ready.",
    "min_nodes": "The fewest nodes of a group.",
    "max_nodes": "The most nodes of a group.",
}


class GroupSize(NamedTuple):
    """Numbers of nodes of a group, in the order of the gauges."""

    desired: int
    current: int
    ready: int
    min: int
    max: int


class NodeGroupMonitor:
    """The metrics of one controller.

    Args:
        registry: The registry of the metrics; a new one by default.

    Attributes:
        registry: The registry of the metrics.

    Example:
        >>> monitor = NodeGroupMonitor()
        >>> monitor.count("scale_up", "default/workers")
        >>> monitor.registry.get_sample_value(
        ...     "ocf_nodegroup_scale_up_total", {"namespace": "default", "nodegroup": "workers"})
        1.0
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry: Final = CollectorRegistry() if registry is None else registry
        self._counts: dict[str, defaultdict[_Labels, float]] = {name: defaultdict(float) for name in _COUNTERS}
        self._durations: dict[str, dict[_Labels, Durations]] = {name: {} for name in _HISTOGRAMS}
        self._sizes: dict[_Labels, GroupSize] = {}
        self._lock = Lock()
        self.registry.register(self)

    def count(self, counter: str, group: str, *labels: str) -> None:
        """Add one to a counter.

        Args:
            counter: `scaling_decisions`, `scale_up`, `scale_down` or `scale_down_blocked`.
            group: The group, `default/workers`.
            labels: The values of the other labels of the counter.
        """
        with self._lock:
            self._counts[counter][*_split(group), *labels] += 1

    def observe(self, histogram: str, group: str, *labels: str, seconds: float) -> None:
        """Add a duration to a histogram.

        Args:
            histogram: `node_provisioning_duration_seconds` or `node_drain_duration_seconds`.
            group: The group, `default/workers`.
            labels: The values of the other labels of the histogram.
            seconds: The duration; a negative one, after a clock was set back, counts as 0.
        """
        with self._lock:
            known = self._durations[histogram]
            found = known.setdefault((*_split(group), *labels), Durations(_HISTOGRAMS[histogram][2]))
            found.add(seconds)

    def set_sizes(self, sizes: Mapping[str, GroupSize]) -> None:
        """Set the gauges of all groups; those of other groups are dropped.

        Args:
            sizes: The numbers of each group by its name.
        """
        with self._lock:
            self._sizes = {_split(group): size for group, size in sizes.items()}

    def describe(self) -> Iterator[Metric]:
        """Yield the families without samples, so that a registry rejects a second set of them."""
        yield from (*self._counters({}), *self._histograms({}), *self._gauges({}))

    def collect(self) -> Iterator[Metric]:
        """Yield the families with their current samples."""
        with self._lock:
            found = [
                *self._counters(self._counts),
                *self._histograms(self._durations),
                *self._gauges(self._sizes),
            ]
        yield from found

    def _counters(self, counts: Mapping[str, Mapping[_Labels, float]]) -> Iterator[CounterMetricFamily]:
        for name, (text, labels) in _COUNTERS.items():
            family = CounterMetricFamily(f"{_PREFIX}_{name}", text, labels=(*_GROUP, *labels))
            for values, count in counts.get(name, {}).items():
                family.add_metric(values, count)
            yield family

    def _histograms(self, found: Mapping[str, Mapping[_Labels, Durations]]) -> Iterator[HistogramMetricFamily]:
        for name, (text, labels, _) in _HISTOGRAMS.items():
            family = HistogramMetricFamily(f"{_PREFIX}_{name}", text, labels=(*_GROUP, *labels))
            for values, durations in found.get(name, {}).items():
                family.add_metric(values, durations.buckets, durations.total)
            yield family

    def _gauges(self, sizes: Mapping[_Labels, Sequence[int]]) -> Iterator[GaugeMetricFamily]:
        for index, (name, text) in enumerate(_GAUGES.items()):
            family = GaugeMetricFamily(f"{_PREFIX}_{name}", text, labels=_GROUP)
            for values, numbers in sizes.items():
                family.add_metric(values, numbers[index])
            yield family


def _split(group: str) -> tuple[str, str]:
    namespace, _, name = group.partition("/")
    return namespace, name
