"""Clock that only a test advances.

A test states how much time has elapsed instead of waiting. One clock serves the whole test: the operator's reconciles
and the timestamps of the embedded cluster.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from ocf.errors import ConfigError

__all__ = ["VirtualClock"]

_START: Final = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


class VirtualClock:
    """A `Clock` whose time changes only by `advance` and `jump`.

    Args:
        start: The initial time; must have a time zone.

    Raises:
        ConfigError: If `start` has no time zone.

    Example:
        >>> clock = VirtualClock()
        >>> before = clock.now()
        >>> clock.advance(timedelta(minutes=5))
        >>> clock.now() - before
        datetime.timedelta(seconds=300)

        The embedded cluster takes its timestamps from it:

        >>> from ocf_server import EmbeddedCluster
        >>> cluster = EmbeddedCluster(now=clock.now)
    """

    def __init__(self, start: datetime = _START) -> None:
        self._now = _in_utc(start)
        self._elapsed = timedelta(0)

    def __repr__(self) -> str:
        return f"VirtualClock({self._now.isoformat()})"

    def now(self) -> datetime:
        """Return the current time in UTC, with a time zone."""
        return self._now

    def elapsed(self) -> timedelta:
        """Return the sum of all `advance` calls; `jump` does not count."""
        return self._elapsed

    def advance(self, by: timedelta) -> None:
        """Advance the clock.

        Args:
            by: The duration, zero or more.

        Raises:
            ConfigError: If the duration is negative; use `jump` to set the clock back.
        """
        if by < timedelta(0):
            raise ConfigError(f"cannot advance by a negative duration, got {by}; use `jump(instant)` to go back")
        self._now += by
        self._elapsed += by

    def jump(self, to: datetime) -> None:
        """Set the clock to another time, earlier or later, like an administrator who adjusts the system clock.

        Args:
            to: The new time; must have a time zone.

        Raises:
            ConfigError: If `to` has no time zone.
        """
        self._now = _in_utc(to)


def _in_utc(instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise ConfigError(f"an instant needs a time zone, got {instant.isoformat()}")
    return instant.astimezone(UTC)
