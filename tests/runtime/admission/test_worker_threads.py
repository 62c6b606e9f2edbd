"""Calls in threads: what they return, how many there are at once, and that no process waits for them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from functools import partial

import pytest

from ocf.runtime.admission.worker_threads import WorkerThreads

STUCK = """
import asyncio, threading
from ocf.runtime.admission.worker_threads import WorkerThreads

async def main():
    try:
        async with asyncio.timeout(0.01):
            await WorkerThreads(1, "admission").call(threading.Event().wait)
    except TimeoutError:
        print("given up")

asyncio.run(main())
"""


async def test_what_is_returned_and_raised_arrives() -> None:
    threads = WorkerThreads(2, "admission")
    assert await threads.call(partial(divmod, 7, 3)) == (2, 1)
    with pytest.raises(ZeroDivisionError):
        await threads.call(partial(divmod, 7, 0))
    assert threads.late == 0


async def test_there_are_no_more_at_once_than_allowed() -> None:
    threads, entered, released = WorkerThreads(2, "admission"), threading.Semaphore(0), threading.Event()

    def work() -> None:
        entered.release()
        released.wait()

    calls = [asyncio.create_task(threads.call(work)) for _ in range(5)]
    assert await asyncio.to_thread(lambda: entered.acquire() and entered.acquire())
    assert not await asyncio.to_thread(entered.acquire, timeout=0.05)
    released.set()
    await asyncio.gather(*calls)


async def test_a_call_that_is_given_up_counts_until_it_returns() -> None:
    threads, released = WorkerThreads(1, "admission"), threading.Event()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await threads.call(released.wait)
    assert threads.late == 1
    released.set()
    assert await threads.call(lambda: True)
    assert threads.late == 0


def test_a_process_ends_although_a_call_does_not_return() -> None:
    program = [sys.executable, "-c", STUCK]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=600, check=False)  # noqa: S603 (our own)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "given up\n", "")
