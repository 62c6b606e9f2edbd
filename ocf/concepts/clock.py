"""Time, as something that is passed in: no decision of this package reads the machine's clock by itself."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


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
