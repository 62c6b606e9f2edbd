"""Calls of an author's functions: gates, evaluated once per reconcile, and handlers, which may have a timeout.

A gate may raise or return anything. Objects behind a gate that is off are deleted, so a result that is merely falsy is
an error. It may also answer differently each time, so one reconcile evaluates the gate of a component once.

Handlers are plain functions. Without a timeout they are called in the thread of the event loop, which is fastest, but a
handler that hangs blocks the loop. With a timeout, each call gets its own thread. The thread cannot be stopped: after
the timeout the reconcile goes on without it, and it ends with its handler or with the process.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context
from datetime import timedelta
from threading import Thread
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from ocf.concepts import data_scope
from ocf.errors import FeatureGateError, HandlerError, OcfError

if TYPE_CHECKING:
    from ocf.feature import Gate

__all__ = ["GateAnswers", "call_with_timeout", "is_cancelled", "is_open", "wait"]

P = ParamSpec("P")
T = TypeVar("T")


def is_cancelled(error: BaseException) -> bool:
    """Return whether an error of an author's function is the cancellation of the task that calls it.

    A function that waits for what another task has cancelled raises the same error, and has failed.
    """
    if not isinstance(error, asyncio.CancelledError):
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop runs, so nothing can be cancelled
        return False
    return task is None or bool(task.cancelling())


def is_open(gate: Gate | None) -> bool:
    """Return whether a gate is open, as None always is; a gate that fails or gives no bool is a `FeatureGateError`.

    Example:
        >>> from ocf.feature import BooleanGate
        >>> is_open(BooleanGate(False)), is_open(None)
        (False, True)
    """
    if gate is None:
        return True
    try:
        enabled: object = gate.enabled()
    except FeatureGateError:
        raise
    except OcfError as error:
        raise FeatureGateError(str(error)) from error
    except Exception as error:
        raise FeatureGateError(f"feature gate failed: {type(error).__name__}: {error}") from error
    if inspect.iscoroutine(enabled):
        enabled.close()
    if not isinstance(enabled, bool):
        raise FeatureGateError(f"a feature gate must return True or False, got {type(enabled).__name__}")
    return enabled


class GateAnswers:
    """Answers of the gates of components in one reconcile of their owner."""

    def __init__(self) -> None:
        # A gate need not be hashable. Each is kept, so that no other one gets its identity.
        self._known: dict[int, tuple[Gate, bool | FeatureGateError]] = {}

    def is_open(self, gate: Gate | None) -> bool:
        """Return whether a gate is open; it is evaluated at the first call, before any data cell has a value."""
        if gate is None:
            return True
        known = self._known.get(id(gate))
        answer = known[1] if known is not None else self._evaluate(gate)
        if isinstance(answer, FeatureGateError):
            raise answer
        return answer

    def _evaluate(self, gate: Gate) -> bool | FeatureGateError:
        answer: bool | FeatureGateError
        try:
            with data_scope():
                answer = is_open(gate)
        except FeatureGateError as error:
            answer = error
        self._known[id(gate)] = gate, answer
        return answer


async def call_with_timeout(limit: timedelta | None, handler: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a handler, which sees the context variables of the reconcile; exceeding the limit is a `HandlerError`."""
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
    """Await a result, or cancel it after the limit and raise a `HandlerError`."""
    timer = asyncio.timeout(limit.total_seconds() if limit is not None else None)
    try:
        async with timer:
            return await result
    except TimeoutError as error:
        if not timer.expired():
            raise
        seconds = limit.total_seconds() if limit is not None else 0
        raise HandlerError(f"no answer within {seconds:g} s") from error
