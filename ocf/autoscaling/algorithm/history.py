"""What the controller remembers of an autoscaler between two rounds.

It lives in memory only and is lost on a restart. That is why a controller without memory starts it with the current
count: nothing shrinks in the first minutes after a restart. "No list yet" and "an empty list" are therefore two
different things here, `None` and `()`.

Old entries are not removed but overwritten, one a round, so a history never holds more than what fell into its windows.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm.arithmetic import wrap32

__all__ = [
    "ZERO_TIME",
    "History",
    "Recommendation",
    "ScaleEvent",
    "add_recommendation",
    "add_scale_event",
    "change_within",
    "window_start",
]

ZERO_TIME: Final = datetime.min.replace(tzinfo=UTC)
"""The instant that stands for none; the zero time of Go is this one."""


class Recommendation(NamedTuple):
    """What the metrics once wanted, before stabilization and limits.

    Args:
        replicas: The number of replicas.
        at: When.
    """

    replicas: int
    at: datetime


class ScaleEvent(NamedTuple):
    """A change that the controller made.

    Args:
        change: How many replicas were added or removed; never negative.
        at: When.
        outdated: Whether its place may be reused; it is still counted by its time.
    """

    change: int
    at: datetime
    outdated: bool = False


class History(NamedTuple):
    """What is remembered of one autoscaler.

    Args:
        recommendations: What was recommended; None before the first round.
        scale_ups: Additions made, where the HPA has a `behavior`.
        scale_downs: Removals made, likewise.
    """

    recommendations: tuple[Recommendation, ...] | None = None
    scale_ups: tuple[ScaleEvent, ...] = ()
    scale_downs: tuple[ScaleEvent, ...] = ()

    def with_first_recommendation(self, current: int, now: datetime) -> "History":
        """Return the history with a first recommendation, if it has no list of them.

        Args:
            current: The replicas that the workload should have now.
            now: The instant of the round.
        """
        if self.recommendations is not None:
            return self
        return self._replace(recommendations=(Recommendation(current, now),))


def window_start(now: datetime, period: timedelta) -> datetime:
    """Return the instant a period ago, or the earliest there is."""
    try:
        return now - period
    except OverflowError:
        return ZERO_TIME


def add_recommendation(
    entries: tuple[Recommendation, ...], entry: Recommendation, slot: int | None
) -> tuple[Recommendation, ...]:
    """Return the entries with a new one, in a slot that is free again or at the end.

    Args:
        entries: The recommendations so far.
        entry: The new one.
        slot: The position of one that nobody needs any more; None if there is none.
    """
    return (*entries, entry) if slot is None else (*entries[:slot], entry, *entries[slot + 1 :])


def change_within(period: timedelta, events: Iterable[ScaleEvent], now: datetime) -> int:
    """Add up the changes of the last period; one that is exactly as old as the period is not counted.

    Args:
        period: How far to look back.
        events: Changes of one direction.
        now: The instant of the round.
    """
    start = window_start(now, period)
    return wrap32(sum(event.change for event in events if event.at > start))


def add_scale_event(
    events: Sequence[ScaleEvent], change: int, *, longest: timedelta, now: datetime
) -> tuple[ScaleEvent, ...]:
    """Return the events of a direction with a new one.

    Args:
        events: The events so far.
        change: How many replicas were added or removed.
        longest: The longest period of this direction's policies: older events are outdated from now on.
        now: The instant of the round.

    Returns:
        All events; the last outdated one has given its place to the new one.
    """
    new = ScaleEvent(change, now)
    if not events:
        return (new,)
    start = window_start(now, longest)
    marked = [event._replace(outdated=True) if event.at < start else event for event in events]
    free = [position for position, event in enumerate(marked) if event.outdated]
    if free:
        marked[free[-1]] = new
    else:
        marked.append(new)
    return tuple(marked)
