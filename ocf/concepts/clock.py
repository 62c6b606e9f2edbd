"""Time, as something that is passed in: no decision of this package reads the machine's clock by itself."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

__all__ = ["Clock", "SystemClock", "format_time", "parse_time"]


class Clock(Protocol):
    """Tells what time it is."""

    def now(self) -> datetime:
        """Return the current instant, aware, in UTC; somebody may set it forward or back."""
        ...

    def elapsed(self) -> timedelta:
        """Return how much time has passed since some start; setting the clock does not move it."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the current instant, aware, in UTC."""
        return datetime.now(UTC)

    def elapsed(self) -> timedelta:
        """Return how much time has passed since some start; setting the clock does not move it."""
        return timedelta(seconds=time.monotonic())


def format_time(instant: datetime) -> str:
    """Write an instant as the API does: RFC 3339, UTC, whole seconds (fractions are cut off).

    Args:
        instant: An aware instant.

    Returns:
        For example `2026-01-31T12:00:00Z`.

    Example:
        >>> format_time(datetime(2026, 1, 31, 12, 0, 0, 999_999, tzinfo=UTC))
        '2026-01-31T12:00:00Z'
    """
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> datetime:
    """Read an instant as the API writes it.

    Args:
        text: RFC 3339, for example `2026-01-31T12:00:00Z`.

    Returns:
        An aware instant in UTC.

    Raises:
        ValueError: If the text is no RFC 3339 time.

    Example:
        >>> parse_time("2026-01-31T12:00:00Z")
        datetime.datetime(2026, 1, 31, 12, 0, tzinfo=datetime.timezone.utc)
    """
    return datetime.fromisoformat(text).astimezone(UTC)
