"""The API of the schedulers, which are other processes: they answer late, wrongly, or not at all."""

from __future__ import annotations

import asyncio
from asyncio import Task, TaskGroup
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from aiohttp import ClientError, ClientSession, ClientTimeout

from ocf.component import ContextKey
from ocf.errors import OcfError
from ocf.runtime.operator import Process

__all__ = ["SCHEDULERS", "Connect", "SchedulerError", "Schedulers", "StillAskedError", "opening", "scheduler_name"]

TIME_LIMIT: Final = 5.0
MOMENT: Final = 0.2
Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[ClientSession]]


class SchedulerError(OcfError):
    """A scheduler has not answered, or not what it was asked."""


class StillAskedError(SchedulerError):
    """A scheduler has not answered yet; the next reconcile with the same question gets the answer."""


class Schedulers(Protocol):
    """What is asked of the scheduler of a cluster; each method may raise a `SchedulerError`."""

    async def choose(self, cluster: str, namespace: str, workers: Sequence[str], /) -> str:
        """Return the worker that is missed least; another call may return another one."""
        ...

    async def retire(self, cluster: str, namespace: str, workers: Sequence[str], /) -> None:
        """Let workers hand over what they hold, and give them no more work; a second call changes nothing."""
        ...

    async def desired(self, cluster: str, namespace: str, /) -> int:
        """Return how many workers the work takes now."""
        ...


SCHEDULERS: Final = ContextKey[Schedulers]("schedulers")


def scheduler_name(cluster: str) -> str:
    """Return the name of the Deployment and the Service of a scheduler."""
    return f"{cluster}-scheduler"


def opening(connect: Connect) -> Callable[[Process], AbstractAsyncContextManager[None]]:
    """Return the lifespan that opens the session with which an operator asks the schedulers."""

    @asynccontextmanager
    async def lifespan(process: Process) -> AsyncIterator[None]:
        async with connect() as session, TaskGroup() as tasks:
            process.values[SCHEDULERS] = schedulers = HttpSchedulers(session, tasks)
            yield
            schedulers.close()

    return lifespan


@dataclass(frozen=True, slots=True)
class HttpSchedulers:
    """The schedulers behind their Services; one that hangs holds up no reconcile of others.

    Args:
        tasks: Each question is a task of its own, for whose answer a reconcile waits for a moment only.
    """

    session: ClientSession
    tasks: TaskGroup
    _asked: dict[str, tuple[object, Task[Any]]] = field(default_factory=dict)

    def close(self) -> None:
        """Give up the questions that have no answer yet."""
        for _, task in self._asked.values():
            task.cancel()

    async def choose(self, cluster: str, namespace: str, workers: Sequence[str]) -> str:
        found = await self._ask("POST", cluster, namespace, "choose", {"workers": [*workers]})
        if found not in workers:
            raise SchedulerError(
                f"the scheduler of {cluster} chose {found!r}: it was asked to choose one of its workers"
            )
        return str(found)

    async def retire(self, cluster: str, namespace: str, workers: Sequence[str]) -> None:
        await self._ask("POST", cluster, namespace, "retire", {"workers": [*workers]})

    async def desired(self, cluster: str, namespace: str) -> int:
        found = await self._ask("GET", cluster, namespace, "desired")
        if type(found) is not int or found < 0:
            raise SchedulerError(f"the scheduler of {cluster} wants {found!r} workers: a number from 0 on was expected")
        return found

    async def _ask(self, method: str, cluster: str, namespace: str, path: str, body: object = None) -> Any:
        url = f"http://{scheduler_name(cluster)}.{namespace}/{path}"
        question, task = self._asked.get(url, (None, None))
        if task is None or question != body:
            if task is not None:
                task.cancel()
            task = self.tasks.create_task(self._send(method, url, body))
            self._asked[url] = (body, task)
            await asyncio.wait([task], timeout=MOMENT)
        if not task.done():
            raise StillAskedError(f"{url}: no answer yet")
        del self._asked[url]
        found = task.result()
        if isinstance(found, SchedulerError):
            raise found
        return found

    async def _send(self, method: str, url: str, body: object) -> Any:
        """Return the answer, or the error: one that is raised would end all tasks of the group."""
        try:
            limit = ClientTimeout(total=TIME_LIMIT)
            async with self.session.request(method, url, json=body, timeout=limit) as answer:
                answer.raise_for_status()
                return await answer.json()
        except TimeoutError:
            return SchedulerError(f"{url}: no answer within {TIME_LIMIT:g} s")
        except (ClientError, ValueError) as error:
            return SchedulerError(f"{url}: {getattr(error, 'status', type(error).__name__)}")
