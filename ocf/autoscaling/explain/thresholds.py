"""Values of a metric at which the number of replicas changes, found by running the algorithm.

The algorithm runs with other values of one metric while everything else stays the same. The number of replicas is
monotonic in the value as long as the ratio stays on one side of 1 and of the tolerance; across these boundaries it may
jump back (a surge pod is enough). So the values are split at the boundaries, and each piece is bisected until the last
value without a change and the first value with one are adjacent.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from ocf.autoscaling.algorithm import Decision, History, Settings, Snapshot, Unavailable
from ocf.autoscaling.algorithm.replica_calculator import Calculation
from ocf.autoscaling.explain.bisection import first_holding
from ocf.autoscaling.explain.next_syncs import RUN_OUT, HoldRelease, first_release, latest_release
from ocf.autoscaling.explain.what_if import WhatIf

__all__ = ["Blocker", "Change", "LaterChange", "MetricThresholds", "ValueRange", "metric_thresholds", "with_total"]

_END: Final = 2**56
"""Beyond this, the percentage of a sum of thousandths does not fit into 64 bits."""

Change = Literal[-1, 0, 1]


class ValueRange(NamedTuple):
    """A range of values of a metric with the same consequence.

    Args:
        low: The lowest value: the total in thousandths.
        high: The highest value.
        change: Whether fewer (-1), as many (0) or more (1) replicas than now result.
        first: The replicas at `low`.
        last: The replicas at `high`.
    """

    low: int
    high: int
    change: Change
    first: int
    last: int


class Blocker(NamedTuple):
    """The reason why no value of a metric changes the replicas in one direction.

    Args:
        decision: The decision at the extreme end of the values.
        release: The first sync after this one that changes them in that direction, if the metric has the value of
            `decision` from the next sync on; None without one.
    """

    decision: Decision
    release: HoldRelease | None


class LaterChange(NamedTuple):
    """The nearest value of a metric that changes the replicas once windows and policies have run out.

    Args:
        total: The total in thousandths, from the next sync on.
        side: 1 if the values are larger than the measured one, -1 if they are smaller, 0 if it is the measured one.
        release: The first sync with another number of replicas.
        ranges: All ranges of values on that side with that effect, the nearest first; None as the highest value if
            every larger one has it. Empty for the measured value.
    """

    total: int
    side: int
    release: HoldRelease
    ranges: tuple[tuple[int, int | None], ...] = ()


class MetricThresholds(NamedTuple):
    """The changes that one metric alone could cause now.

    Args:
        position: Index of the metric in the spec.
        total: The measured total in thousandths, over all pods that count.
        pods: The pods whose samples are summed; empty for a metric that is not measured per pod.
        requests: Total requests of these pods, for a utilization.
        ranges: All values in order, from 0 to where more makes no difference.
        cannot_grow: Why no value gives more replicas; None if one does.
        cannot_shrink: Why no value gives fewer replicas; None if one does.
        grows_later: The nearest value that gives more replicas at a later sync, if no value does at this one.
        shrinks_later: Likewise for fewer replicas.
    """

    position: int
    total: int
    pods: tuple[str, ...]
    requests: int | None
    ranges: tuple[ValueRange, ...]
    cannot_grow: Blocker | None
    cannot_shrink: Blocker | None
    grows_later: LaterChange | None = None
    shrinks_later: LaterChange | None = None

    @property
    def more(self) -> ValueRange | None:
        """The range with more replicas nearest to the measured total, if any."""
        return self._nearest(1)

    @property
    def fewer(self) -> ValueRange | None:
        """The range with fewer replicas nearest to the measured total, if any."""
        return self._nearest(-1)

    def _nearest(self, change: Change) -> ValueRange | None:
        def distance(values: ValueRange) -> int:
            return max(values.low - self.total, self.total - values.high, 0)

        return min((each for each in self.ranges if each.change == change), key=distance, default=None)


def metric_thresholds(
    snapshot: Snapshot,
    histories: Sequence[History],
    *,
    settings: Settings,
    now: datetime,
    decision: Decision,
    most: bool = False,
    elsewhere: bool = False,
) -> Iterator[MetricThresholds]:
    """Find the thresholds of each metric that made a proposal.

    Args:
        histories: The history of the controller; several if it is not known which one it has.
        settings: The controller's settings.
        now: The instant of the sync.
        decision: The decision on the snapshot.
        most: Use the history with the most replicas for each value; otherwise the one with the fewest.
        elsewhere: Whether another controller runs the autoscaler, so that the releases are the latest possible ones.

    Yields:
        One per metric that made a proposal; none if the metrics were not evaluated.
    """
    found = decision.trace.combination
    for position, outcome in enumerate(found.outcomes if found is not None else ()):
        if isinstance(outcome.result, Calculation):
            what_if = WhatIf(snapshot, histories, settings, now, most=most)
            yield _Probe(what_if, position, outcome.result, elsewhere=elsewhere).thresholds()


def with_total(snapshot: Snapshot, position: int, pods: tuple[str, ...], total: int) -> Snapshot:
    """Return a snapshot with another total of one metric.

    Args:
        position: Index of the metric in the spec.
        pods: The pods whose samples count. Only their sum matters, so the first pod gets all of it.
        total: The total in thousandths.
    """
    readings = list(snapshot.metric_values)
    reading = readings[position]
    if isinstance(reading, Mapping):
        values = dict.fromkeys(pods, 0) | dict.fromkeys(pods[:1], total)
        readings[position] = {
            name: sample._replace(value=values.get(name, sample.value)) for name, sample in reading.items()
        }
    else:
        readings[position] = (total,)
    return replace(snapshot, metric_values=tuple(readings))


def _counted_pods(snapshot: Snapshot, position: int, calculated: Calculation) -> tuple[str, ...]:
    """Return the pods whose samples are summed.

    Samples without a matching pod count for an average, but not for a utilization.
    """
    reading, groups = snapshot.metric_values[position], calculated.groups
    if groups is None or not isinstance(reading, Mapping):
        return ()
    dropped = {*groups.unready, *groups.ignored}
    if calculated.utilization is not None:
        dropped |= set(reading) - {pod.name for pod in snapshot.pods}
    return tuple(name for name in reading if name not in dropped)


class _Probe:
    """Runs the algorithm with other values of one metric."""

    def __init__(self, what_if: WhatIf, position: int, calculated: Calculation, *, elsewhere: bool) -> None:
        self._elsewhere, self._now = elsewhere, what_if.now
        self._what_if, self._snapshot = what_if, what_if.snapshot
        self._position, self._calculated = position, calculated
        self._pods = _counted_pods(what_if.snapshot, position, calculated)
        self._decisions: dict[int, tuple[Decision, History]] = {}

    def _decide(self, total: int) -> tuple[Decision, History]:
        if total not in self._decisions:
            self._decisions[total] = self._what_if.decide(with_total(self._snapshot, self._position, self._pods, total))
        return self._decisions[total]

    def decision(self, total: int) -> Decision:
        """Return the decision for a total."""
        return self._decide(total)[0]

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

    def thresholds(self) -> MetricThresholds:
        """Return the thresholds of the metric."""
        total = self._measured()
        end = self._end(max(total, 1))
        ranges = tuple(self._ranges(end))
        changes = {each.change for each in ranges}
        return MetricThresholds(
            self._position,
            total,
            self._pods,
            self._calculated.requests,
            ranges,
            None if 1 in changes else self._blocker(end, 1),
            None if -1 in changes else self._blocker(0, -1),
            None if 1 in changes else self._later(total, 1),
            None if -1 in changes else self._later(total, -1),
        )

    def _later(self, total: int, direction: Change) -> LaterChange | None:
        """Return the nearest value that changes the replicas once windows and policies have run out."""
        what_if = WhatIf(self._snapshot, (RUN_OUT,), self._what_if.settings, self._now, most=False)
        settled = _Probe(what_if, self._position, self._calculated, elsewhere=self._elsewhere)
        here = settled.change(total)
        if here == direction:
            release = self._release(total, direction)
            return None if release is None else LaterChange(total, 0, release)
        every = settled.ranges(total)
        beyond = [
            each
            for each in every
            if each.change == direction and (each.low > total if direction > 0 else each.high < total)
        ][::direction]
        if not beyond:
            return None
        value = beyond[0].low if direction > 0 else beyond[0].high
        release = self._release(value, direction)
        # Nearer to the measured value it must not happen, or the value would not be the threshold.
        if release is None or self._release(value - direction, direction) is not None:
            return None
        held = [each for each in beyond if all(self._release(end, direction) for end in each[:2])]
        if beyond[0] not in held:
            return None
        ends = tuple((each.low, None if each == every[-1] else each.high) for each in held)
        return LaterChange(value, direction, release, ends)

    def ranges(self, total: int) -> tuple[ValueRange, ...]:
        """Return the ranges of values with the same consequence."""
        return tuple(self._ranges(self._end(max(total, 1))))

    def _measured(self) -> int:
        reading = self._snapshot.metric_values[self._position]
        if isinstance(reading, Mapping | Unavailable):
            return self._calculated.usage or 0
        # Of an Object metric only the first value counts.
        external = self._snapshot.autoscaler.metrics[self._position].type == "External"
        return sum(reading) if external else reading[0]

    def _end(self, start: int) -> int:
        """Return a value above which more makes no difference."""
        most, tolerated = self._snapshot.autoscaler.maximum, self.decision(0).trace.tolerances
        end, last = 1, 0.0
        while end < _END:
            result = self.result(end)
            # Beyond 64 bits the ratio stops growing or is NaN, which no comparison accepts.
            if result is None or not result.ratio >= last:
                return max(end // 2, 1)
            # Below the tolerance, more pods than replicas may want more than the maximum as well.
            if result.replicas > most and end >= start and result.ratio > 1.0 + tolerated.up:
                return end
            last, end = result.ratio, end * 2
        return end

    def _ranges(self, end: int) -> Iterator[ValueRange]:
        edges = [0, *self._boundaries(end), end + 1]
        pending: ValueRange | None = None
        for low, high in self._split(edges):
            change = self.change(low)
            if pending is not None and pending.change == change:
                pending = pending._replace(high=high, last=self.replicas(high))
                continue
            if pending is not None:
                yield pending
            pending = ValueRange(low, high, change, self.replicas(low), self.replicas(high))
        if pending is not None:
            yield pending

    def _boundaries(self, end: int) -> list[int]:
        """Return the values at which the ratio crosses the tolerance and 1."""
        tolerated = self.decision(0).trace.tolerances

        def ratio(total: int) -> float:
            result = self.result(total)
            return 0.0 if result is None else result.ratio

        crossed: tuple[Callable[[int], bool], ...] = (
            lambda total: ratio(total) >= 1.0 - tolerated.down,
            # Exactly 1 is a piece of its own: nothing is filled in there, above and below it something is.
            lambda total: ratio(total) >= 1.0,
            lambda total: ratio(total) > 1.0,
            lambda total: ratio(total) > 1.0 + tolerated.up,
        )
        return sorted({first_holding(0, end + 1, each) for each in crossed})

    def _split(self, edges: list[int]) -> Iterator[tuple[int, int]]:
        """Yield ranges of values with the same change; between two edges the change is monotonic."""
        for start, stop in pairwise(edges):
            while start < stop:
                same = self.change(start)
                if self.change(stop - 1) == same:
                    yield start, stop - 1
                    break
                following = self._first_change(start, stop - 1)
                yield start, following - 1
                start = following  # noqa: PLW2901 (the rest of the piece)

    def _first_change(self, low: int, high: int) -> int:
        """Return the first value whose change differs from that of `low`."""
        same = self.change(low)
        return first_holding(low, high, lambda total: self.change(total) != same)

    def _blocker(self, total: int, direction: Change) -> Blocker:
        return Blocker(self.decision(total), self._release(total, direction))

    def _release(self, total: int, direction: Change) -> HoldRelease | None:
        """Return the first sync that changes the replicas in a direction, with a total from the next sync on."""
        what_if, then = self._what_if, with_total(self._snapshot, self._position, self._pods, total)
        settings = what_if.settings
        if not self._elsewhere:
            history = self._decide(total)[1]
            return first_release(what_if.actual(history), settings, then=then, direction=direction)
        actual = [what_if.actual(each) for each in what_if.histories]
        return latest_release(actual, settings, then=then, direction=direction)
