"""An event loop whose time passes only while everybody waits."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


class _Selector(selectors.SelectSelector):
    """Waits for nothing: what would be waited for passes at once, on the loop's clock."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise AssertionError("everybody waits for somebody else")
        self.passed += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.passed


class LoopClock:
    """A clock that shows the loop's time, and an instant that is wrong by so much.

    Args:
        skew: How wrong.
    """

    def __init__(self, skew: timedelta = timedelta(0)) -> None:
        self.skew = skew

    def now(self) -> datetime:
        return START + self.skew + self.elapsed()

    def elapsed(self) -> timedelta:
        return timedelta(seconds=asyncio.get_running_loop().time())


def _run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, T]], T]:
    """Run a coroutine in virtual time."""
    return _run


@pytest.fixture
def new_clock() -> type[LoopClock]:
    return LoopClock
