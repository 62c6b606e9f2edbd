"""What an operator runs beside its reconciles: a lifespan, and background tasks with the cache of the process.

A lifespan opens what reconciles and tasks share, such as an HTTP session. It is entered and left in one task, so that
it may contain task groups. Each failure of it is visible: opening and closing have a time limit, an error ends the
process, and a task that fails ends it, too, unless it is called again after its period.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Final, TypeAlias

from ocf.cluster import Cluster
from ocf.component.author_code import is_cancelled
from ocf.component.model.context_values import ContextValues
from ocf.errors import BuildError, ConfigError, OcfError, failure_text

__all__ = ["BackgroundTask", "Lifespan", "Process", "open_lifespan", "run_task"]

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Process:
    """The process of an operator, as its lifespan and its background tasks get it.

    Args:
        cluster: The cluster of the objects. It reads from a cache, which lists and watches a kind from the first read
            on. That of the leader rejects writes once the lease is lost.
        values: Values by `ocf.component.ContextKey`, which each reconcile finds in `context.values`.
    """

    cluster: Cluster
    values: ContextValues


Lifespan: TypeAlias = Callable[[Process], AbstractAsyncContextManager[object]]
"""Opens what an operator needs for as long as it runs, mostly an `asynccontextmanager`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundTask:
    """A coroutine function that runs beside the reconciles of an operator.

    Args:
        name: Name of the task in the log and in events, unique in its operator.
        run: The function. Without a period, it runs until it is cancelled at the end of the process; it may return
            before, and an error ends the process.
        every: The period of a timer: the function is called at the start, and again each period. Calls do not overlap:
            one that takes longer than the period delays the next one. An error, or a call that takes longer than
            `Operator.reconcile_timeout`, is logged and an event, and the next call follows. None is no timer.
        on_leader: Whether it runs only while the process leads; if not, in each replica.

    Raises:
        BuildError: If the name is empty, the period is not positive, or the function is not a coroutine function.

    Example:
        >>> async def refresh(process: Process) -> None:
        ...     await process.cluster.list("v1", "Node")
        >>> BackgroundTask(name="prices", run=refresh, every=timedelta(minutes=5)).on_leader
        True
    """

    name: str
    run: Callable[[Process], Awaitable[None]]
    every: timedelta | None = None
    on_leader: bool = True

    def __post_init__(self) -> None:
        problems = [] if self.name else ["a background task needs a name"]
        if self.every is not None and self.every <= timedelta(0):
            problems.append(f'task "{self.name}": `every` must be a positive timedelta, or None, got {self.every!r}')
        if not (inspect.iscoroutinefunction(self.run) or inspect.iscoroutinefunction(type(self.run).__call__)):
            problems.append(f'task "{self.name}": `run` must be a coroutine function, got {self.run!r:.60}')
        if problems:
            raise BuildError(problems)


@asynccontextmanager
async def open_lifespan(
    lifespan: Lifespan,
    process: Process,
    what: str,
    *,
    opening: timedelta,
    closing: timedelta,
    stop: asyncio.Event | None = None,
) -> AsyncIterator[bool]:
    """Open a lifespan for as long as the block runs.

    Args:
        what: What is opened, for messages, `the lifespan of operator shops`.
        opening: How long it may take to open.
        closing: How long it may take to close; then it is cancelled, which is logged.
        stop: Ends the opening once it is set; None for never.

    Yields:
        Whether it is open: False if the opening was ended by `stop`.

    Raises:
        ConfigError: If it is not a context manager, or does not open in time.
        Exception: The error of the opening, or of the closing unless the block failed.
    """
    async with AsyncExitStack() as stack:
        expired = False
        term = asyncio.timeout(opening.total_seconds())
        try:
            async with term:
                watching = asyncio.create_task(_expire(term, stop)) if stop is not None else None
                try:
                    with _failing_if_cancelled():
                        manager: object = lifespan(process)
                    if not isinstance(manager, AbstractAsyncContextManager):
                        raise ConfigError(
                            f"{what} must return an asynchronous context manager, got {type(manager).__name__}: use "
                            "contextlib.asynccontextmanager"
                        )
                    with _failing_if_cancelled():
                        await stack.enter_async_context(_Closing(manager, what, closing))
                finally:
                    if watching is not None:
                        watching.cancel()
        except TimeoutError as error:
            expired = term.expired()
            if not expired or stop is None or not stop.is_set():
                raise (ConfigError(f"{what} has not opened within {opening}") if expired else error) from None
        except Exception as error:
            error.add_note(f"{what} could not be opened")
            raise
        yield not expired


@contextmanager
def _failing_if_cancelled() -> Iterator[None]:
    """Raise an error in place of a `CancelledError` that is none: what called the block would seem to be cancelled."""
    try:
        yield
    except asyncio.CancelledError as error:
        if is_cancelled(error):
            raise
        raise OcfError(f"unexpected {type(error).__name__}") from error


async def _expire(term: asyncio.Timeout, stop: asyncio.Event) -> None:
    await stop.wait()
    with suppress(RuntimeError):  # it has ended in the same moment
        term.reschedule(asyncio.get_running_loop().time())


class _Closing(AbstractAsyncContextManager[object]):
    """A context manager that closes within a time, and suppresses no error of its block."""

    def __init__(self, inner: AbstractAsyncContextManager[object], what: str, limit: timedelta) -> None:
        self._inner = inner
        self._what = what
        self._limit = limit

    async def __aenter__(self) -> object:
        return await self._inner.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        term = asyncio.timeout(self._limit.total_seconds())
        try:
            async with term:
                with _failing_if_cancelled():
                    await self._inner.__aexit__(kind, error, traceback)
        except TimeoutError:
            if not term.expired():
                raise
            _log.error("%s has not closed within %s, and was cancelled", self._what, self._limit)


Failed: TypeAlias = Callable[[str, bool], Awaitable[None]]
"""Records the text of a failure, and whether it ends the process."""


async def run_task(task: BackgroundTask, process: Process, what: str, *, limit: timedelta, failed: Failed) -> None:
    """Run a background task until it is cancelled, or fails without a period.

    Args:
        what: The task in messages, `the task "prices" of operator shops`.
        limit: How long one call of a timer may take.
        failed: Records a failure; of failures of a timer in a row, the first one.
    """
    if task.every is None:
        try:
            with _failing_if_cancelled():
                await task.run(process)
        except Exception as error:
            error.add_note(f"{what} failed")
            await failed(f"{what} failed: {failure_text(error)}", True)  # noqa: FBT003 (its one meaning is in the name)
            raise
        _log.info("%s has ended", what)
        # The end of a supervised task would end the process.
        await asyncio.get_running_loop().create_future()
    else:
        await _run_timer(partial(task.run, process), task.every, what, limit=limit, failed=failed)


async def _run_timer(
    call: Callable[[], Awaitable[None]], every: timedelta, what: str, *, limit: timedelta, failed: Failed
) -> None:
    """Call a function at once and once per period, until cancelled."""
    loop = asyncio.get_running_loop()
    is_failing = False
    while True:
        due = loop.time() + every.total_seconds()
        term = asyncio.timeout(limit.total_seconds())
        try:
            async with term:
                await call()
        except (Exception, asyncio.CancelledError) as error:
            if is_cancelled(error):
                raise
            problem = f"the call took longer than {limit}" if term.expired() else failure_text(error)
            _log.exception("%s failed, and is called again after its period: %s", what, problem)
            if not is_failing:
                is_failing = True
                await failed(f"{what} failed: {problem}", False)  # noqa: FBT003 (likewise)
        else:
            if is_failing:
                _log.info("%s succeeds again", what)
            is_failing = False
        await asyncio.sleep(max(0.0, due - loop.time()))
