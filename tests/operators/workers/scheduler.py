"""The API of the schedulers, which are other processes: they answer late, wrongly, or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from aiohttp import ClientError, ClientSession, ClientTimeout

from ocf.component import ContextKey
from ocf.errors import OcfError
from ocf.runtime.operator import Process

__all__ = ["SCHEDULERS", "Connect", "HttpSchedulers", "SchedulerError", "Schedulers", "opening", "scheduler_name"]

TIME_LIMIT: Final = 5.0
Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[ClientSession]]


class SchedulerError(OcfError):
    """A scheduler has not answered, or not what it was asked."""


class Schedulers(Protocol):
    """What is asked of the scheduler of a cluster; each method may raise a `SchedulerError`."""

    async def choose(self, cluster: str, namespace: str, workers: Sequence[str]) -> str:
        """Return the worker that is missed least; another call may return another one."""
        ...

    async def retire(self, cluster: str, namespace: str, workers: Sequence[str]) -> None:
        """Let workers hand over what they hold, and give them no more work; a second call changes nothing."""
        ...

    async def desired(self, cluster: str, namespace: str) -> int:
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
        async with connect() as session:
            process.values[SCHEDULERS] = HttpSchedulers(session)
            yield

    return lifespan


@dataclass(frozen=True, slots=True)
class HttpSchedulers:
    """The schedulers behind their Services."""

    session: ClientSession

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
        try:
            limit = ClientTimeout(total=TIME_LIMIT)
            async with self.session.request(method, url, json=body, timeout=limit) as answer:
                answer.raise_for_status()
                return await answer.json()
        except TimeoutError as error:
            raise SchedulerError(f"{url}: no answer within {TIME_LIMIT:g} s") from error
        except (ClientError, ValueError) as error:
            raise SchedulerError(f"{url}: {getattr(error, 'status', type(error).__name__)}") from error
