"""History of an HPA between two syncs: its recommendations and scale events.

The controller keeps it in memory and loses it on a restart. After a restart it starts with the current replicas as the
first recommendation, so nothing is scaled down in the first minutes. "No list yet" (`None`) and "an empty list" (`()`)
therefore differ.

Old entries are not removed but overwritten, one per sync, so a history is never longer than its windows require.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm.arithmetic import wrap32
from ocf.autoscaling.algorithm.hpa_spec import Behavior

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
"""The zero time of Go, which stands for an unset time."""


class Recommendation(NamedTuple):
    """A proposal of the metrics, before stabilization and limits.

    Args:
        replicas: The number of replicas.
        at: Time of the sync.
    """

    replicas: int
    at: datetime


class ScaleEvent(NamedTuple):
    """A rescale by the controller.

    Args:
        change: Number of replicas added or removed; never negative.
        at: Time of the sync.
        outdated: Whether the entry may be overwritten; until then it still counts if it is within a period.
    """

    change: int
    at: datetime
    outdated: bool = False


class History(NamedTuple):
    """The history of one HPA.

    Args:
        recommendations: The recommendations; None before the first sync.
        scale_ups: The scale-ups, if the HPA has a `behavior`.
        scale_downs: The scale-downs, if the HPA has a `behavior`.
    """

    recommendations: tuple[Recommendation, ...] | None = None
    scale_ups: tuple[ScaleEvent, ...] = ()
    scale_downs: tuple[ScaleEvent, ...] = ()

    def with_first_recommendation(self, current: int, now: datetime) -> "History":
        """Return the history with the current replicas as first recommendation, unless it has recommendations.

        Args:
            current: `spec.replicas` of the scale.
            now: Time of the sync.
        """
        if self.recommendations is not None:
            return self
        return self._replace(recommendations=(Recommendation(current, now),))

    def with_rescale(self, change: int, behavior: Behavior | None, now: datetime) -> "History":
        """Return the history with a scale event; without a `behavior`, there are none.

        Args:
            change: Number of replicas added; negative if some were removed.
            behavior: The behavior of the autoscaler.
            now: Time of the sync.
        """
        # The controller stores no event that nothing reads. So the first sync after a `behavior` is added knows no
        # changes.
        if behavior is None:
            return self
        ups, downs = self.scale_ups, self.scale_downs
        # The period is that of this direction's own policies, although the policies of both directions count both
        # lists: a scale-down that only a longer scale-up period still needs may be overwritten (storeScaleEvent).
        if change > 0:
            ups = add_scale_event(ups, change, longest=behavior.up.longest_period, now=now)
        else:
            downs = add_scale_event(downs, -change, longest=behavior.down.longest_period, now=now)
        return History(recommendations=self.recommendations, scale_ups=ups, scale_downs=downs)


def window_start(now: datetime, period: timedelta) -> datetime:
    """Return the time a period ago, at the earliest the zero time."""
    try:
        return now - period
    except OverflowError:
        # Python's dates begin with the year 1. Only the API server limits windows and periods, so a file may have
        # longer ones.
        return ZERO_TIME


def add_recommendation(
    entries: tuple[Recommendation, ...], entry: Recommendation, slot: int | None
) -> tuple[Recommendation, ...]:
    """Return the recommendations with a new one, in place of an expired one or at the end.

    Args:
        slot: Position of an expired recommendation; None appends.
    """
    return (*entries, entry) if slot is None else (*entries[:slot], entry, *entries[slot + 1 :])


def change_within(period: timedelta, events: Sequence[ScaleEvent], now: datetime) -> int:
    """Return the sum of the changes within the last period; an event exactly as old as the period is not counted."""
    if not events:
        return 0
    start = window_start(now, period)
    return wrap32(sum(event.change for event in events if event.at > start))


def add_scale_event(
    events: Sequence[ScaleEvent], change: int, *, longest: timedelta, now: datetime
) -> tuple[ScaleEvent, ...]:
    """Return the scale events of a direction with a new one.

    Args:
        longest: The longest period of this direction's policies; older events become outdated.

    Returns:
        All events; the new one replaces the last outdated one, if there is one.
    """
    new = ScaleEvent(change, now)
    if not events:
        return (new,)
    start = window_start(now, longest)
    marked = [event._replace(outdated=True) if event.at < start else event for event in events]
    # Once outdated, an entry stays so, even if a longer period in the spec makes it count again. The last one is taken,
    # because the controller's loop remembers the last match.
    free = [position for position, event in enumerate(marked) if event.outdated]
    if free:
        marked[free[-1]] = new
    else:
        marked.append(new)
    return tuple(marked)
