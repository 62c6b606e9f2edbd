"""Range of results when the controller's history is not known.

The history is in the memory of the controller that runs the autoscaler and cannot be read. The status of the last sync
limits it, though: a history with which that sync would have written another status is not the controller's. Everything
that the status leaves open is set to its extremes, and the algorithm decides on each of them. The actual result lies
between, because windows and policies are monotonic in their entries.

Three things are assumed. The controller guarantees the first: its syncs are about a sync period apart, and the status
is that of the last one. The others cannot be known: the spec has not changed since then, so limits and windows were the
same; and within the periods of the policies, other clients have not removed more replicas than the controller found.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import product
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm import Autoscaler, Decision, History, Settings, Snapshot, Status, Unavailable, decide
from ocf.autoscaling.algorithm.history import window_start
from ocf.autoscaling.algorithm.normalize import downscale_window
from ocf.autoscaling.explain.formatting import duration
from ocf.autoscaling.explain.last_sync import LastSync, ReplicaRange, last_sync_of
from ocf.autoscaling.explain.possible_changes import Times, possible_changes
from ocf.autoscaling.explain.possible_recommendations import possible_recommendations

__all__ = ["DecisionRange", "KnownHistory", "ReplicaRange", "compatible_histories", "decision_range"]

_JUST: Final = timedelta(microseconds=1)
_SECOND: Final = timedelta(seconds=1)
_NONE: Final = History(())


class KnownHistory(NamedTuple):
    """The known part of the history of an autoscaler that another controller runs.

    Args:
        status: The status when watching began, written by the sync before that.
        since: The instant from which on everything is known.
        history: The history since then; its list of recommendations may be empty, but is not None.
        created: When the autoscaler was created; None if that is not known.
        scaled_up: Whether the rescale at `lastScaleTime` added replicas, as an event about the autoscaler reports; None
            without such an event.
    """

    status: Status
    since: datetime
    history: History = _NONE
    created: datetime | None = None
    scaled_up: bool | None = None


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

    @property
    def least_without_restart(self) -> int:
        """The fewest replicas if the controller has not restarted since its last sync."""
        pairs = zip(self.decisions, self.histories, strict=True)
        kept = [decision.desired for decision, history in pairs if history.recommendations is not None]
        return min(kept, default=self.low.desired)


def decision_range(snapshot: Snapshot, known: KnownHistory, *, settings: Settings, now: datetime) -> DecisionRange:
    """Decide for the extremes of all possible histories.

    Args:
        known: The known part of the history.
        settings: The controller's settings, as far as they are known.
        now: The instant of the sync.

    Returns:
        The fewest and the most replicas that may result, each with a history that leads there.
    """
    histories = tuple(dict.fromkeys(compatible_histories(snapshot, known, settings=settings)))
    found = [(decide(snapshot, history, settings=settings, now=now), history) for history in histories]
    low, high = min(found, key=_fewest), max(found, key=_most)
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


def _fewest(pair: tuple[Decision, History]) -> tuple[int, int]:
    return pair[0].desired, _length(pair[1])


def _most(pair: tuple[Decision, History]) -> tuple[int, int]:
    return pair[0].desired, -_length(pair[1])


def _length(history: History) -> int:
    """Return the number of entries: of histories with the same result, the shortest is the one to show."""
    return len(history.recommendations or ()) + len(history.scale_ups) + len(history.scale_downs)


def compatible_histories(snapshot: Snapshot, known: KnownHistory, *, settings: Settings) -> Iterator[History]:
    """Yield the extremes of all histories that the observations permit.

    Args:
        known: The known part of the history.
        settings: The controller's settings.

    Yields:
        Histories, including that of a controller that has just started. If the status has no conditions, no controller
        has synced the autoscaler before, and that is the only one.
    """
    new = not known.status.conditions
    # The controller may have restarted since the status, without any recommendation; then it has not synced yet.
    if known.history == _NONE:
        yield History()
    elif new:
        yield known.history
    if new:
        return
    scale, autoscaler, status = snapshot.scale, snapshot.autoscaler, known.status
    # An unreadable Scale ends every sync, whatever the history, so the number does not matter then.
    current = status.desired_replicas if isinstance(scale, Unavailable) else scale.replicas
    last = _last_sync(autoscaler, known, current)
    for at in _times_of_last_sync(last, known, settings):
        times = Times(at, known.since, known.created, status.last_scale_time, known.scaled_up, settings.sync_period)
        recommended = possible_recommendations(
            autoscaler, last, settings=settings, at=at, now=known.since, created=known.created
        )
        changed = possible_changes(autoscaler, last, times, current=current)
        for recommendations, changes in product(recommended, tuple(changed)):
            yield History(
                (*recommendations, *(known.history.recommendations or ())),
                (*changes.scale_ups, *known.history.scale_ups),
                (*changes.scale_downs, *known.history.scale_downs),
            )


def _last_sync(autoscaler: Autoscaler, known: KnownHistory, current: int) -> LastSync:
    last = last_sync_of(autoscaler, known.status)
    if last.held is not None or last.rescaled:
        return last
    # It did not count the replicas, so they are what they were when watching began.
    added, removed = (sum(each.change for each in events) for events in known.history[1:])
    return last._replace(before=max(0, current - added + removed))


def _times_of_last_sync(last: LastSync, known: KnownHistory, settings: Settings) -> Iterator[datetime]:
    """Yield the earliest and the latest possible time of the last sync."""
    # Later, its status would have been seen; earlier, the next sync would have followed before.
    earliest, latest, scaled = known.since - settings.sync_period, known.since - _JUST, known.status.last_scale_time
    if last.rescaled and scaled is not None:
        # The API has whole seconds only.
        latest = min(latest, scaled + _SECOND - _JUST)
        earliest = min(max(earliest, scaled), latest)
    yield from dict.fromkeys((earliest, latest))


def _unknown(autoscaler: Autoscaler, known: KnownHistory, settings: Settings, now: datetime) -> Iterator[str]:
    if not known.status.conditions:
        return
    window, longest = _lookback(autoscaler, settings)
    if known.since > window_start(now, window):
        yield f"the recommendations of the last {duration(window)}"
    last = known.status.last_scale_time
    # A change is in the status, so without one in the longest period there is none that is not known.
    if last is not None and last + _SECOND > window_start(now, longest):
        yield f"the changes of the last {duration(longest)}, up to the last change at {last:%H:%M:%S}"


def _lookback(autoscaler: Autoscaler, settings: Settings) -> tuple[timedelta, timedelta]:
    """Return how far back recommendations and changes count."""
    window, behavior = downscale_window(autoscaler, settings), autoscaler.behavior
    if behavior is None:
        return window, timedelta()
    return max(window, behavior.up.window or timedelta()), max(behavior.up.longest_period, behavior.down.longest_period)
