"""Scale events that another controller may have in its memory, from the status of its last sync.

A policy depends only on the replicas at the start of its period. So all histories of scale events are covered by the
numbers of replicas at few instants: at the start of each period as of the last sync, which that sync's limit fixes, and
at the start of each period as of now. The former matter to the last sync only, the latter to the present one only.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise, product
from math import prod
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm import Autoscaler, Behavior, History, ScalingPolicy, ScalingRules, apply_behavior_limits
from ocf.autoscaling.algorithm.history import ScaleEvent, window_start
from ocf.autoscaling.explain.bisection import first_holding
from ocf.autoscaling.explain.last_sync import MOST, LastSync
from ocf.autoscaling.explain.next_syncs import LATEST

__all__ = ["Times", "possible_changes"]

# The shortest time between two instants, for bounds that are not included.
_JUST: Final = timedelta(microseconds=1)
_SECOND: Final = timedelta(seconds=1)
_NONE: Final = History(())
_ALL_OF_IT: Final = 100
# The combinations grow with the power of the number of different periods, and each costs five runs of the limits.
_MOST_COMBINATIONS: Final = 1000


class Times(NamedTuple):
    """The times that limit a history.

    Args:
        created: When the autoscaler was created; None if that is not known.
        scaled: `lastScaleTime` of the status; None if it was never scaled.
        scaled_up: Whether the rescale at `lastScaleTime` added replicas; None if that is not known.
        sync_period: The time between two syncs.
    """

    last: datetime
    now: datetime
    created: datetime | None
    scaled: datetime | None
    scaled_up: bool | None
    sync_period: timedelta


class _Level(NamedTuple):
    """The replicas from an instant on."""

    at: datetime
    replicas: int


def possible_changes(autoscaler: Autoscaler, last: LastSync, times: Times, *, current: int) -> Iterator[History]:
    """Yield the extremes of the scale events up to the last sync, including its own.

    Only the controller has scaled the target, so at no time there were fewer than zero replicas.

    Yields:
        Histories without recommendations, with which the last sync is limited as the status says.
    """
    behavior = autoscaler.behavior
    if behavior is None:
        yield _NONE
        return
    own = _changed(last.change, times.last)
    unconstrained = (_unconstrained(last.before, each) for each in behavior.down.policies)
    cap = max(autoscaler.maximum, last.before, current, *unconstrained)
    supposed = dict.fromkeys((_NONE, *_before(behavior, last, _Slots(times, last), cap)))
    # If none fits, something else has changed that the status does not show.
    fitting = [each for each in supposed if last.has_limit(autoscaler, each, at=times.last)] or supposed
    found = [
        History((), (*before.scale_ups, *own.scale_ups), (*before.scale_downs, *own.scale_downs)) for before in fitting
    ]
    yield from dict.fromkeys(_extremes(found, behavior, current, times.now))


def _changed(change: int, at: datetime) -> History:
    event = (ScaleEvent(abs(change), at),) if change else ()
    return History((), event if change > 0 else (), () if change > 0 else event)


def _before(behavior: Behavior, last: LastSync, slots: "_Slots", cap: int) -> Iterator[History]:
    """Yield scale events before the last sync, from the replicas at the start of each period."""
    periods = sorted({each.period for each in (*behavior.up.policies, *behavior.down.policies)})
    numbers = [_numbers(behavior, period, last, cap) for period in periods]
    if not periods:
        return
    if prod(map(len, numbers)) > _MOST_COMBINATIONS:
        numbers = [[each[0], last.before, each[-1]] for each in numbers]
    for starts in islice(product(*numbers), _MOST_COMBINATIONS):
        # Between the start of a period as of the last sync and as of now, one more change may have happened; its
        # extremes.
        for later in (0, cap, None, max(0, last.before - 1), last.before + 1):
            levels = slots.levels(periods, starts, later, last.before)
            ended = None if levels is None else slots.with_last_change(levels, last.before, cap)
            if ended is not None:
                yield _events(ended)


def _numbers(behavior: Behavior, period: timedelta, last: LastSync, cap: int) -> list[int]:
    """Return the numbers of replicas at the start of a period at which its policies begin to matter to a sync."""
    before = last.before
    found = {0, before - 1, before, before + 1, cap}
    counted = [(each, rules is behavior.up) for rules in (behavior.up, behavior.down) for each in rules.policies]
    for policy, up in counted if last.held is not None else ():
        if policy.period == period:
            firsts = (_first_start(policy, each, cap, up=up) for each in (last.desired, last.desired + 1))
            found.update(number for first in firsts for number in (first - 1, first))
    return sorted(each for each in found if 0 <= each <= cap)


@lru_cache(maxsize=256)
def _first_start(policy: ScalingPolicy, wanted: int, cap: int, *, up: bool) -> int:
    """Return the fewest replicas at the start of a period with which a policy allows at least a number."""
    only = ScalingRules((policy,))
    both = Behavior(only, only)

    def allowed(start: int) -> int:
        limit = apply_behavior_limits(
            start, MOST if up else -1, minimum=-MOST, maximum=MOST, behavior=both, history=_NONE, now=LATEST
        )
        # No policy is asked at the largest number, from which there is no way up.
        return limit.allowances[0][2] if limit.allowances else start

    return first_holding(0, cap + 1, lambda start: allowed(start) >= wanted)


def _unconstrained(current: int, policy: ScalingPolicy) -> int:
    """Return a start size from which a scale-down policy does not allow fewer replicas than now."""
    if policy.type == "Percent":
        return current * _ALL_OF_IT // (_ALL_OF_IT - policy.value) + 1 if policy.value < _ALL_OF_IT else current
    return current + policy.value


class _Slots:
    """The instants at which the controller may have scaled before its last sync."""

    def __init__(self, times: Times, last: LastSync) -> None:
        self._times = times
        # The API has whole seconds only.
        scaled = None if times.scaled is None else min(times.scaled + _SECOND, times.last) - _JUST
        self._own = bool(last.change)
        # Syncs are a sync period apart, and a slow one may be late; so there is no change just before the last one.
        apart = times.sync_period / 2
        self.end = times.last - apart if self._own else scaled
        self._free_until = self.end if self._own or scaled is None else scaled - apart

    def has(self, at: datetime) -> bool:
        """Return whether the controller may have scaled at an instant."""
        created, end, free = self._times.created, self.end, self._free_until
        if end is None or free is None or (created is not None and at < created):
            return False
        return at <= free or at == end

    def levels(
        self, periods: Sequence[timedelta], starts: Sequence[int], later: int | None, before: int
    ) -> list[_Level] | None:
        """Return the replicas over time.

        Args:
            starts: The replicas at the start of each period as of the last sync.
            later: The replicas at the start of each period as of now, where that can differ; None for the same.

        Returns:
            The replicas after each change, the oldest first; None if there is no time for a change that is needed.
        """
        last, found = self._times.last, [_Level(window_start(self._times.last, periods[-1]), starts[-1])]
        ends = [last, *(window_start(last, each) for each in periods[:-1])]
        following = [before, *starts[:-1]]
        for number in range(len(periods) - 1, -1, -1):
            start, end = window_start(last, periods[number]), ends[number]
            first, second = start + _JUST, self._latest(start, end)
            level = starts[number]
            if later is not None and second is not None and second > first and self.has(first):
                level = later
                found.append(_Level(first, level))
            if level != following[number]:
                when = second or (first if self.has(first) else None)
                if when is None:
                    return None
                found.append(_Level(when, following[number]))
        return found

    def _latest(self, start: datetime, end: datetime) -> datetime | None:
        """Return the last possible change after `start`, up to `end`."""
        candidates = (min(end, self._times.last - _JUST), self.end, self._free_until)
        return max(
            (each for each in candidates if each is not None and start < each <= end and self.has(each)), default=None
        )

    def with_last_change(self, levels: list[_Level], before: int, cap: int) -> list[_Level] | None:
        """Return the levels with a change at `lastScaleTime`, in the direction that was observed.

        Returns:
            The levels, with one more change where the direction needs it; None if that is impossible.
        """
        # The last sync's own change is added by the caller; one before all periods counts nowhere.
        if self._own or self.end is None or self.end <= levels[0].at:
            return levels
        if levels[-1].at != self.end:
            return None
        level, free, up = levels[-2].replicas, self._free_until, self._times.scaled_up
        # The direction of the change must be that of its event.
        if up is None or (before > level) == up:
            return levels
        other = before - 1 if up else before + 1
        if free is None or not 0 <= other <= cap or not (levels[-2].at < free < self.end and self.has(free)):
            return None
        return [*levels[:-1], _Level(free, other), levels[-1]]


def _events(levels: Sequence[_Level]) -> History:
    ups: list[ScaleEvent] = []
    downs: list[ScaleEvent] = []
    for earlier, later in pairwise(levels):
        change = later.replicas - earlier.replicas
        if change:
            (ups if change > 0 else downs).append(ScaleEvent(abs(change), later.at))
    return History((), tuple(ups), tuple(downs))


def _extremes(found: Sequence[History], behavior: Behavior, current: int, now: datetime) -> Iterator[History]:
    """Yield those that allow the most and the least in both directions."""
    # The first one has the fewest events; it is shown where they make no difference.
    yield from found[:1]
    for wanted in (MOST, -1) if found else ():

        def rate(history: History, wanted: int = wanted) -> tuple[int, timedelta]:
            limit = apply_behavior_limits(
                current, wanted, minimum=-MOST, maximum=MOST, behavior=behavior, history=history, now=now
            )
            # Of equal rates the one that lasts longer is the extreme one.
            newest = max((each.at for each in (*history.scale_ups, *history.scale_downs)), default=now)
            return current if limit.rate is None else limit.rate, (now - newest) * (1 if wanted > 0 else -1)

        rates = list(map(rate, found))
        for extreme in (min, max):
            yield found[rates.index(extreme(rates))]
