"""Range of results when the controller's history is not known.

The history is in the memory of the controller that runs the autoscaler and cannot be read. The status of the last sync
limits it, though: if that sync changed nothing, all recommendations in the window are compatible with the number that
it kept. Everything that the status leaves open is set to its extremes, and the algorithm decides on each of them. The
actual result lies between, because windows and policies are monotonic in their entries.

Two things are assumed. The controller guarantees the first: its last sync is at most one sync period old, and the
status is that sync's. The second cannot be known: the spec has not changed since then, so limits and windows were the
same.
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
    """The known part of the history of an autoscaler that another controller runs.

    Args:
        status: The status when watching began, written by the sync before that.
        since: The instant from which on everything is known.
        history: The history since then; its list of recommendations may be empty, but is not None.
    """

    status: Status
    since: datetime
    history: History = _NONE


class ReplicaRange(NamedTuple):
    """A range of replicas; both ends are possible.

    Args:
        least: The lower end.
        most: The upper end.
    """

    least: int
    most: int


class DecisionRange(NamedTuple):
    """The range of possible results.

    Args:
        low: A decision with the fewest replicas that are possible.
        low_history: A history that leads to it.
        high: A decision with the most replicas that are possible.
        high_history: A history that leads to that.
        unknown: The relevant parts of the history that are not known, as text.
        since: The instant from which on everything is known; a history's entries before it are assumed.
        histories: The extremes of all possible histories.
        decisions: The decision with each of them.
        watch: How long to watch until everything is known.
        is_history_independent: Whether every history leads to the same replicas, conditions and events.
        changed: When the replicas were last changed by an unknown amount; None if they never were.
    """

    low: Decision
    low_history: History
    high: Decision
    high_history: History
    unknown: tuple[str, ...]
    since: datetime
    histories: tuple[History, ...]
    decisions: tuple[Decision, ...]
    watch: timedelta
    is_history_independent: bool
    changed: datetime | None

    @property
    def exact(self) -> bool:
        """Whether every possible history gives the same number of replicas."""
        return self.low.desired == self.high.desired


class _StatusFacts(NamedTuple):
    """Limits on recommendations that the status of the last sync implies.

    Args:
        wanted: Range of that sync's own recommendation; None if it is not known whether there is one.
        least: Lower limit of all recommendations in the scale-up window.
        most: Upper limit of all recommendations in the scale-down window.
    """

    wanted: ReplicaRange | None = None
    least: int = 0
    most: int = _MOST


def decision_range(snapshot: Snapshot, known: KnownHistory, *, settings: Settings, now: datetime) -> DecisionRange:
    """Decide for the extremes of all possible histories.

    Args:
        snapshot: The snapshot.
        known: The known part of the history.
        settings: The controller's settings, as far as they are known.
        now: The instant of the sync.

    Returns:
        The fewest and the most replicas that may result, each with a history that leads there.
    """
    histories = tuple(dict.fromkeys(compatible_histories(snapshot, known, settings=settings)))
    found = [(decide(snapshot, history, settings=settings, now=now), history) for history in histories]
    low, high = min(found, key=_desired), max(found, key=_desired)
    unknown = tuple(_unknown(snapshot.autoscaler, known, settings, now))
    watch = max(_lookback(snapshot.autoscaler, settings))
    independent = len({(each.desired, each.status.conditions, each.events) for each, _ in found}) == 1
    return DecisionRange(
        *low,
        *high,
        unknown=unknown,
        since=known.since,
        histories=histories,
        decisions=tuple(decision for decision, _ in found),
        watch=watch,
        is_history_independent=independent,
        changed=known.status.last_scale_time,
    )


def _desired(pair: tuple[Decision, History]) -> int:
    return pair[0].desired


def compatible_histories(snapshot: Snapshot, known: KnownHistory, *, settings: Settings) -> Iterator[History]:
    """Yield the extremes of all histories that the observations permit.

    Args:
        snapshot: The snapshot.
        known: The known part of the history.
        settings: The controller's settings.

    Yields:
        Histories, including that of a controller that has just started. If the status has no conditions, no controller
        has synced the autoscaler before, and that is the only one.
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
    """Yield the extremes of the recommendations before the known part."""
    facts = _facts(autoscaler, known.status)
    for last in (known.since - settings.sync_period, known.since - _JUST):
        own = () if facts.wanted is None else tuple(Recommendation(each, last) for each in facts.wanted)
        for others in ((), *((Recommendation(each, last - _JUST),) for each in (facts.least, facts.most))):
            for mine in own or (None,):
                yield others if mine is None else (*others, mine)


def _facts(autoscaler: Autoscaler, status: Status) -> _StatusFacts:
    reasons = {each.type: each.reason for each in status.conditions}
    able, before = reasons.get("AbleToScale", ""), status.current_replicas
    rescaled = able == _RESCALED and bool(status.current_metrics)
    held = _held(autoscaler, status, reasons.get("ScalingLimited", ""))
    if held is None or not before or not (rescaled or able in {_READY, *_STABILIZED}):
        return _StatusFacts()
    if autoscaler.behavior is None:
        below = held.most - 1 if able == Rule.SCALE_DOWN_STABILIZED else held.most
        return _StatusFacts(held if able == _READY else ReplicaRange(0, below), most=held.most)
    scaled_up, scaled_down = held.least > before, held.most < before
    wanted = _wanted(
        able, before, held, ReplicaRange(held.least if scaled_up else 0, held.most if scaled_down else _MOST)
    )
    return _StatusFacts(wanted, held.least if scaled_up else 0, held.most if scaled_down else _MOST)


_STABILIZED: Final = (Rule.SCALE_UP_STABILIZED.value, Rule.SCALE_DOWN_STABILIZED.value)


def _wanted(able: str, before: int, held: ReplicaRange, otherwise: ReplicaRange) -> ReplicaRange:
    """Return the range of the last recommendation with a `behavior`, from the reason of its condition."""
    if able == _READY:
        return held
    if able == Rule.SCALE_DOWN_STABILIZED:
        return ReplicaRange(0, max(0, min(before, held.most) - 1))
    if able == Rule.SCALE_UP_STABILIZED:
        return ReplicaRange(max(before, held.least + 1), _MOST)
    return otherwise


def _held(autoscaler: Autoscaler, status: Status, limited: str) -> ReplicaRange | None:
    """Return the range of replicas after stabilization in the last sync, from how it was limited."""
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
    """Yield the extremes of the changes before the known part: none, all, and more than matters."""
    yield _NONE
    scale, behavior, last = snapshot.scale, snapshot.autoscaler.behavior, known.status.last_scale_time
    if isinstance(scale, Unavailable) or behavior is None or last is None:
        return
    # The API has whole seconds only.
    at = min(last + _SECOND, known.since) - _JUST
    added, removed = (sum(each.change for each in events) for events in known.history[1:])
    size = max(0, scale.replicas - added + removed)
    # If another client scaled down in between, the size at the start of the period seems to be negative.
    most = size + max((each.value for each in behavior.up.policies if each.type == "Pods"), default=0)
    if most:
        yield History((), (ScaleEvent(most, at),))
    unconstrained = (_unconstrained_size(scale.replicas, policy) for policy in behavior.down.policies)
    largest = max(snapshot.autoscaler.maximum, scale.replicas, *unconstrained)
    if largest > size:
        yield History((), (), (ScaleEvent(largest - size, at),))


def _unconstrained_size(current: int, policy: ScalingPolicy) -> int:
    """Return a start size from which a scale-down policy does not allow fewer replicas than now."""
    if policy.type == "Percent":
        return current * _ALL_OF_IT // (_ALL_OF_IT - policy.value) + 1 if policy.value < _ALL_OF_IT else current
    return current + policy.value


def _unknown(autoscaler: Autoscaler, known: KnownHistory, settings: Settings, now: datetime) -> Iterator[str]:
    if not known.status.conditions:
        return
    window, longest = _lookback(autoscaler, settings)
    if known.since > window_start(now, window):
        yield f"the recommendations of the last {duration(window)}"
    last = known.status.last_scale_time
    if last is not None and last + _SECOND > window_start(now, longest):
        yield f"the changes of the last {duration(longest)}, up to the last change at {last:%H:%M:%S}"


def _lookback(autoscaler: Autoscaler, settings: Settings) -> tuple[timedelta, timedelta]:
    """Return how far back recommendations and changes count."""
    window, behavior = downscale_window(autoscaler, settings), autoscaler.behavior
    if behavior is None:
        return window, timedelta()
    return max(window, behavior.up.window or timedelta()), max(behavior.up.longest_period, behavior.down.longest_period)
