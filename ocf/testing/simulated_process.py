"""Simulated operator process that may crash at a write, and the cluster that outlives it."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from ocf.cluster import ApplyCache, Cluster, Request, Verb
from ocf.cluster.interceptor import InterceptingCluster, is_write, key_of, wrapped_clusters
from ocf.concepts import AliveStatus, StatusReport
from ocf.concepts.external import GROUP, Client, Identity
from ocf.errors import ApiError, ConflictError, NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.paths import get_field

__all__ = [
    "Disturbance",
    "SimulatedCluster",
    "SimulatedCrash",
    "SimulatedProcess",
    "disturbed_call",
    "disturbed_client",
]

DesiredT = TypeVar("DesiredT")
ObservedT = TypeVar("ObservedT")
T = TypeVar("T")


class Disturbance(StrEnum):
    """Disturbance of a write."""

    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    LOST_REPLY = "lost reply of"
    REJECTED = "rejected"
    CONFLICT = "conflict on"
    CANCELLED = "cancelled"

    @property
    def is_crash(self) -> bool:
        """Whether the process crashes; otherwise it gets an error."""
        return self in (Disturbance.CRASH_BEFORE, Disturbance.CRASH_AFTER)

    @property
    def is_done(self) -> bool:
        """Whether the write reaches the cluster; that of a cancelled task does, although it gets no response."""
        return self in (Disturbance.CRASH_AFTER, Disturbance.LOST_REPLY, Disturbance.CANCELLED)

    @property
    def error(self) -> BaseException:
        """What the process gets instead of a response."""
        match self:
            case Disturbance.CRASH_BEFORE | Disturbance.CRASH_AFTER:
                return SimulatedCrash(f"{self} a write")
            case Disturbance.CANCELLED:
                return asyncio.CancelledError("the task was cancelled during a write")
            case Disturbance.CONFLICT:
                return ConflictError("the object has been modified", code=409, reason="Conflict")
            case _:
                return ServerError(
                    "the server is currently unable to handle the request", code=0 if self.is_done else 503
                )


class SimulatedCrash(BaseException):
    """The process that sent the request has crashed; not an `Exception`, so that no error handler can continue."""


@dataclass(slots=True)
class SimulatedCluster:
    """A cluster and the writes of an operator to it.

    Args:
        cluster: The cluster of an administrator.
        writes: The writes that the operator sent, or was about to send, in order.
        operator_cluster: The cluster with the rights of the operator; None for those of an administrator.
    """

    cluster: Cluster
    writes: list[Request] = field(default_factory=list)
    creates: Counter[str] = field(default_factory=Counter)
    deletes: Counter[str] = field(default_factory=Counter)
    operator_cluster: Cluster | None = None


class SimulatedProcess(InterceptingCluster):
    """The client of one operator process to a simulated cluster.

    Args:
        disturbance: The disturbance of one write; None for none.
        number: Number of the disturbed write, from 1.

    Attributes:
        dead: Whether the process has crashed; its requests no longer reach the cluster.
    """

    def __init__(self, simulation: SimulatedCluster, disturbance: Disturbance | None = None, number: int = 0) -> None:
        super().__init__(simulation.operator_cluster or simulation.cluster, apply_cache=ApplyCache())
        self._simulation = simulation
        self._disturbance = disturbance
        self._number = number
        self.dead = False
        self.cancelled = False

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        """Send a request, unless the process has crashed or crashes now."""
        if self.dead:
            raise SimulatedCrash("the process has crashed, its requests do not reach the cluster")
        if not is_write(request):
            return await send()
        self._simulation.writes.append(request)
        if self._disturbance is None or len(self._simulation.writes) != self._number:
            return await self._counted(request, send)
        return await self._disturbed(self._disturbance, request, send)

    async def _disturbed(self, disturbance: Disturbance, request: Request, send: Callable[[], Awaitable[Any]]) -> None:
        if disturbance.is_done:
            # The operator does not learn whether the server accepted the write.
            with suppress(ApiError):
                await self._counted(request, send)
        self.dead = disturbance.is_crash
        self.cancelled = disturbance is Disturbance.CANCELLED
        raise disturbance.error

    async def _counted(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        if request.verb is Verb.PATCH or request.subresource is not None:
            # It creates and deletes nothing.
            return await send()
        # A create succeeds only if there is no such object.
        live = None if request.verb is Verb.CREATE else await self._live(request)
        answer = await send()
        if request.verb is Verb.DELETE:
            # A second delete of an object that waits for its finalizers has no effect.
            if live is not None and get_field(live, ("metadata", "deletionTimestamp")) is None:
                self._simulation.deletes[str(key_of(request))] += 1
        elif live is None:
            self._simulation.creates[str(ObjectKey.of(answer))] += 1
        return answer

    async def call(self, request: Request, send: Callable[[], Awaitable[T]]) -> T:
        """Send a call to a system outside of the cluster, which counts as a write, and may be disturbed as one.

        Args:
            request: The call, as it is shown in the report.
        """
        self.require_running()
        self._simulation.writes.append(request)
        if self._disturbance is None or len(self._simulation.writes) != self._number:
            return await send()
        if self._disturbance.is_done:
            await send()
        self.dead = self._disturbance.is_crash
        self.cancelled = self._disturbance is Disturbance.CANCELLED
        raise self._disturbance.error

    def require_running(self) -> None:
        """Raise the crash again if the process has crashed."""
        if self.dead:
            raise SimulatedCrash("the process has crashed, its calls do not reach the system")

    async def _live(self, request: Request) -> Manifest | None:
        try:
            # The count is no request of the operator, which may lack the right to read.
            return await self._simulation.cluster.get(key_of(request))
        except NotFoundError:
            return None


def disturbed_client(cluster: Cluster, client: Client[DesiredT, ObservedT]) -> Client[DesiredT, ObservedT]:
    """Return a client of external resources whose calls are disturbed by `crash_at_each_write`, as the writes are.

    Args:
        cluster: The cluster of the run, or `context.cluster`; outside of a run, the client is returned as it is.
        client: The client; each call that applies or deletes is one write.
    """
    process = _process_of(cluster)
    return _DisturbedClient(process, client) if process is not None else client


async def disturbed_call(cluster: Cluster, name: str, send: Callable[[], Awaitable[T]]) -> T:
    """Send a call to another system, which `crash_at_each_write` disturbs as a write.

    It is for what an operator calls beside external resources, such as the scheduler that lets a worker retire. Calls
    that change nothing, such as those of a poll, are not passed through it: a run ends once none is sent any more.

    Args:
        cluster: The cluster of the run, or `context.cluster`; outside of a run, the call is sent as it is.
        name: What the report shows, the same in each run: `retire worker-1`.
        send: Sends the call; it is not awaited where the process crashes before it, or the call is rejected.

    Returns:
        What the call returns.

    Raises:
        ServerError: If the call is rejected, or its answer is lost; a `ConflictError` for a conflict. Raise the error
            of your client from it, where the operator expects one.

    Example:
        >>> from ocf_server import EmbeddedCluster
        >>> from ocf.testing import crash_at_each_write, disturbed_call
        >>> retired: list[str] = []
        >>> async def new_cluster() -> Cluster:
        ...     retired.clear()
        ...     return EmbeddedCluster()
        >>> async def reconcile(cluster: Cluster) -> None:
        ...     async def send() -> None:
        ...         retired.append("worker-1")
        ...     if not retired:
        ...         await disturbed_call(cluster, "retire worker-1", send)
        >>> report = asyncio.run(crash_at_each_write(new_cluster, reconcile, external=lambda _: [*retired]))
        >>> print(report.rows[1])
        crash after write 1, update external/Call/retire worker-1: same
    """
    process = _process_of(cluster)
    if process is None:
        return await send()
    return await process.call(Request(Verb.UPDATE, GROUP, "Call", "", name), send)


def _process_of(cluster: Cluster) -> SimulatedProcess | None:
    """Return the process whose cluster this is, or wraps, as that of a reconcile does; None if there is none."""
    return next((one for one in wrapped_clusters(cluster) if isinstance(one, SimulatedProcess)), None)


class _DisturbedClient(Client[DesiredT, ObservedT]):
    """A client of one process, which may crash before or after a call."""

    def __init__(self, process: SimulatedProcess, inner: Client[DesiredT, ObservedT]) -> None:
        self._process = process
        self._inner = inner
        self.kind = inner.kind
        self.time_limit = inner.time_limit
        self.resync = inner.resync
        self.max_calls = inner.max_calls
        self.visible_after = inner.visible_after

    async def read(self, identity: Identity) -> ObservedT | None:
        self._process.require_running()
        return await self._inner.read(identity)

    async def apply(self, identity: Identity, desired: DesiredT, observed: ObservedT | None) -> ObservedT:
        request = self._request(Verb.APPLY, identity)
        return await self._process.call(request, lambda: self._inner.apply(identity, desired, observed))

    async def delete(self, identity: Identity) -> None:
        await self._process.call(self._request(Verb.DELETE, identity), lambda: self._inner.delete(identity))

    def id_of(self, observed: ObservedT) -> str:
        return self._inner.id_of(observed)

    def key_of(self, observed: ObservedT) -> str:
        return self._inner.key_of(observed)

    def status(self, observed: ObservedT) -> StatusReport[AliveStatus]:
        return self._inner.status(observed)

    def differences(self, desired: DesiredT, observed: ObservedT) -> Sequence[str]:
        return self._inner.differences(desired, observed)

    def _request(self, verb: Verb, identity: Identity) -> Request:
        name = f"{identity.name}@{identity.target}" if identity.target else identity.name
        return Request(verb, GROUP, self.kind, "", name)
