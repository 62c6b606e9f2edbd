"""`lead`: run a block for as long as a lease is held.

The lease is the deadline of the block, and every renewal extends the deadline. So the block ends in time whatever
prevents a renewal: an error, a server that does not respond, or a task that has ended.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final

from ocf.cluster import Cluster, InterceptingCluster, Request
from ocf.cluster.request_purpose import Purpose, requests_for
from ocf.concepts import Clock, SystemClock
from ocf.concepts.backoff import with_jitter
from ocf.errors import ApiError, ForbiddenError, LeaseLostError
from ocf.objects import ObjectKey
from ocf.runtime.leader.elector import Elector
from ocf.runtime.leader.timing import Timing

__all__ = ["FencedCluster", "Leadership", "lead", "new_identity"]

_log: Final = logging.getLogger(__name__)

_DEFAULT: Final = Timing()


@dataclass(frozen=True, slots=True)
class Leadership:
    """The cluster and identity of a leader.

    Args:
        cluster: The cluster; it rejects writes once the lease is lost.
        identity: The identity of the leader.
        overdue: Returns for how many seconds the lease has been lost while the block has not ended; 0 while it is held.
    """

    cluster: Cluster
    identity: str
    overdue: Callable[[], float]


@asynccontextmanager
async def lead(
    cluster: Cluster,
    name: str,
    *,
    namespace: str,
    identity: str = "",
    clock: Clock | None = None,
    timing: Timing = _DEFAULT,
    random: Callable[[], float] = random.random,
) -> AsyncIterator[Leadership]:
    """Wait for a lease, and hold it for as long as the block runs.

    The block is cancelled if the lease cannot be renewed in time, or if another process takes it. Everything that the
    block starts must end with it, as tasks in an `asyncio.TaskGroup` do. When the block ends otherwise, the lease is
    released.

    Semantics: client-go's `tools/leaderelection` with `ReleaseOnCancel`, except that a lease is valid from before the
    request was sent, and the block ends at the renew deadline and not a retry period later.

    Args:
        cluster: The cluster of the lease.
        name: The name of the lease, one for each operator.
        namespace: The namespace of the lease.
        identity: The identity of this process, which must be unique; by default the host name and a random part.
        clock: Measures how long other holders have not renewed the lease; the system clock by default.
        timing: The durations of the election.
        random: Draws a number from 0 up to 1.

    Yields:
        The cluster and identity of the leader; write only through this `cluster`.

    Raises:
        LeaseLostError: If the lease is lost. Call `lead` again to wait for the next term.

    Example:
        >>> from ocf_server import EmbeddedCluster
        >>> async def operate() -> str:
        ...     async with lead(EmbeddedCluster(), "shops", namespace="default", identity="one") as leadership:
        ...         return leadership.identity
        >>> asyncio.run(operate())
        'one'
    """
    identity = identity or new_identity()
    key = ObjectKey("coordination.k8s.io/v1", "Lease", name, namespace)
    elector = Elector(cluster, key, identity, clock or SystemClock(), timing)
    await _acquire(elector, random)
    _log.info("leading: %s holds the lease %s/%s", identity, namespace, name)
    term = asyncio.timeout(_seconds_left(elector))
    try:
        async with term:
            renewing = asyncio.create_task(_renew(elector, term))
            try:
                yield Leadership(FencedCluster(cluster, lambda: elector.holds, key), identity, partial(_overdue, term))
            finally:
                renewing.cancel()
                await asyncio.gather(renewing, return_exceptions=True)
    except TimeoutError:
        if not term.expired():
            raise
        holder = f"{elector.holder} holds it" if elector.holder != identity else "it could not be renewed in time"
        raise LeaseLostError(f"{namespace}/{name}", identity, holder) from None
    finally:
        await _release(elector)


def new_identity() -> str:
    """Return an identity that no other process has."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def _seconds_left(elector: Elector) -> float:
    """Return for how many seconds this process holds the lease."""
    return max(0.0, (elector.valid_until - elector.clock.elapsed()).total_seconds())


def _overdue(term: asyncio.Timeout) -> float:
    now = asyncio.get_running_loop().time()
    return max(0.0, now - (term.when() or now))


async def _acquire(elector: Elector, random: Callable[[], float]) -> None:
    while not await _attempt(elector):
        wait = with_jitter(elector.timing.retry_period, elector.timing.jitter, random)
        left = elector.free_in
        # The lease of a holder that died is taken when it ends, and not up to a retry period later.
        await asyncio.sleep(min(wait, left).total_seconds() if left > timedelta(0) else wait.total_seconds())


async def _renew(elector: Elector, term: asyncio.Timeout) -> None:
    """Renew the lease until cancelled, and extend the term; end the term at once if another process leads."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(elector.timing.retry_period.total_seconds())
        await _attempt(elector)
        if term.expired():
            return
        term.reschedule(loop.time() + _seconds_left(elector))
        if not elector.holds:
            return


async def _attempt(elector: Elector) -> bool:
    """Try to take or renew the lease; an error is logged, and counts as a failed attempt."""
    try:
        with requests_for(Purpose.LEASE):
            async with asyncio.timeout(elector.timing.attempt.total_seconds()):
                return await elector.attempt()
    except (ApiError, TimeoutError) as error:
        _log.warning("the lease %s cannot be acquired: %s", elector.key, str(error) or "no response arrived in time")
        return False


async def _release(elector: Elector) -> None:
    try:
        with requests_for(Purpose.LEASE):
            async with asyncio.timeout(min(_seconds_left(elector), elector.timing.attempt.total_seconds())):
                await elector.release()
    except (ApiError, TimeoutError) as error:
        _log.warning("the lease %s is not released, other processes wait until it expires: %s", elector.key, error)


# Cancelling the work of a leader is not enough: the work may handle the cancellation late, or block the event loop for
# so long that it writes after the lease has expired. So the lease is checked before every write.
_FORBIDDEN: Final = 403


class FencedCluster(InterceptingCluster):
    """A cluster that rejects writes while they are not allowed; reads are always allowed.

    Args:
        allowed: Returns whether writes are allowed.
    """

    def __init__(self, cluster: Cluster, allowed: Callable[[], bool], lease: ObjectKey) -> None:
        super().__init__(cluster)
        self._allowed = allowed
        self._lease = lease

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        """Send the request if it is a read, or if writes are allowed."""
        if not (request.verb.is_read or self._allowed()):
            raise ForbiddenError(
                f"the lease {self._lease.namespace}/{self._lease.name} is lost, so this process must not write",
                code=_FORBIDDEN,
                reason="LeaseLost",
            )
        return await send()
