"""Metrics of watches, cached objects, paused owners, external systems and leader election, computed at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from prometheus_client.core import GaugeMetricFamily

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from ocf.cluster.cache.informer_state import InformerState
    from ocf.component.external.calls import ExternalCalls
    from ocf.concepts import Clock

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
        lease: Name of the lease of a leader; empty without leader election, which omits the metric of the election.
        clock: The clock of the process.
    """

    def __init__(self, registry: CollectorRegistry, lease: str, clock: Clock) -> None:
        self._lease, self._clock = lease, clock
        self._caches: Sequence[CacheView] = ()
        self._waiting: Sequence[CacheView] = ()
        self._paused: Mapping[str, Callable[[], int]] = {}
        self._external: ExternalCalls | None = None
        registry.register(self)

    def set_waiting(self, caches: Sequence[CacheView]) -> None:
        """Set the caches that are filled while the process waits for the lease."""
        self._waiting = caches

    def set_term(
        self,
        caches: Sequence[CacheView],
        paused: Mapping[str, Callable[[], int]],
        external: ExternalCalls | None = None,
    ) -> None:
        """Set the caches of the current term as the leader, none between terms, and what counts paused owners.

        Args:
            paused: The functions that count the paused owners, by controller.
            external: The external calls of the term.
        """
        self._caches, self._paused, self._external = caches, paused, external

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges without samples, so that a registry rejects duplicates."""
        yield from self._gauges()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges with their present values."""
        healthy, objects, paused, calls, answers, leads = self._gauges()
        # Owners that a label selector selects are watched apart from the other objects of their kind.
        watched: dict[tuple[str, str, str], list[InformerState]] = {}
        for state in (state for cache in self._caches or self._waiting for state in cache.informers):
            watched.setdefault((state.api_version, state.kind, state.namespace), []).append(state)
        for labels, states in watched.items():
            healthy.add_metric(labels, float(not any(one.problem or one.single_problem for one in states)))
            objects.add_metric(labels, sum(state.objects for state in states))
        for controller, count in self._paused.items():
            paused.add_metric((controller,), count())
        external = self._external.targets(self._clock.elapsed()) if self._external is not None else {}
        for target, (running, is_answering) in external.items():
            calls.add_metric((target,), running)
            answers.add_metric((target,), float(is_answering))
        if self._lease:
            leads.add_metric((self._lease,), float(bool(self._caches)))
        yield from (healthy, objects, paused, calls, answers, leads)

    def _gauges(self) -> tuple[GaugeMetricFamily, ...]:
        return (
            GaugeMetricFamily("ocf_watch_healthy", "Whether a watch has no problem: 1, or 0.", labels=_OF_WATCH),
            GaugeMetricFamily("ocf_cached_objects", "Objects of a kind that are held in memory.", labels=_OF_WATCH),
            GaugeMetricFamily("ocf_paused_owners", "Owners for which nothing is written.", labels=("controller",)),
            GaugeMetricFamily(
                "ocf_external_calls", "Calls of external systems that are under way.", labels=("target",)
            ),
            GaugeMetricFamily(
                "ocf_external_target_healthy",
                "Whether the last call of an external system was answered: 1, or 0.",
                labels=("target",),
            ),
            # Name and help of client-go.
            GaugeMetricFamily(
                "leader_election_master_status",
                "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates"
                " master. 'name' is the string used to identify the lease.",
                labels=("name",),
            ),
        )
