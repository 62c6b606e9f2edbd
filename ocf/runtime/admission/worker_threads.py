"""Daemon threads for functions that may be slow or never return.

Threads of `concurrent.futures` are joined when the interpreter exits, so a function that never returns would keep the
process from exiting. These threads are not joined.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import Final, TypeVar

__all__ = ["WorkerThreads"]

T = TypeVar("T")


class WorkerThreads:
    """Daemon threads, each for one call.

    Args:
        most: Maximum number of running calls; further ones wait.
        name: Name of the threads.

    Attributes:
        most: Maximum number of running calls.
        late: Number of running calls whose caller no longer waits.
    """

    def __init__(self, most: int, name: str) -> None:
        self.most: Final = most
        self.late = 0
        self._name = name
        self._free = asyncio.Semaphore(most)

    async def call(self, function: Callable[[], T]) -> T:
        """Call a function in a thread; if the caller is cancelled, the call keeps its thread until it returns.

        Args:
            function: The function.

        Raises:
            BaseException: The error that the function raises.
        """
        await self._free.acquire()
        answer: Future[T] = Future()
        answer.set_running_or_notify_cancel()  # from here on it cannot be cancelled
        loop = asyncio.get_running_loop()

        def work() -> None:
            _answer(answer, function)
            _call_in_loop(loop, self._free.release)

        # The function sees the context of the request, for instance the active span.
        threading.Thread(target=copy_context().run, args=(work,), name=self._name, daemon=True).start()
        try:
            return await asyncio.wrap_future(answer)
        finally:
            if not answer.done():
                self.late += 1
                answer.add_done_callback(lambda _: _call_in_loop(loop, self._returned))

    def _returned(self) -> None:
        self.late -= 1


def _answer(answer: Future[T], function: Callable[[], T]) -> None:
    try:
        found = function()
    except BaseException as error:  # noqa: BLE001 (it is raised where the answer is awaited)
        answer.set_exception(error)
    else:
        answer.set_result(found)


def _call_in_loop(loop: asyncio.AbstractEventLoop, what: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # the loop is closed, so the count does not matter any more
        loop.call_soon_threadsafe(what)
