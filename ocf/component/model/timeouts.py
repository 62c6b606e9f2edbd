"""Timeouts of handler calls.

Handlers are plain functions. Without a timeout they are called in the thread of the event loop, which is fastest, but a
handler that hangs blocks the loop. With a timeout, each call gets its own thread. The thread cannot be stopped: after
the timeout the reconcile goes on without it, and it ends with its handler or with the process.
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
    """Call a handler with a timeout.

    Args:
        limit: The timeout; None calls the handler in this thread, without one.
        handler: A plain function; it sees the context variables of the reconcile.
        args: Its positional arguments.
        kwargs: Its keyword arguments.

    Raises:
        HandlerError: If it does not return in time.
    """
    if limit is None:
        return handler(*args, **kwargs)
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def resolve(set_result: Callable[[], None]) -> None:
        # After the timeout the result is not awaited any more, and the loop itself may be closed.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if result.done() else set_result())

    def run() -> None:
        try:
            value = context.run(handler, *args, **kwargs)
        except BaseException as error:  # noqa: BLE001 (every error is raised where the handler was called)
            problem = error
            resolve(lambda: result.set_exception(problem))
        else:
            resolve(lambda: result.set_result(value))

    Thread(target=run, name="ocf handler", daemon=True).start()
    return await wait(limit, result)


async def wait(limit: timedelta | None, result: Awaitable[T]) -> T:
    """Await a result with a timeout.

    Args:
        limit: The timeout; None for no limit.
        result: The awaitable; it is cancelled after the timeout.

    Raises:
        HandlerError: If it takes longer.
    """
    timer = asyncio.timeout(limit.total_seconds() if limit is not None else None)
    try:
        async with timer:
            return await result
    except TimeoutError as error:
        if not timer.expired():
            raise
        seconds = limit.total_seconds() if limit is not None else 0
        raise HandlerError(f"no answer within {seconds:g} s") from error
