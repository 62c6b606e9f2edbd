"""Metrics of watches, cached objects, paused owners and leader election, computed when Prometheus scrapes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from prometheus_client.core import GaugeMetricFamily

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from ocf.cluster.cache.informer import InformerState

__all__ = ["CacheView", "StateMetrics"]

_OF_WATCH: Final = ("api_version", "kind", "namespace")


class CacheView(Protocol):
    """The part of a cache that the metrics read."""

    @property
    def informers(self) -> Sequence[InformerState]:
        """The state of each watch."""
        ...


class StateMetrics:
    """The state of a process, as metrics.

    Args:
        lease: Name of the lease; empty without leader election, which omits the metric of the election.
    """

    def __init__(self, registry: CollectorRegistry, lease: str) -> None:
        self._lease = lease
        self._cache: CacheView | None = None
        self._paused: Mapping[str, Callable[[], int]] = {}
        registry.register(self)

    def set_term(self, cache: CacheView | None, paused: Mapping[str, Callable[[], int]]) -> None:
        """Set the cache of the current term as the leader, None between terms, and what counts paused owners.

        Args:
            paused: The functions that count the paused owners, by controller.
        """
        self._cache, self._paused = cache, paused

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges without samples, so that a registry rejects duplicates."""
        yield from self._gauges()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges with their present values."""
        healthy, objects, paused, leads = self._gauges()
        for state in self._cache.informers if self._cache is not None else ():
            labels = (state.api_version, state.kind, state.namespace)
            healthy.add_metric(labels, float(not state.problem))
            objects.add_metric(labels, state.objects)
        for controller, count in self._paused.items():
            paused.add_metric((controller,), count())
        if self._lease:
            leads.add_metric((self._lease,), float(self._cache is not None))
        yield from (healthy, objects, paused, leads)

    def _gauges(self) -> tuple[GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily]:
        return (
            GaugeMetricFamily("ocf_watch_healthy", "Whether a watch has no problem: 1, or 0.", labels=_OF_WATCH),
            GaugeMetricFamily("ocf_cached_objects", "Objects of a kind that are held in memory.", labels=_OF_WATCH),
            GaugeMetricFamily("ocf_paused_owners", "Owners for which nothing is written.", labels=("controller",)),
            # Name and help of client-go.
            GaugeMetricFamily(
                "leader_election_master_status",
                "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates"
                " master. 'name' is the string used to identify the lease.",
                labels=("name",),
            ),
        )
