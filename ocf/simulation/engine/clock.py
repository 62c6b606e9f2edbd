"""Virtual time: whole microseconds since the start of a simulation.

All instants and lengths of time in the engine are such numbers: `now`, `at`, `begin`, `end`, `period`, `window`.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = ["NEVER", "SECOND", "Clock", "microseconds"]

SECOND: Final = 1_000_000
"""Microseconds of a second."""
NEVER: Final = 2**62
"""An instant after all others."""
_MICROSECOND: Final = timedelta(microseconds=1)


def microseconds(period: timedelta) -> int:
    """Return a period in whole microseconds.

    Example:
        >>> microseconds(timedelta(seconds=15))
        15000000
    """
    return period // _MICROSECOND


class Clock:
    """Conversion between virtual and absolute time.

    Example:
        >>> clock = Clock(datetime(2026, 1, 1, 12, tzinfo=UTC))
        >>> clock.at(90 * SECOND).isoformat()
        '2026-01-01T12:01:30+00:00'
    """

    __slots__ = ("_offset", "_start")

    def __init__(self, start: datetime) -> None:
        self._start = start.astimezone(UTC)
        self._offset = self._start.microsecond

    def at(self, time: int) -> datetime:
        """Return the absolute time."""
        return self._start + timedelta(microseconds=time)

    def stored(self, time: int) -> int:
        """Return a time as the API server stores it: cut down to a full second of absolute time."""
        return time - (time + self._offset) % SECOND
