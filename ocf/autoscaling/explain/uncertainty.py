"""What can result although the history is not known.

The history lives in the memory of the controller that runs an autoscaler, and nobody can ask for it. But its last round
left a status, and that says much: if the round changed nothing, everything recommended within the window fits the size
that it kept. What the status leaves open is filled with its extremes, the algorithm decides on each of them, and the
real result lies between: windows and policies can only move a result the way their entries are moved.

What is taken for granted is what the controller guarantees (its last round is at most one sync period old, and the
status is that round's) and what it cannot know (the spec has not been changed since, and bounds and windows were the
same).
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm import (
    Autoscaler,
    Decision,
    History,
    Recommendation,
    Rule,
    ScaleEvent,
    ScalingPolicy,
    Settings,
    Snapshot,
    Status,
    Unavailable,
    decide,
    downscale_window,
)
from ocf.autoscaling.algorithm.history import window_start
from ocf.autoscaling.explain.formatting import duration

__all__ = ["DecisionRange", "KnownHistory", "ReplicaRange", "compatible_histories", "decision_range"]

_MOST: Final = 2**31 - 1
_JUST: Final = timedelta(microseconds=1)
_SECOND: Final = timedelta(seconds=1)
_NONE: Final = History(())
_ALL_OF_IT: Final = 100
_READY: Final = "ReadyForNewScale"
_RESCALED: Final = "SucceededRescale"


class KnownHistory(NamedTuple):
    """What is known of the history of an autoscaler that another controller runs.

    Args:
        status: The status as it was when watching began; that of the last round before.
        since: Since when everything is known.
        history: What happened since; its list of recommendations may be empty, but is not None.
    """

    status: Status
    since: datetime
    history: History = _NONE


class ReplicaRange(NamedTuple):
    """Between what a number lies; both ends are possible.

    Args:
        least: The least.
        most: The most.
    """

    least: int
    most: int


class DecisionRange(NamedTuple):
    """Between what the result lies.

    Args:
        low: A decision with the fewest replicas that the unknown permits.
        low_history: What would have to be remembered for it.
        high: A decision with the most.
        high_history: What would have to be remembered for that.
        unknown: What is not known and matters, in words.
        since: Since when everything is known; what a history says of the time before is made up.
        histories: The extremes of everything that is possible.
        watch: How long one has to watch until nothing is unknown.
        agreed: Whether the same is written whatever the history is: conditions, events, the number.
        changed: When the size was last changed by an amount that is not known; None if it never was.
    """

    low: Decision
    low_history: History
    high: Decision
    high_history: History
    unknown: tuple[str, ...]
    since: datetime
    histories: tuple[History, ...]
    watch: timedelta
    is_history_independent: bool
    changed: datetime | None

    @property
    def exact(self) -> bool:
        """Whether the unknown makes no difference."""
        return self.low.desired == self.high.desired


class _Facts(NamedTuple):
    """What the last round says about recommendations.

    Args:
        wanted: Between what its own recommendation lies; None if it left none that is known.
        least: What nothing in the window of growing is below.
        most: What nothing in the window of shrinking is above.
    """

    wanted: ReplicaRange | None = None
    least: int = 0
    most: int = _MOST


def decision_range(snapshot: Snapshot, known: KnownHistory, *, settings: Settings, now: datetime) -> DecisionRange:
    """Decide for the extremes of everything that the history may have been.

    Args:
        snapshot: What is seen now.
        known: What is known of the history.
        settings: The controller's settings, as far as they are known.
        now: The instant of the round.

    Returns:
        The fewest and the most replicas that may result, each with a history that leads there.
    """
    histories = tuple(dict.fromkeys(compatible_histories(snapshot, known, settings=settings)))
    found = [(decide(snapshot, history, settings=settings, now=now), history) for history in histories]
    low, high = min(found, key=_desired), max(found, key=_desired)
    unknown = tuple(_unknown(snapshot.autoscaler, known, settings, now))
    watch = max(_memory(snapshot.autoscaler, settings))
    agreed = len({(each.desired, each.status.conditions, each.events) for each, _ in found}) == 1
    return DecisionRange(*low, *high, unknown, known.since, histories, watch, agreed, known.status.last_scale_time)


def _desired(pair: tuple[Decision, History]) -> int:
    return pair[0].desired


def compatible_histories(snapshot: Snapshot, known: KnownHistory, *, settings: Settings) -> Iterator[History]:
    """Yield the extremes of all histories that what was observed permits.

    Args:
        snapshot: What is seen now.
        known: What is known.
        settings: The controller's settings.

    Yields:
        Histories; among them the one of a controller that has just started. Without conditions, nobody has looked at
        the autoscaler before, and there is no other one.
    """
    new = not known.status.conditions
    if known.history == _NONE:
        yield History()
    elif new:
        yield known.history
    if new:
        return
    for recommendations in _recommendations(snapshot.autoscaler, known, settings):
        for before in _changes(snapshot, known):
            yield History(
                (*recommendations, *(known.history.recommendations or ())),
                (*before.scale_ups, *known.history.scale_ups),
                (*before.scale_downs, *known.history.scale_downs),
            )


def _recommendations(
    autoscaler: Autoscaler, known: KnownHistory, settings: Settings
) -> Iterator[tuple[Recommendation, ...]]:
    """Yield extremes of what was recommended before everything is known."""
    facts = _facts(autoscaler, known.status)
    for last in (known.since - settings.sync_period, known.since - _JUST):
        own = () if facts.wanted is None else tuple(Recommendation(each, last) for each in facts.wanted)
        for others in ((), *((Recommendation(each, last - _JUST),) for each in (facts.least, facts.most))):
            for mine in own or (None,):
                yield others if mine is None else (*others, mine)


def _facts(autoscaler: Autoscaler, status: Status) -> _Facts:
    reasons = {each.type: each.reason for each in status.conditions}
    able, before = reasons.get("AbleToScale", ""), status.current_replicas
    rescaled = able == _RESCALED and bool(status.current_metrics)
    held = _held(autoscaler, status, reasons.get("ScalingLimited", ""))
    if held is None or not before or not (rescaled or able in {_READY, *_STABILIZED}):
        return _Facts()
    if autoscaler.behavior is None:
        below = held.most - 1 if able == Rule.SCALE_DOWN_STABILIZED else held.most
        return _Facts(held if able == _READY else ReplicaRange(0, below), most=held.most)
    grown, shrunk = held.least > before, held.most < before
    wanted = _wanted(able, before, held, ReplicaRange(held.least if grown else 0, held.most if shrunk else _MOST))
    return _Facts(wanted, held.least if grown else 0, held.most if shrunk else _MOST)


_STABILIZED: Final = (Rule.SCALE_UP_STABILIZED.value, Rule.SCALE_DOWN_STABILIZED.value)


def _wanted(able: str, before: int, held: ReplicaRange, otherwise: ReplicaRange) -> ReplicaRange:
    """Tell what a round with a `behavior` recommended, by what became of that."""
    if able == _READY:
        return held
    if able == Rule.SCALE_DOWN_STABILIZED:
        return ReplicaRange(0, max(0, min(before, held.most) - 1))
    if able == Rule.SCALE_UP_STABILIZED:
        return ReplicaRange(max(before, held.least + 1), _MOST)
    return otherwise


def _held(autoscaler: Autoscaler, status: Status, limited: str) -> ReplicaRange | None:
    """Tell what the last round had after stabilization, by how it was limited."""
    desired, minimum, maximum = status.desired_replicas, autoscaler.minimum, autoscaler.maximum
    if limited == Rule.WITHIN_RANGE and minimum <= desired <= maximum:
        return ReplicaRange(desired, desired)
    if limited == Rule.TOO_MANY and desired == maximum:
        return ReplicaRange(maximum + 1, _MOST)
    if limited == Rule.TOO_FEW and desired == minimum:
        return ReplicaRange(0, minimum - 1)
    if limited == Rule.SCALE_UP_LIMIT:
        return ReplicaRange(desired + 1, _MOST)
    if limited == Rule.SCALE_DOWN_LIMIT and desired:
        return ReplicaRange(0, desired - 1)
    return None


def _changes(snapshot: Snapshot, known: KnownHistory) -> Iterator[History]:
    """Yield extremes of what was changed before everything is known: nothing, all of it, more than matters."""
    yield _NONE
    scale, behavior, last = snapshot.scale, snapshot.autoscaler.behavior, known.status.last_scale_time
    if isinstance(scale, Unavailable) or behavior is None or last is None:
        return
    # The API tells whole seconds.
    at = min(last + _SECOND, known.since) - _JUST
    added, removed = (sum(each.change for each in events) for events in known.history[1:])
    size = max(0, scale.replicas - added + removed)
    # If somebody else made it smaller in between, it seems to have begun below zero.
    most = size + max((each.value for each in behavior.up.policies if each.type == "Pods"), default=0)
    if most:
        yield History((), (ScaleEvent(most, at),))
    harmless = (_harmless(scale.replicas, policy) for policy in behavior.down.policies)
    largest = max(snapshot.autoscaler.maximum, scale.replicas, *harmless)
    if largest > size:
        yield History((), (), (ScaleEvent(largest - size, at),))


def _harmless(current: int, policy: ScalingPolicy) -> int:
    """Return a size from which a policy of shrinking does not let the workload get below what it has now."""
    if policy.type == "Percent":
        return current * _ALL_OF_IT // (_ALL_OF_IT - policy.value) + 1 if policy.value < _ALL_OF_IT else current
    return current + policy.value


def _unknown(autoscaler: Autoscaler, known: KnownHistory, settings: Settings, now: datetime) -> Iterator[str]:
    if not known.status.conditions:
        return
    window, longest = _memory(autoscaler, settings)
    if known.since > window_start(now, window):
        yield f"what was recommended in the last {duration(window)}"
    last = known.status.last_scale_time
    if last is not None and last + _SECOND > window_start(now, longest):
        yield f"what was changed in the last {duration(longest)}, up to the last change at {last:%H:%M:%S}"


def _memory(autoscaler: Autoscaler, settings: Settings) -> tuple[timedelta, timedelta]:
    """Return how far back recommendations count, and how far back changes do."""
    window, behavior = downscale_window(autoscaler, settings), autoscaler.behavior
    if behavior is None:
        return window, timedelta()
    return max(window, behavior.up.window or timedelta()), max(behavior.up.longest_period, behavior.down.longest_period)
