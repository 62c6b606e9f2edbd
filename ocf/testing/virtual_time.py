"""Event loop in virtual time.

Its time stands still while any task runs, and jumps to the next timer when all tasks are waiting. Code that sleeps for
an hour, renews a lease every two seconds or backs off for minutes is therefore tested immediately and in a fixed order.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

from ocf.errors import ConfigError

__all__ = ["LoopClock", "VirtualLoop", "run_in_virtual_time"]

T = TypeVar("T")

_START: Final = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


# A million turns take some seconds. Tests of thousands of owners need some ten thousand at one instant.
_MOST_TURNS: Final = 1_000_000
_MOST_TASKS: Final = 5


class _Selector(selectors.DefaultSelector):
    """Selector that never blocks: where nothing is ready, it adds the timeout to the virtual time instead."""

    elapsed = 0.0
    turns = 0
    """Turns of the event loop since the time has advanced."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise AssertionError(
                "deadlock: all tasks are waiting and no timer is scheduled; what waits for a socket or a thread needs "
                "asyncio.run"
            )
        self.turns += 1
        if self.turns > _MOST_TURNS:
            self.turns = 0
            raise AssertionError(
                f"no progress: {_MOST_TURNS} turns of the event loop at {self.elapsed:g} s without a wait; "
                f"the tasks are at {_places()}"
            )
        if timeout <= 0:
            # Tasks are ready to run; a poll in each of these turns would take some 4 % of the time of a long test.
            return []
        ready = super().select(0)
        if not ready:
            self.elapsed += timeout
            self.turns = 0
        return ready


def _places() -> str:
    """Return where some tasks of the running loop are."""
    found = []
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        frame = next(iter(reversed(task.get_stack())), None)
        where = f" ({Path(frame.f_code.co_filename).name}:{frame.f_lineno})" if frame is not None else ""
        found.append(f"{task.get_name()}{where}")
    more = f" and {len(found) - _MOST_TASKS} more" if len(found) > _MOST_TASKS else ""
    return f"{', '.join(found[:_MOST_TASKS])}{more}"


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time starts at 0 and that never blocks.

    It waits for neither sockets nor threads, so code under test must not need them.

    Raises:
        AssertionError: While running, if all tasks are waiting and no timer is scheduled (a deadlock), or after a
            million turns in which no time passes (a loop that never waits).
    """

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._virtual.elapsed


class LoopClock:
    """A `Clock` that follows the running event loop.

    Args:
        start: The time at loop time 0; must have a time zone.
        skew: Clock skew, added to `start`; it does not affect elapsed time.

    Raises:
        ConfigError: If `start` has no time zone.

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
        """Return the current time in UTC, with a time zone."""
        return self._start + self.elapsed()

    def elapsed(self) -> timedelta:
        """Return the elapsed time of the loop."""
        return timedelta(seconds=asyncio.get_running_loop().time())


def run_in_virtual_time(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time, as `asyncio.run` does in real time.

    Args:
        work: The coroutine.

    Returns:
        The coroutine's result.

    Example:
        >>> async def half_a_day() -> float:
        ...     await asyncio.sleep(12 * 3600)
        ...     return asyncio.get_running_loop().time()
        >>> run_in_virtual_time(half_a_day())
        43200.0
    """
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
