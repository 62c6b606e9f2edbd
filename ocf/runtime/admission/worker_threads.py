"""Daemon threads for functions that may be slow or never return.

A thread cannot be stopped. One whose caller no longer waits is therefore replaced by another one, so that functions
which never return do not keep others from running; only so many, because each stays until the process ends.

Threads of `concurrent.futures` are joined when the interpreter exits, so a function that never returns would keep the
process from exiting. These threads are not joined.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeVar

from ocf.concepts import Clock
from ocf.runtime.running_function import RunningFunction, shown_in

__all__ = ["WorkerCall", "WorkerThreads"]

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class WorkerCall:
    """A call, which a caller may have given up.

    Args:
        thread: The thread that runs it; None before it has one.
        since: When it was given up, as `elapsed` of the clock; None if it was not.
    """

    running: RunningFunction = field(default_factory=RunningFunction)
    thread: threading.Thread | None = None
    since: timedelta | None = None
    replaced: bool = False

    def place(self) -> str:
        """Return where it is, as the lines of a traceback; empty if it does not run."""
        # The only way to the frames of another thread; the lines have code, and no values.
        frames = sys._current_frames()  # noqa: SLF001
        frame = frames.get(self.thread.ident or 0) if self.thread is not None else None
        return "".join(traceback.format_stack(frame)) if frame is not None else ""


class WorkerThreads:
    """Daemon threads, each for one call.

    Args:
        most: Maximum number of running calls whose callers wait; further ones wait for a thread.
        spare: How many further threads may be started in place of those of calls that were given up.
        clock: Measures how long calls that were given up have been running.

    Attributes:
        spare: How many threads may be replaced.
    """

    def __init__(self, most: int, spare: int, name: str, clock: Clock) -> None:
        self.most: Final = most
        self.spare: Final = spare
        self._name = name
        self._clock = clock
        self._free = asyncio.Semaphore(most)
        self._given_up: dict[WorkerCall, None] = {}

    def given_up(self, *, lasting: timedelta = timedelta(0)) -> Counter[str]:
        """Return the calls that were given up and still run: how many, by function."""
        now = self._clock.elapsed()
        found = [call for call in self._given_up if call.since is not None and now - call.since >= lasting]
        return Counter(call.running.name for call in found)

    @property
    def exhausted(self) -> bool:
        """Whether calls that were given up occupy all threads, so that no other call can start."""
        return len(self._given_up) >= self.most + self.spare

    async def call(self, function: Callable[[], T], call: WorkerCall | None = None) -> T:
        """Call a function in a thread; if the caller is cancelled, the call goes on without it."""
        call = call or WorkerCall()
        await self._free.acquire()
        answer: Future[T] = Future()
        answer.set_running_or_notify_cancel()  # from here on it cannot be cancelled
        loop = asyncio.get_running_loop()

        def work() -> None:
            shown_in(call.running)
            _answer(answer, function)
            _call_in_loop(loop, lambda: self._returned(call))

        # The function sees the context of the request, for instance the active span.
        call.thread = threading.Thread(target=copy_context().run, args=(work,), name=self._name, daemon=True)
        try:
            call.thread.start()
        except RuntimeError:  # the process may have no more threads
            self._free.release()
            raise
        try:
            return await asyncio.wrap_future(answer)
        finally:
            if not answer.done():
                call.since = self._clock.elapsed()
                self._given_up[call] = None
                self._replace()

    def _replace(self) -> None:
        """Allow another thread in place of each call that was given up, as long as there are spare ones."""
        replaced = sum(call.replaced for call in self._given_up)
        for call in self._given_up:
            if replaced < self.spare and not call.replaced:
                call.replaced, replaced = True, replaced + 1
                self._free.release()

    def _returned(self, call: WorkerCall) -> None:
        self._given_up.pop(call, None)
        if call.replaced:
            self._replace()
        else:
            self._free.release()


def _answer(answer: Future[T], function: Callable[[], T]) -> None:
    try:
        found = function()
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 (it is raised where the answer is awaited)
        answer.set_exception(error)
    except BaseException as error:  # noqa: BLE001 (SystemExit, raised in the event loop, would end the process)
        failed = RuntimeError(f"a function in a thread raised {type(error).__name__}")
        failed.__cause__ = error
        answer.set_exception(failed)
    else:
        answer.set_result(found)


def _call_in_loop(loop: asyncio.AbstractEventLoop, what: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # the loop is closed, so the count does not matter any more
        loop.call_soon_threadsafe(what)
