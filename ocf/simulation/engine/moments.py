"""What the autoscaler reads at one instant, kept as cheaply as possible.

Most syncs need counts only. A snapshot of all pods is built where a sync needs one, or when the explanation of an
action is read, perhaps long after the run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import overload

from ocf.autoscaling.algorithm import (
    Autoscaler,
    Decision,
    History,
    Pod,
    Recommendation,
    Sample,
    Scale,
    Settings,
    Snapshot,
    Status,
    Unavailable,
    decide,
)
from ocf.autoscaling.algorithm.history import ScaleEvent
from ocf.autoscaling.algorithm.snapshot import MetricValues
from ocf.autoscaling.algorithm.status import HpaCondition
from ocf.schema.metric_sources import METRIC_SOURCES
from ocf.simulation.engine.clock import Clock
from ocf.simulation.engine.meters import Meter
from ocf.simulation.engine.scrapes import Scrape

__all__ = ["Explained", "Memory", "Moment", "Subject"]

# The text of a 503, with which the API server answers while the metrics API behind it is not available.
_REFUSED = "the server is currently unable to handle the request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is the same in all syncs of a run, until the HPA is edited.

    Args:
        first: Position of the first of the meters among those of the pipeline.
    """

    autoscaler: Autoscaler
    settings: Settings
    meters: tuple[Meter, ...]
    window: timedelta
    clock: Clock
    first: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the controller carries from sync to sync.

    Args:
        recommendations: Time and replicas of the recommendations; None before the first sync.
    """

    conditions: tuple[HpaCondition, ...]
    desired: int
    recommendations: tuple[tuple[int, int], ...] | None
    scale_ups: tuple[ScaleEvent, ...]
    scale_downs: tuple[ScaleEvent, ...]

    @classmethod
    def empty(cls) -> "Memory":
        """Return the memory of an HPA that has just been created."""
        return cls(conditions=(), desired=0, recommendations=None, scale_ups=(), scale_downs=())

    def history(self, clock: Clock) -> History:
        """Return the history for a sync."""
        known = self.recommendations
        recommendations = None if known is None else tuple(Recommendation(count, clock.at(at)) for at, count in known)
        return History(recommendations, self.scale_ups, self.scale_downs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """An instant at which the autoscaler syncs.

    Args:
        now: The instant, in microseconds since the start.
        settled: The pods whose samples are alike.
        unsettled: The other pods that are not being deleted.
        terminating: The pods that are being deleted, as they were before.
        scrape: The measurement that can be read.
    """

    now: int
    replicas: int
    settled: tuple[Pod, ...]
    unsettled: tuple[Pod, ...]
    terminating: tuple[Pod, ...]
    scrape: Scrape
    outage: bool
    memory: Memory

    def decide(self, subject: Subject) -> tuple[Decision, History]:
        """Run a full sync."""
        history = self.memory.history(subject.clock)
        now = subject.clock.at(self.now)
        return decide(self.snapshot(subject), history, settings=subject.settings, now=now), history

    def snapshot(self, subject: Subject) -> Snapshot:
        """Return everything that the controller reads."""
        memory, replicas, autoscaler = self.memory, self.replicas, subject.autoscaler
        return Snapshot(
            autoscaler=autoscaler,
            status=Status(current_replicas=replicas, desired_replicas=memory.desired, conditions=memory.conditions),
            scale=Scale(replicas, len(self.settled) + len(self.unsettled), f"app={autoscaler.target}"),
            pods=(*self.settled, *self.unsettled, *(replace(pod, deleted=True) for pod in self.terminating)),
            metric_values=tuple(self._values(subject, position) for position in range(len(subject.meters))),
        )

    def _values(self, subject: Subject, position: int) -> MetricValues:
        meter = subject.meters[position]
        api = METRIC_SOURCES[meter.metric.type].api
        if self.outage:
            return Unavailable(f"unable to fetch metrics from {api} metrics API: {_REFUSED}")
        scrape, clock, at = self.scrape, subject.clock, subject.first + position
        value = scrape.values[at]
        if not meter.per_pod:
            return (value,)
        alike = Sample(value, clock.at(clock.stored(scrape.at)), subject.window)
        found = {pod.name: alike for pod in self.settled if pod.name not in scrape.lost}
        for pod in self.unsettled:
            values = scrape.apart.get(pod.name)
            if values is not None and pod.name not in scrape.lost:
                found[pod.name] = alike._replace(value=values[at])
        return found or Unavailable(f"no metrics returned from {api} metrics API")


class Explained(Sequence[str]):
    """The lines of the explanation of a decision, in the words of `ocf explain`.

    A long run has thousands of actions, and few of them are read; so the lines are rendered on first use.
    """

    __slots__ = ("_lines", "_moment", "_subject")

    def __init__(self, moment: Moment, subject: Subject) -> None:
        self._moment = moment
        self._subject = subject
        self._lines: tuple[str, ...] | None = None

    def _rendered(self) -> tuple[str, ...]:
        if self._lines is None:
            from ocf.autoscaling.explain.explanation import explain_decision
            from ocf.autoscaling.explain.text import render_steps

            decision, history = self._moment.decide(self._subject)
            explained = explain_decision(decision, history, settings=self._subject.settings)
            self._lines = tuple(render_steps(explained))
        return self._lines

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        """Return a line, or some of them."""
        return self._rendered()[index]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the lines."""
        return iter(self._rendered())

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self._rendered())

    def __eq__(self, other: object) -> bool:
        """Return whether another sequence has the same lines."""
        return isinstance(other, Sequence) and self._rendered() == tuple(other)

    def __hash__(self) -> int:
        """Return the hash of the lines."""
        return hash(self._rendered())

    def __repr__(self) -> str:
        """Return the lines as a tuple shows them."""
        return repr(self._rendered())
