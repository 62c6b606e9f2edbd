"""One process of an operator, which may die at a write, and the world that outlives it."""

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ocf.cluster import ApplyCache, Cluster, Request, Verb
from ocf.cluster.interceptor import InterceptingCluster, is_write, key_of
from ocf.errors import ApiError, NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey, get_field

__all__ = ["Disturbance", "SimulatedCluster", "SimulatedCrash", "SimulatedProcess"]


class Disturbance(StrEnum):
    """What happens to a write."""

    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    LOST_REPLY = "lost reply of"
    REFUSED = "refused"

    @property
    def is_crash(self) -> bool:
        """Whether the process dies of it; otherwise it gets an error."""
        return self in (Disturbance.CRASH_BEFORE, Disturbance.CRASH_AFTER)

    @property
    def is_done(self) -> bool:
        """Whether the write reaches the cluster."""
        return self in (Disturbance.CRASH_AFTER, Disturbance.LOST_REPLY)


class SimulatedCrash(BaseException):
    """The process that sent the request is dead; no `Exception`, because what handles errors must not survive it."""


@dataclass(slots=True)
class SimulatedCluster:
    """A cluster, and what an operator did in it.

    Args:
        cluster: The cluster itself.
        writes: What the operator sent, or was about to send, in order.
        creates: How often it created each object, by identity.
        deletes: How often it deleted each object, by identity.
    """

    cluster: Cluster
    writes: list[Request] = field(default_factory=list)
    creates: Counter[str] = field(default_factory=Counter)
    deletes: Counter[str] = field(default_factory=Counter)


class SimulatedProcess(InterceptingCluster):
    """The cluster of a world, as one process of the operator sees it.

    Args:
        world: The world.
        disturbance: What happens to one of the world's writes; None leaves them all alone.
        number: To which, from 1.

    Attributes:
        dead: Whether the process is: then nothing that it asks arrives.
    """

    def __init__(self, world: SimulatedCluster, disturbance: Disturbance | None = None, number: int = 0) -> None:
        super().__init__(world.cluster, apply_cache=ApplyCache())
        self._world = world
        self._disturbance = disturbance
        self._number = number
        self.dead = False

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        """Send a request, unless the process is dead or dies of it."""
        if self.dead:
            raise SimulatedCrash("the process is dead, its requests do not arrive")
        if not is_write(request):
            return await send()
        self._world.writes.append(request)
        if self._disturbance is None or len(self._world.writes) != self._number:
            return await self._counted(request, send)
        return await self._disturbed(self._disturbance, request, send)

    async def _disturbed(self, disturbance: Disturbance, request: Request, send: Callable[[], Awaitable[Any]]) -> None:
        if disturbance.is_done:
            # Whether the server took it or not, nobody gets to know.
            with suppress(ApiError):
                await self._counted(request, send)
        if disturbance.is_crash:
            self.dead = True
            raise SimulatedCrash(f"{disturbance} a write")
        raise ServerError(
            "the server is currently unable to handle the request", code=0 if disturbance.is_done else 503
        )

    async def _counted(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        live = await self._live(request)
        answer = await send()
        if request.verb is Verb.DELETE:
            # A second delete of an object that waits for its finalizers deletes nothing more.
            if live is not None and get_field(live, ("metadata", "deletionTimestamp")) is None:
                self._world.deletes[str(key_of(request))] += 1
        elif live is None:
            self._world.creates[str(ObjectKey.of(answer))] += 1
        return answer

    async def _live(self, request: Request) -> Manifest | None:
        try:
            return await self._inner.get(key_of(request))
        except NotFoundError:
            return None
