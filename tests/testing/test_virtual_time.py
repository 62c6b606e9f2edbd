"""Virtual time: it advances only while all tasks are waiting."""

from __future__ import annotations

import asyncio
import socket
import time
from datetime import UTC, datetime, timedelta

import pytest

from ocf.errors import ConfigError
from ocf.testing import LoopClock, run_in_virtual_time, virtual_time

START = datetime(2026, 3, 1, tzinfo=UTC)


def test_timers_fire_immediately_and_in_order() -> None:
    async def wait(hours: int) -> int:
        await asyncio.sleep(3600 * hours)
        return hours

    async def main() -> list[int]:
        waits = [asyncio.create_task(wait(hours)) for hours in (48, 24, 36)]
        return [await each for each in asyncio.as_completed(waits)]

    began = time.monotonic()
    assert run_in_virtual_time(main()) == [24, 36, 48]
    assert time.monotonic() - began < 3600


def test_time_stands_still_while_a_task_runs() -> None:
    async def main() -> float:
        for _ in range(1000):
            await asyncio.sleep(0)
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(main()) == 0


def test_a_socket_that_is_ready_is_read_before_time_passes() -> None:
    async def main() -> list[tuple[bytes, float]]:
        loop = asyncio.get_running_loop()
        seen: list[tuple[bytes, float]] = []
        near, far = socket.socketpair()
        with near, far:
            loop.add_reader(near, lambda: seen.append((near.recv(1), loop.time())))
            for _ in range(2):
                far.send(b"x")
                await asyncio.sleep(60)
            loop.remove_reader(near)
        return seen

    assert run_in_virtual_time(main()) == [(b"x", 0), (b"x", 60)]


@pytest.mark.parametrize("ready", [True, False], ids=["by turns", "by timers of no time"])
def test_a_loop_that_never_waits_is_an_error_with_its_line(monkeypatch: pytest.MonkeyPatch, *, ready: bool) -> None:
    """A worker that finds its queue full of itself would spin silently for ever."""
    monkeypatch.setattr(virtual_time, "_MOST_TURNS", 1000)

    async def spin() -> None:
        while True:  # noqa: ASYNC110 (the mistake)
            await asyncio.sleep(0 if ready else -1)

    async def work() -> None:
        await asyncio.sleep(5)
        await asyncio.create_task(spin(), name="worker")

    with pytest.raises(AssertionError, match=r"no progress: 1000 turns .* at 5 s .*worker \(.*\.py:\d+\)"):
        run_in_virtual_time(work())


def test_turns_are_counted_between_two_instants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_time, "_MOST_TURNS", 1000)

    async def work() -> float:
        for _ in range(20):
            for _ in range(900):
                await asyncio.sleep(0)
            await asyncio.sleep(1)
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(work()) == 20


def test_a_deadlock_is_an_error() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(AssertionError, match="deadlock: all tasks are waiting"):
        run_in_virtual_time(main())


def test_a_clock_follows_the_loop_and_may_be_skewed() -> None:
    async def main() -> None:
        right, wrong = LoopClock(START), LoopClock(START, skew=timedelta(seconds=-5))
        await asyncio.sleep(90)
        assert (right.now(), right.elapsed()) == (START + timedelta(seconds=90), timedelta(seconds=90))
        assert (wrong.now(), wrong.elapsed()) == (START + timedelta(seconds=85), timedelta(seconds=90))

    run_in_virtual_time(main())


def test_a_clock_needs_a_time_zone() -> None:
    with pytest.raises(ConfigError, match="needs a time zone"):
        LoopClock(datetime(2026, 3, 1))  # noqa: DTZ001 (that is the point)
