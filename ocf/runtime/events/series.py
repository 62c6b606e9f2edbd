"""What of many equal events is written: the first, the second, and then only that they go on.

An event that repeats is one object with a count. As with the recorder that the controllers of Kubernetes use
(`tools/events/event_broadcaster.go` of client-go), the first occurrence creates the object, the second makes it a
series, further ones are only counted. The count is written every half hour while they go on, because events expire,
and once more after six minutes of quiet, which end the series.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from ocf.objects import Manifest
from ocf.objects.timestamps import format_micro_time

__all__ = ["EventSeries", "Instant", "Write"]

_QUIET: Final = timedelta(minutes=6)
_HEARTBEAT: Final = timedelta(minutes=30)
_REMEMBERED: Final = 4096


@dataclass(frozen=True, slots=True)
class Instant:
    """When something happened, on both hands of a clock.

    Args:
        now: The instant, aware.
        elapsed: What had elapsed by then; intervals are measured with it.
    """

    now: datetime
    elapsed: timedelta


@dataclass(frozen=True, slots=True)
class Write:
    """Something to be written.

    Args:
        manifest: The event as it was first told.
        series: Its field `series`, to be changed; None where the event is to be created.
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

    def written(self, elapsed: timedelta) -> Write:
        self.sent, self.sent_count = elapsed, self.count
        return Write(self.manifest, {"count": self.count, "lastObservedTime": format_micro_time(self.seen.now)})


class EventSeries:
    """Which events are going on.

    Args:
        remembered: How many; beyond that the one that was quiet for the longest time is forgotten, and what was not
            written of its count is lost.

    Example:
        >>> from datetime import UTC
        >>> going_on = EventSeries()
        >>> at = [Instant(datetime(2026, 1, 1, 12, minute, tzinfo=UTC), timedelta(minutes=minute)) for minute in (0, 1)]
        >>> going_on.first("scaled", {"reason": "Scaled"}, at[0])
        Write(manifest={'reason': 'Scaled'}, series=None)
        >>> going_on.repeated("scaled", at[1]).series
        {'count': 2, 'lastObservedTime': '2026-01-01T12:01:00.000000Z'}
    """

    def __init__(self, *, remembered: int = _REMEMBERED) -> None:
        self._remembered = remembered
        # In order of the last occurrence, so that what has ended comes first.
        self._told: OrderedDict[Hashable, _SeriesState] = OrderedDict()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._told

    def __len__(self) -> int:
        return len(self._told)

    def first(self, key: Hashable, manifest: Manifest, at: Instant) -> Write:
        """Note an event that is not going on.

        Args:
            key: What makes two events equal.
            manifest: The event.
            at: When it happened.

        Returns:
            What creates it.
        """
        self._told[key] = _SeriesState(manifest, at, at.elapsed)
        if len(self._told) > self._remembered:
            self._told.popitem(last=False)
        return Write(manifest)

    def repeated(self, key: Hashable, at: Instant) -> Write | None:
        """Count an event that is going on.

        Args:
            key: What makes two events equal.
            at: When it happened again.

        Returns:
            What is to be written now; None where the count can wait.
        """
        told = self._told[key]
        self._told.move_to_end(key)
        told.count += 1
        told.seen = at
        return told.written(at.elapsed) if told.sent_count == 1 else None

    def ended(self, elapsed: timedelta) -> Iterator[Write]:
        """Forget what was quiet for six minutes, and yield the last counts of it.

        Args:
            elapsed: What the clock tells as elapsed.
        """
        while self._told:
            key, told = next(iter(self._told.items()))
            if elapsed - told.seen.elapsed <= _QUIET:
                return
            del self._told[key]
            if told.count > told.sent_count:
                yield told.written(elapsed)

    def heartbeats(self, elapsed: timedelta) -> Iterator[Write]:
        """Yield the counts that were not written for half an hour.

        Args:
            elapsed: What the clock tells as elapsed.
        """
        for told in self._told.values():
            if told.count > told.sent_count and elapsed - told.sent >= _HEARTBEAT:
                yield told.written(elapsed)

    def all_ended(self, elapsed: timedelta) -> Iterator[Write]:
        """Forget everything, and yield the last counts.

        Args:
            elapsed: What the clock tells as elapsed.
        """
        while self._told:
            _, told = self._told.popitem(last=False)
            if told.count > told.sent_count:
                yield told.written(elapsed)
