"""How long a handler may take.

Handlers are plain functions, called in the loop's own thread, which is what costs least. One that does more than
compare values may hang, and the loop with it; so a component may set a limit, and then each of its handlers runs in a
thread of its own. A thread cannot be stopped: the pass goes on without it, and the thread ends with its handler or
with the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context
from datetime import timedelta
from threading import Thread
from typing import ParamSpec, TypeVar

from ocf.errors import HandlerError

__all__ = ["call_with_timeout", "wait"]

P = ParamSpec("P")
T = TypeVar("T")


async def call_with_timeout(limit: timedelta | None, handler: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a handler, and wait no longer than the limit.

    Args:
        limit: How long it may take; None calls it in this thread, and waits.
        handler: A plain function; it sees the context variables of the pass.
        args: What it takes.
        kwargs: What it takes by name.

    Raises:
        HandlerError: If it has not answered in time.
    """
    if limit is None:
        return handler(*args, **kwargs)
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def settle(settled: Callable[[], None]) -> None:
        # After the limit nobody waits any more, and the loop itself may be gone.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if answer.done() else settled())

    def run() -> None:
        try:
            value = context.run(handler, *args, **kwargs)
        except BaseException as error:  # noqa: BLE001 (whatever it is, it is raised where the handler was called)
            problem = error
            settle(lambda: answer.set_exception(problem))
        else:
            settle(lambda: answer.set_result(value))

    Thread(target=run, name="ocf handler", daemon=True).start()
    return await wait(limit, answer)


async def wait(limit: timedelta | None, answer: Awaitable[T]) -> T:
    """Wait for an answer, and no longer than the limit.

    Args:
        limit: How long it may take; None for ever.
        answer: Cancelled when the limit is reached.

    Raises:
        HandlerError: If it has not come in time.
    """
    timer = asyncio.timeout(limit.total_seconds() if limit is not None else None)
    try:
        async with timer:
            return await answer
    except TimeoutError as error:
        if not timer.expired():
            raise
        seconds = limit.total_seconds() if limit is not None else 0
        raise HandlerError(f"no answer within {seconds:g} s") from error
