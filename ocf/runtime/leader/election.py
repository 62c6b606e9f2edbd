"""`lead`: work as long as a lease is held.

The work is the body of a block, and the lease is its deadline: every renewal moves the deadline on. So nothing has to
happen for the work to end in time. Whatever keeps the lease from being renewed, an error, a silent server, a task that
died, the deadline comes.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from ocf.cluster import Cluster
from ocf.concepts import Clock, SystemClock
from ocf.concepts.backoff import with_jitter
from ocf.errors import ApiError, LeaseLostError
from ocf.objects import ObjectKey
from ocf.runtime.leader.elector import Elector
from ocf.runtime.leader.timing import Timing
from ocf.runtime.leader.write_fence import FencedCluster

__all__ = ["Leadership", "lead"]

_log: Final = logging.getLogger(__name__)

_DEFAULT: Final = Timing()


@dataclass(frozen=True, slots=True)
class Leadership:
    """What a leader has.

    Args:
        cluster: The cluster, which refuses to be written to from the moment at which the lease is lost.
        identity: Who leads.
    """

    cluster: Cluster
    identity: str


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

    The block is cancelled when the lease cannot be renewed in time, or is somebody else's. What it started must end
    with it: tasks in a `asyncio.TaskGroup` do. On leaving the block otherwise, the lease is given back.

    Semantics: client-go's `tools/leaderelection` with `ReleaseOnCancel`, but a lease counts from before it was asked
    for, and the work ends at the renew deadline and not a retry period later.

    Args:
        cluster: Where the lease is.
        name: Name of the lease, one for each operator.
        namespace: Where it is.
        identity: Who we are, which no other process may be; by default the machine's name and something random.
        clock: Measures how long others have not renewed; the machine's by default.
        timing: How long things last.
        random: Draws a number from 0 up to 1.

    Yields:
        What a leader has; write through its `cluster`.

    Raises:
        LeaseLostError: If the lease was lost. It is over with the block; come back to wait for the next one.

    Example:
        >>> from ocf.embedded import EmbeddedCluster
        >>> async def operate() -> str:
        ...     async with lead(EmbeddedCluster(), "shops", namespace="default", identity="one") as leadership:
        ...         return leadership.identity
        >>> asyncio.run(operate())
        'one'
    """
    identity = identity or f"{socket.gethostname()}_{uuid.uuid4()}"
    key = ObjectKey("coordination.k8s.io/v1", "Lease", name, namespace)
    elector = Elector(cluster, key, identity, clock or SystemClock(), timing)
    await _acquire(elector, random)
    _log.info("leading: %s holds the lease %s/%s", identity, namespace, name)
    term = asyncio.timeout(_seconds_left(elector))
    try:
        async with term:
            renewing = asyncio.create_task(_renew(elector, term))
            try:
                yield Leadership(FencedCluster(cluster, lambda: elector.holds, key), identity)
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


def _seconds_left(elector: Elector) -> float:
    """Return for how many seconds the lease is ours."""
    return max(0.0, (elector.valid_until - elector.clock.elapsed()).total_seconds())


async def _acquire(elector: Elector, random: Callable[[], float]) -> None:
    while not await _attempt(elector):
        wait = with_jitter(elector.timing.retry_period, elector.timing.jitter, random)
        await asyncio.sleep(wait.total_seconds())


async def _renew(elector: Elector, term: asyncio.Timeout) -> None:
    """Renew until cancelled, and move the end of the term on; end it at once if somebody else leads."""
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
    """Try to take or renew the lease; what the cluster has against it is told, and counts as no."""
    try:
        async with asyncio.timeout(elector.timing.attempt.total_seconds()):
            return await elector.attempt()
    except (ApiError, TimeoutError) as error:
        _log.warning("the lease %s cannot be had: %s", elector.key, str(error) or "no answer arrived in time")
        return False


async def _release(elector: Elector) -> None:
    try:
        async with asyncio.timeout(min(_seconds_left(elector), elector.timing.attempt.total_seconds())):
            await elector.release()
    except (ApiError, TimeoutError) as error:
        _log.warning("the lease %s is not given back, others wait for its end: %s", elector.key, error)
