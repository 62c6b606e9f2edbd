"""Clock: the source of time, passed in as an argument so that tests can control it."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """Source of the current time and of elapsed time."""

    def now(self) -> datetime:
        """Return the current time as an aware datetime in UTC; it jumps when the system clock is set."""
        ...

    def elapsed(self) -> timedelta:
        """Return the time since an arbitrary start; it is monotonic and does not jump when the clock is set."""
        ...


class SystemClock:
    """Clock of the operating system."""

    def now(self) -> datetime:
        """Return the current time as an aware datetime in UTC."""
        return datetime.now(UTC)

    def elapsed(self) -> timedelta:
        """Return the time since an arbitrary start; it is monotonic and does not jump when the clock is set."""
        return timedelta(seconds=time.monotonic())
