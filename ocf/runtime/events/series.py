"""Event series: repeated events are aggregated into one object with a count.

As in client-go (`tools/events/event_broadcaster.go`), the first occurrence creates the object, the second makes it a
series, and further ones are only counted. The count is written every 30 minutes while the series continues, because
events expire, and once more after six minutes without an occurrence, which end the series.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from ocf.objects import Manifest
from ocf.objects.timestamps import format_micro_time

__all__ = ["EventSeries", "EventWrite", "Instant"]

_SERIES_END: Final = timedelta(minutes=6)
_HEARTBEAT: Final = timedelta(minutes=30)
_CAPACITY: Final = 4096


class Instant(NamedTuple):
    """A point in time, as wall clock time and as elapsed time."""

    now: datetime
    elapsed: timedelta


class EventWrite(NamedTuple):
    """A write of an event.

    Args:
        series: New value of its field `series`; None to create the event.
    """

    manifest: Manifest
    series: Manifest | None = None


@dataclass(slots=True)
class _SeriesState:
    manifest: Manifest
    seen: Instant
    sent: timedelta
    count: int = 1
    sent_count: int = 1

    def written(self, elapsed: timedelta) -> EventWrite:
        self.sent, self.sent_count = elapsed, self.count
        return EventWrite(self.manifest, {"count": self.count, "lastObservedTime": format_micro_time(self.seen.now)})


class EventSeries:
    """The series that have not ended.

    Args:
        capacity: Maximum number of series; beyond it the one with the oldest last occurrence is dropped, and the
            part of its count that was not written is lost.

    Example:
        >>> from datetime import UTC
        >>> going_on = EventSeries()
        >>> at = [Instant(datetime(2026, 1, 1, 12, minute, tzinfo=UTC), timedelta(minutes=minute)) for minute in (0, 1)]
        >>> going_on.first("scaled", {"reason": "Scaled"}, at[0])
        EventWrite(manifest={'reason': 'Scaled'}, series=None)
        >>> going_on.repeated("scaled", at[1]).series
        {'count': 2, 'lastObservedTime': '2026-01-01T12:01:00.000000Z'}
    """

    def __init__(self, *, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        # In order of the last occurrence, so that ended series come first.
        self._states: OrderedDict[Hashable, _SeriesState] = OrderedDict()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._states

    def __len__(self) -> int:
        return len(self._states)

    def first(self, key: Hashable, manifest: Manifest, at: Instant) -> EventWrite:
        """Record the first occurrence of an event.

        Args:
            key: The identity of the event; events with the same key form a series.
        """
        self._states[key] = _SeriesState(manifest, at, at.elapsed)
        if len(self._states) > self._capacity:
            self._states.popitem(last=False)
        return EventWrite(manifest)

    def repeated(self, key: Hashable, at: Instant) -> EventWrite | None:
        """Count another occurrence of an event.

        Args:
            key: The identity of the event; events with the same key form a series.

        Returns:
            The write that is due now; None if the count is written later.
        """
        state = self._states[key]
        self._states.move_to_end(key)
        state.count += 1
        state.seen = at
        return state.written(at.elapsed) if state.sent_count == 1 else None

    def ended(self, elapsed: timedelta) -> Iterator[EventWrite]:
        """Drop the series without an occurrence for six minutes, and yield the writes of their last counts.

        Args:
            elapsed: The present `elapsed` of the clock.
        """
        while self._states:
            key, state = next(iter(self._states.items()))
            if elapsed - state.seen.elapsed <= _SERIES_END:
                return
            del self._states[key]
            if state.count > state.sent_count:
                yield state.written(elapsed)

    def heartbeats(self, elapsed: timedelta) -> Iterator[EventWrite]:
        """Yield the writes of the counts that were not written for 30 minutes.

        Args:
            elapsed: The present `elapsed` of the clock.
        """
        for state in self._states.values():
            if state.count > state.sent_count and elapsed - state.sent >= _HEARTBEAT:
                yield state.written(elapsed)

    def all_ended(self, elapsed: timedelta) -> Iterator[EventWrite]:
        """Drop all series, and yield the writes of their last counts.

        Args:
            elapsed: The present `elapsed` of the clock.
        """
        while self._states:
            _, state = self._states.popitem(last=False)
            if state.count > state.sent_count:
                yield state.written(elapsed)
