"""Workers that process the keys of a queue, one at a time each, until the queue is closed.

An error of `handle` does not end a worker; its cancellation does. A `CancelledError` that `handle` raises because
something inside was cancelled counts as an error.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterator
from datetime import timedelta
from typing import Final, TypeVar

from ocf.errors import ApiError, ConfigError, NotReadyError, OcfError, RetryError, leaf_errors
from ocf.runtime.workqueue.metrics import QueueMetrics
from ocf.runtime.workqueue.queue import QueueClosedError, WorkQueue

__all__ = ["asked_delay", "is_retry", "retry_delay", "work"]

K = TypeVar("K", bound=Hashable)

_log: Final = logging.getLogger(__name__)
_SHUTDOWN_TIMEOUT: Final = timedelta(seconds=25)


async def work(
    queue: WorkQueue[K],
    handle: Callable[[K], Awaitable[timedelta | None]],
    *,
    workers: int = 1,
    limit: timedelta | None = None,
    shutdown_timeout: timedelta = _SHUTDOWN_TIMEOUT,
    metrics: QueueMetrics | None = None,
) -> None:
    """Process the keys of a queue until it is closed.

    After a success the key's failures are reset, and the returned delay requeues it. After an error it is requeued with
    a growing delay, and not before a server's `Retry-After`. Processing a key cancels its scheduled requeue: `handle`
    returns the next one.

    Args:
        handle: Processes one key; returns the delay until the key is requeued, None to wait until it is added.
        workers: How many keys are processed at once.
        limit: How long `handle` may take before it is cancelled, which is an error; None for no limit.
        shutdown_timeout: How long running calls of `handle` may continue after the queue was closed, before they are
            cancelled.
        metrics: Metrics of the reconciles, under the queue's name; None collects none.

    Raises:
        ConfigError: If there is not at least one worker.
        OcfError: If a worker ended although the queue is not closed.
        asyncio.CancelledError: If cancelled; all running calls of `handle` are cancelled, too.

    Example:
        >>> async def main() -> None:
        ...     queue: WorkQueue[str] = WorkQueue("shops")
        ...     async def handle(key: str) -> None:
        ...         print(key)
        ...         queue.close()
        ...     queue.add("corner")
        ...     await work(queue, handle)
        >>> asyncio.run(main())
        corner
    """
    if workers < 1:
        raise ConfigError(f"there must be at least 1 worker, got {workers}")
    tasks = [
        asyncio.create_task(_worker(queue, handle, limit, metrics), name=f"worker {number} of {queue.name}")
        for number in range(workers)
    ]
    closing = asyncio.create_task(queue.closing(), name=f"end of {queue.name}")
    try:
        await asyncio.wait([*tasks, closing], return_when=asyncio.FIRST_COMPLETED)
        early = not queue.closed
        queue.close()
        await asyncio.wait(tasks, timeout=shutdown_timeout.total_seconds())
    finally:
        queue.close()
        for task in (*tasks, closing):
            task.cancel()
        ends = await asyncio.gather(*tasks, closing, return_exceptions=True)
    for end in ends:
        if isinstance(end, BaseException) and not isinstance(end, asyncio.CancelledError):
            raise end
    if early:
        # By an error that must not be caught, or because the worker was cancelled from outside.
        raise OcfError(f"a worker of {queue.name} ended unexpectedly")


async def _worker(
    queue: WorkQueue[K],
    handle: Callable[[K], Awaitable[timedelta | None]],
    limit: timedelta | None,
    metrics: QueueMetrics | None,
) -> None:
    while True:
        try:
            key = await queue.get()
        except QueueClosedError:
            return
        queue.unschedule(key)
        began = asyncio.get_running_loop().time()
        result = "error"
        try:
            result = await _work_on(queue, key, handle, limit)
        finally:
            queue.done(key)
            if metrics is not None:
                metrics.reconciled(queue.name, result, asyncio.get_running_loop().time() - began)


async def _work_on(
    queue: WorkQueue[K], key: K, handle: Callable[[K], Awaitable[timedelta | None]], limit: timedelta | None
) -> str:
    """Process one key, and requeue it if needed; return the result as a label value of the metrics."""
    term = asyncio.timeout(None if limit is None else limit.total_seconds())
    try:
        async with term:
            again = await handle(key)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        _failed(queue, key, error)
        return "error"
    except Exception as error:  # noqa: BLE001 (no error of `handle` may end a worker)
        if isinstance(error, TimeoutError) and term.expired():
            error.add_note(f"the reconcile exceeded its timeout of {limit}")
        _failed(queue, key, error)
        return "requeue_after" if is_retry(error) else "error"
    queue.forget(key)
    if again is None:
        return "success"
    queue.add_after(key, again)
    return "requeue_after"


def _failed(queue: WorkQueue[K], key: K, error: BaseException) -> None:
    asked = asked_delay(error)
    delay = queue.retry(key, at_least=timedelta(seconds=asked or 0), after=retry_delay(error))
    failures, wait = queue.failures(key), f"{delay.total_seconds():.3g} s"
    if is_retry(error) or isinstance(error, NotReadyError):
        _log.info("%s: %s is not ready, again in %s: %s", queue.name, key, wait, error)
    elif all(isinstance(one, OcfError) for one in leaf_errors(error)):
        text = "; ".join(dict.fromkeys(map(str, leaf_errors(error))))
        _log.warning("%s: %s failed (%d in a row), again in %s: %s", queue.name, key, failures, wait, text)
        # Texts name exceptions in an author's functions by their type only.
        _log.debug("%s: %s failed", queue.name, key, exc_info=error)
    else:
        _log.error("%s: %s failed (%d in a row), again in %s", queue.name, key, failures, wait, exc_info=error)


def asked_delay(error: BaseException) -> float | None:
    """Return the `Retry-After` of an error, of the errors in a group, or of a cause.

    Args:
        error: The raised error.

    Returns:
        Seconds, the longest of several; None if no server asked to wait.

    Example:
        >>> from ocf.errors import TooManyRequestsError
        >>> asked_delay(ExceptionGroup("both", [ValueError(), TooManyRequestsError("slow down", retry_after=3)]))
        3
    """
    asked = [one.retry_after for one in _all(error) if isinstance(one, ApiError) and one.retry_after is not None]
    return max(asked, default=None)


def is_retry(error: BaseException) -> bool:
    """Return whether an error only asks for a later call: a `RetryError`, or a group of such errors."""
    return all(isinstance(one, RetryError) for one in leaf_errors(error))


def retry_delay(error: BaseException) -> timedelta | None:
    """Return the delay that a `RetryError` asks for, or the longest of several; None if none asks for one."""
    asked = [one.after for one in leaf_errors(error) if isinstance(one, RetryError) and one.after is not None]
    return max(asked, default=None) if is_retry(error) else None


def _all(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, the errors of its group, and its causes."""
    yield error
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    for one in (*inner, *([error.__cause__] if error.__cause__ is not None else [])):
        yield from _all(one)
