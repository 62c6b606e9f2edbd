"""Task group that fails if any task ends early.

`asyncio.TaskGroup` treats a cancelled task as done, so an operator whose watch was cancelled would keep running without
events. Here the end of any task, by an error, by cancellation or by returning, ends the block.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from ocf.concepts.tracing import background_context
from ocf.errors import OcfError

__all__ = ["StartTask", "supervised_tasks"]

StartTask: TypeAlias = Callable[[Coroutine[Any, Any, None], str], Callable[[], None]]
"""Starts a task with a name, and returns the function that ends it before the block ends."""


@asynccontextmanager
async def supervised_tasks() -> AsyncIterator[StartTask]:
    """Run tasks for as long as the block runs.

    Yields:
        The function that starts a task; leaving the block cancels all tasks.

    Raises:
        ExceptionGroup: With the error of a task, or with an `OcfError` if it was cancelled or returned; the block is
            cancelled then.

    Example:
        >>> async def brief() -> None: ...
        >>> async def main() -> None:
        ...     async with supervised_tasks() as start:
        ...         start(brief(), "brief")
        ...         await asyncio.sleep(1)
        >>> try:
        ...     asyncio.run(main())
        ... except* OcfError as group:
        ...     print(group.exceptions[0])
        task "brief" ended unexpectedly
    """
    block = asyncio.current_task()
    lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    started: set[asyncio.Task[None]] = set()

    def note(task: asyncio.Task[None]) -> None:
        ending = lost.done() or block is None or block.cancelling()
        if not ending and (task.cancelled() or task.exception() is None):
            lost.set_result(task.get_name())

    async with asyncio.TaskGroup() as tasks:

        def start(work: Coroutine[Any, Any, None], name: str) -> Callable[[], None]:
            task = tasks.create_task(work, name=name, context=background_context())
            task.add_done_callback(note)
            started.add(task)

            def end() -> None:
                task.remove_done_callback(note)
                started.discard(task)
                task.cancel()

            return end

        guard = tasks.create_task(_fail(lost), name="guard")
        try:
            yield start
        finally:
            lost.cancel()
            for task in (guard, *started):
                task.cancel()


async def _fail(lost: asyncio.Future[str]) -> None:
    raise OcfError(f'task "{await lost}" ended unexpectedly')
