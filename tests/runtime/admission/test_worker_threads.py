"""Calls in threads: what they return, how many there are at once, and that no process waits for them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import partial

import pytest

from ocf.concepts import SystemClock
from ocf.runtime.admission.worker_threads import WorkerCall, WorkerThreads
from ocf.runtime.running_function import running_function
from ocf.testing import VirtualClock
from tests.support import until

STUCK = """
import asyncio, threading
from ocf.concepts import SystemClock
from ocf.runtime.admission.worker_threads import WorkerThreads

async def main():
    try:
        async with asyncio.timeout(0.01):
            await WorkerThreads(1, 0, "admission", SystemClock()).call(threading.Event().wait)
    except TimeoutError:
        print("given up")

asyncio.run(main())
"""


class Stuck:
    """A function that does not return before the test wants it to."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.released = threading.Event()

    def work(self) -> None:
        self.entered.release()
        with running_function("work"):
            self.released.wait()

    async def until_entered(self) -> None:
        await asyncio.to_thread(self.entered.acquire)


@pytest.fixture
def stuck() -> Iterator[Stuck]:
    one = Stuck()
    yield one
    one.released.set()


async def given_up(threads: WorkerThreads, stuck: Stuck) -> WorkerCall:
    """Begin a call of a function that does not return, and wait for it no longer."""
    call = WorkerCall()
    task = asyncio.create_task(threads.call(stuck.work, call))
    await stuck.until_entered()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return call


async def test_what_is_returned_and_raised_arrives() -> None:
    threads = WorkerThreads(2, 0, "admission", SystemClock())
    assert await threads.call(partial(divmod, 7, 3)) == (2, 1)
    with pytest.raises(ZeroDivisionError):
        await threads.call(partial(divmod, 7, 0))
    assert threads.given_up() == {}


async def test_there_are_no_more_at_once_than_allowed(stuck: Stuck) -> None:
    threads = WorkerThreads(2, 1, "admission", SystemClock())
    calls = [asyncio.create_task(threads.call(stuck.work)) for _ in range(5)]
    await stuck.until_entered()
    await stuck.until_entered()
    assert not await asyncio.to_thread(stuck.entered.acquire, timeout=0.05)
    stuck.released.set()
    await asyncio.gather(*calls)


@pytest.mark.parametrize(("most", "spare"), [(1, 0), (1, 1), (4, 16)])
async def test_others_go_on_until_all_spare_threads_hang(most: int, spare: int, stuck: Stuck) -> None:
    threads = WorkerThreads(most, spare, "admission", SystemClock())
    for number in range(most + spare):
        assert not threads.exhausted
        assert await threads.call(partial(max, number, 0)) == number
        await given_up(threads, stuck)
    assert threads.exhausted
    assert threads.given_up() == {"work": most + spare}
    waiting = asyncio.create_task(threads.call(lambda: "at last"))
    await asyncio.sleep(0)
    assert not waiting.done()
    stuck.released.set()
    assert await waiting == "at last"


@pytest.mark.parametrize(("most", "spare"), [(1, 0), (1, 1), (3, 2), (2, 5)])
async def test_threads_that_come_back_are_neither_lost_nor_added(most: int, spare: int) -> None:
    threads = WorkerThreads(most, spare, "admission", SystemClock())
    for _ in range(3):
        stuck = Stuck()
        for _ in range(most + spare):
            await given_up(threads, stuck)
        stuck.released.set()
        await until(lambda: not threads.given_up())
    fresh = Stuck()
    calls = [asyncio.create_task(threads.call(fresh.work)) for _ in range(most + 1)]
    for _ in range(most):
        await fresh.until_entered()
    assert not await asyncio.to_thread(fresh.entered.acquire, timeout=0.05)
    fresh.released.set()
    await asyncio.gather(*calls)


async def test_it_is_known_how_long_calls_have_been_given_up(stuck: Stuck) -> None:
    clock = VirtualClock()
    threads = WorkerThreads(1, 1, "admission", clock)
    await given_up(threads, stuck)
    clock.advance(timedelta(seconds=59))
    await given_up(threads, stuck)
    minute = timedelta(minutes=1)
    assert threads.given_up(lasting=minute) == {}
    clock.advance(timedelta(seconds=1))
    assert threads.given_up(lasting=minute) == {"work": 1}
    clock.advance(timedelta(seconds=59))
    assert threads.given_up(lasting=minute) == {"work": 2}


async def test_the_place_of_a_call_is_known(stuck: Stuck) -> None:
    call = await given_up(WorkerThreads(1, 0, "admission", SystemClock()), stuck)
    assert "in work\n" in call.place()
    assert "self.released.wait()" in call.place()
    assert WorkerCall().place() == ""


async def test_where_no_thread_can_be_started_a_later_call_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the limit of processes of a container is reached."""
    threads = WorkerThreads(1, 0, "admission", SystemClock())
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", _no_thread)
        for _ in range(3):
            with pytest.raises(RuntimeError, match="can't start new thread"):
                await threads.call(lambda: None)
    assert await threads.call(lambda: "made") == "made"


def _no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_process_ends_although_a_call_does_not_return() -> None:
    program = [sys.executable, "-c", STUCK]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=600, check=False)  # noqa: S603 (our own)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "given up\n", "")
