"""A clock that a test moves.

What depends on time is tested by saying how much of it passed, never by waiting for it. One clock serves everything
in a test: the operator's passes, and the stamps of the embedded cluster.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from ocf.errors import ConfigError

__all__ = ["VirtualClock"]

_START: Final = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


class VirtualClock:
    """A `Clock` that stands still until it is moved.

    Args:
        start: What it shows first, an aware instant.

    Raises:
        ConfigError: If the instant has no time zone.

    Example:
        >>> clock = VirtualClock()
        >>> before = clock.now()
        >>> clock.advance(timedelta(minutes=5))
        >>> clock.now() - before
        datetime.timedelta(seconds=300)

        The embedded cluster stamps its objects with it:

        >>> from ocf.embedded import EmbeddedCluster
        >>> cluster = EmbeddedCluster(now=clock.now)
    """

    def __init__(self, start: datetime = _START) -> None:
        self._now = _in_utc(start)
        self._elapsed = timedelta(0)

    def __repr__(self) -> str:
        return f"VirtualClock({self._now.isoformat()})"

    def now(self) -> datetime:
        """Return the current instant, aware, in UTC."""
        return self._now

    def elapsed(self) -> timedelta:
        """Return how much time was let pass; a jump is none."""
        return self._elapsed

    def advance(self, by: timedelta) -> None:
        """Let time pass.

        Args:
            by: How much of it; zero is allowed.

        Raises:
            ConfigError: If it is negative: a clock that is set back jumps.
        """
        if by < timedelta(0):
            raise ConfigError(f"time cannot pass backwards, got {by}; a clock that is set back is `jump(instant)`")
        self._now += by
        self._elapsed += by

    def jump(self, to: datetime) -> None:
        """Show another instant, earlier or later, as a clock does that somebody sets.

        Args:
            to: An aware instant.

        Raises:
            ConfigError: If it has no time zone.
        """
        self._now = _in_utc(to)


def _in_utc(instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise ConfigError(f"an instant needs a time zone, got {instant.isoformat()}")
    return instant.astimezone(UTC)
