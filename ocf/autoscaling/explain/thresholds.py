"""What a metric would have to be for more or fewer replicas, found by asking the algorithm itself.

The algorithm is asked with other values of one metric while everything else stays. The number of replicas moves one way
along the values as long as the ratio stays on one side of 1 and of the tolerance; beyond that it may jump back (a
surge pod is enough). So the values are cut there, and each piece is halved until the last value without and the first
value with a consequence lie next to each other.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from ocf.autoscaling.algorithm import (
    Calculation,
    Decision,
    History,
    Settings,
    Snapshot,
    Unavailable,
)
from ocf.autoscaling.explain.stabilization_holds import Release, first_release
from ocf.autoscaling.explain.what_if import WhatIf

__all__ = ["Blocker", "MetricThresholds", "ValueRange", "metric_thresholds", "with_total"]

_END: Final = 2**56
"""Beyond it, sums of thousandths would leave 64 bits when they become percentages."""

Change = Literal[-1, 0, 1]


class ValueRange(NamedTuple):
    """Values of a metric with the same consequence.

    Args:
        low: The least, thousandths in all.
        high: The most.
        change: Whether fewer (-1), as many (0) or more (1) replicas result than now.
        first: The replicas at `low`.
        last: The replicas at `high`.
    """

    low: int
    high: int
    change: Change
    first: int
    last: int


class Blocker(NamedTuple):
    """Why no value of a metric changes anything in one direction.

    Args:
        decision: What would be decided at the far end of the values.
        release: When that changes by itself; None if it does not.
    """

    decision: Decision
    release: Release | None


class MetricThresholds(NamedTuple):
    """What one metric alone could change now.

    Args:
        position: Which metric, by its place in the spec.
        total: What is measured, thousandths in all pods that count.
        carriers: The pods whose samples are added up to it; none for a metric that is not measured by pod.
        requests: What these pods request, for a utilization.
        spans: All values from 0 up to where nothing more can come of it, in order.
        no_more: Why no value gives more replicas; None if one does.
        no_fewer: Why no value gives fewer; None if one does.
    """

    position: int
    total: int
    pods: tuple[str, ...]
    requests: int | None
    spans: tuple[ValueRange, ...]
    cannot_grow: Blocker | None
    cannot_shrink: Blocker | None

    @property
    def more(self) -> ValueRange | None:
        """The span with more replicas that lies nearest to what is measured; None if there is none."""
        return self._nearest(1)

    @property
    def fewer(self) -> ValueRange | None:
        """The span with fewer replicas that lies nearest to what is measured; None if there is none."""
        return self._nearest(-1)

    def _nearest(self, change: Change) -> ValueRange | None:
        def distance(span: ValueRange) -> int:
            return max(span.low - self.total, self.total - span.high, 0)

        return min((span for span in self.spans if span.change == change), key=distance, default=None)


def metric_thresholds(
    snapshot: Snapshot,
    histories: Sequence[History],
    *,
    settings: Settings,
    now: datetime,
    decision: Decision,
    most: bool = False,
) -> Iterator[MetricThresholds]:
    """Find out for each metric that made a proposal what it would have to be to change something now.

    Args:
        snapshot: What was seen.
        histories: What is remembered; several if it is one of these, and nobody knows which.
        settings: The controller's settings.
        now: The instant of the round.
        decision: What was decided on these.
        most: Of several histories, the one with the most replicas counts for each value, or else that with the fewest.

    Yields:
        One per metric that made a proposal; none where the metrics had no say.
    """
    found = decision.trace.combination
    for position, outcome in enumerate(found.outcomes if found is not None else ()):
        if isinstance(outcome.result, Calculation):
            ask = WhatIf(snapshot, histories, settings, now, most=most)
            yield _Probe(ask, position, outcome.result).lever()


def with_total(snapshot: Snapshot, position: int, carriers: tuple[str, ...], total: int) -> Snapshot:
    """Return a snapshot in which one metric measures something else.

    Args:
        snapshot: What was seen.
        position: Which metric, by its place in the spec.
        carriers: The pods whose samples count; as only their sum does, the first one carries all of it.
        total: Thousandths.
    """
    readings = list(snapshot.metric_values)
    reading = readings[position]
    if isinstance(reading, Mapping):
        values = dict.fromkeys(carriers, 0) | dict.fromkeys(carriers[:1], total)
        readings[position] = {
            name: sample._replace(value=values.get(name, sample.value)) for name, sample in reading.items()
        }
    else:
        readings[position] = (total,)
    return replace(snapshot, metric_values=tuple(readings))


def _carriers(snapshot: Snapshot, position: int, calculated: Calculation) -> tuple[str, ...]:
    """Return the pods whose samples are added up: those of nobody count for an average, not for a utilization."""
    reading, groups = snapshot.metric_values[position], calculated.groups
    if groups is None or not isinstance(reading, Mapping):
        return ()
    dropped = {*groups.unready, *groups.ignored}
    if calculated.utilization is not None:
        dropped |= set(reading) - {pod.name for pod in snapshot.pods}
    return tuple(name for name in reading if name not in dropped)


class _Probe:
    """Asks what results from other values of one metric."""

    def __init__(self, asked: WhatIf, position: int, calculated: Calculation) -> None:
        self._asked, self._snapshot = asked, asked.snapshot
        self._position, self._calculated = position, calculated
        self._carriers = _carriers(asked.snapshot, position, calculated)
        self._known: dict[int, tuple[Decision, History]] = {}

    def _about(self, total: int) -> tuple[Decision, History]:
        if total not in self._known:
            self._known[total] = self._asked.about(with_total(self._snapshot, self._position, self._carriers, total))
        return self._known[total]

    def decision(self, total: int) -> Decision:
        """Return what would be decided."""
        return self._about(total)[0]

    def replicas(self, total: int) -> int:
        return self.decision(total).desired

    def change(self, total: int) -> Change:
        trace = self.decision(total).trace
        difference = trace.desired - (trace.current or 0)
        return 0 if not difference else 1 if difference > 0 else -1

    def result(self, total: int) -> Calculation | None:
        found = self.decision(total).trace.combination
        result = None if found is None else found.outcomes[self._position].result
        return result if isinstance(result, Calculation) else None

    def lever(self) -> MetricThresholds:
        """Return everything about the metric."""
        total = self._measured()
        end = self._end(max(total, 1))
        spans = tuple(self._spans(end))
        changes = {span.change for span in spans}
        return MetricThresholds(
            self._position,
            total,
            self._carriers,
            self._calculated.requests,
            spans,
            None if 1 in changes else self._block(end),
            None if -1 in changes else self._block(0),
        )

    def _measured(self) -> int:
        reading = self._snapshot.metric_values[self._position]
        if isinstance(reading, Mapping | Unavailable):
            return self._calculated.usage or 0
        external = self._snapshot.autoscaler.metrics[self._position].type == "External"
        return sum(reading) if external else reading[0]

    def _end(self, start: int) -> int:
        """Return a value from which on more of it makes no difference."""
        most = self._snapshot.autoscaler.maximum
        end, last = 1, 0.0
        while end < _END:
            result = self.result(end)
            if result is None or not result.ratio >= last:
                return max(end // 2, 1)
            if result.replicas > most and end >= start:
                return end
            last, end = result.ratio, end * 2
        return end

    def _spans(self, end: int) -> Iterator[ValueRange]:
        edges = [0, *self._borders(end), end + 1]
        pending: ValueRange | None = None
        for low, high in self._pieces(edges):
            change = self.change(low)
            if pending is not None and pending.change == change:
                pending = pending._replace(high=high, last=self.replicas(high))
                continue
            if pending is not None:
                yield pending
            pending = ValueRange(low, high, change, self.replicas(low), self.replicas(high))
        if pending is not None:
            yield pending

    def _borders(self, end: int) -> list[int]:
        """Return where the ratio passes the tolerance and 1."""
        tolerated = self.decision(0).trace.tolerances

        def ratio(total: int) -> float:
            result = self.result(total)
            return 0.0 if result is None else result.ratio

        passes: tuple[Callable[[int], bool], ...] = (
            lambda total: ratio(total) >= 1.0 - tolerated.down,
            lambda total: ratio(total) >= 1.0,
            lambda total: ratio(total) > 1.0,
            lambda total: ratio(total) > 1.0 + tolerated.up,
        )
        return sorted({_first(0, end + 1, each) for each in passes})

    def _pieces(self, edges: list[int]) -> Iterator[tuple[int, int]]:
        """Yield runs of values with the same change; between two edges it moves one way."""
        for start, stop in pairwise(edges):
            while start < stop:
                same = self.change(start)
                if self.change(stop - 1) == same:
                    yield start, stop - 1
                    break
                following = self._turn(start, stop - 1)
                yield start, following - 1
                start = following  # noqa: PLW2901 (the rest of the piece)

    def _turn(self, low: int, high: int) -> int:
        """Return where the change stops being what it is at `low`."""
        same = self.change(low)
        return _first(low, high, lambda total: self.change(total) != same)

    def _block(self, total: int) -> Blocker:
        decision, history = self._about(total)
        return Blocker(decision, first_release(decision, history, self._asked.settings))


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the first value from which on something holds; `high` if it does for none below."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
