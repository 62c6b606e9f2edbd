"""`WorkerThreads`: where functions are called that may take their time, or never return.

Those of `concurrent.futures` are joined when the interpreter ends, so one function that does not return would keep a
process from ending. Nobody waits for these.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Final, TypeVar

__all__ = ["WorkerThreads"]

T = TypeVar("T")


class WorkerThreads:
    """A number of threads, each for one call.

    Args:
        most: How many calls may be under way at once; further ones wait.
        name: What the threads are called.

    Attributes:
        late: How many calls are under way for which nobody waits any more.
    """

    def __init__(self, most: int, name: str) -> None:
        self.most: Final = most
        self.late = 0
        self._name = name
        self._free = asyncio.Semaphore(most)

    async def call(self, function: Callable[[], T]) -> T:
        """Call a function in a thread; a call that is given up goes on, and keeps its thread until it returns.

        Args:
            function: The function.

        Raises:
            BaseException: What the function raises.
        """
        await self._free.acquire()
        answer: Future[T] = Future()
        answer.set_running_or_notify_cancel()  # from here on it cannot be taken back
        loop = asyncio.get_running_loop()

        def work() -> None:
            _answer(answer, function)
            _tell(loop, self._free.release)

        threading.Thread(target=work, name=self._name, daemon=True).start()
        try:
            return await asyncio.wrap_future(answer)
        finally:
            if not answer.done():
                self.late += 1
                answer.add_done_callback(lambda _: _tell(loop, self._returned))

    def _returned(self) -> None:
        self.late -= 1


def _answer(answer: Future[T], function: Callable[[], T]) -> None:
    try:
        found = function()
    except BaseException as error:  # noqa: BLE001 (it is raised where the answer is awaited)
        answer.set_exception(error)
    else:
        answer.set_result(found)


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # the loop has ended, and nobody counts any more
        loop.call_soon_threadsafe(what)
