"""An event loop whose time passes only while everybody waits.

What sleeps for an hour, renews a lease every two seconds or backs off for minutes is tested at once, and always in the
same order: time stands still while somebody works, and jumps to the next timer when everybody waits for one.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from ocf.errors import ConfigError

__all__ = ["LoopClock", "VirtualLoop", "run_in_virtual_time"]

T = TypeVar("T")

_START: Final = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


class _Selector(selectors.SelectSelector):
    """Waits for nothing: what would be waited for passes at once, on the loop's clock."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise AssertionError("everybody waits for somebody else, and no time is set for anything")
        self.passed += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop that begins at 0 and never waits.

    It waits for neither sockets nor threads, so nothing that is tested with it may need them.

    Raises:
        AssertionError: When run, where every task waits for another one, so that nothing would ever happen again.
    """

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Return how many seconds have passed."""
        return self._virtual.passed


class LoopClock:
    """A `Clock` that goes with the running event loop.

    Args:
        start: What it shows when the loop's time is 0, an aware instant.
        skew: How wrong it is; a clock that is wrong by 5 seconds measures what elapses all the same.

    Raises:
        ConfigError: If the instant has no time zone.

    Example:
        >>> async def nap() -> str:
        ...     await asyncio.sleep(3600)
        ...     return LoopClock().now().isoformat()
        >>> run_in_virtual_time(nap())
        '2026-01-01T13:00:00+00:00'
    """

    def __init__(self, start: datetime = _START, *, skew: timedelta = timedelta(0)) -> None:
        if start.tzinfo is None:
            raise ConfigError(f"an instant needs a time zone, got {start.isoformat()}")
        self._start = start.astimezone(UTC) + skew

    def now(self) -> datetime:
        """Return the current instant, aware, in UTC."""
        return self._start + self.elapsed()

    def elapsed(self) -> timedelta:
        """Return how much time the loop has let pass."""
        return timedelta(seconds=asyncio.get_running_loop().time())


def run_in_virtual_time(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time, as `asyncio.run` does in real time.

    Args:
        work: The coroutine.

    Returns:
        What it returns.

    Example:
        >>> async def half_a_day() -> float:
        ...     await asyncio.sleep(12 * 3600)
        ...     return asyncio.get_running_loop().time()
        >>> run_in_virtual_time(half_a_day())
        43200.0
    """
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
