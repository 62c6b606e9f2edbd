"""`LeaderRunner`: run something for each term as a leader, until stopped.

The part that every controller process has, whatever it runs: the lease, the terms, the stop signal, and the state of
the term for the probes. `Manager` runs operators with it, and `ocf.controllers.hpa` the HPA controller.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Protocol, TypeAlias

from ocf.cluster import Cluster
from ocf.concepts import Clock, SystemClock
from ocf.concepts.tracing import background_context
from ocf.errors import LeaseLostError
from ocf.runtime.leader import lead
from ocf.runtime.leader.election import Leadership
from ocf.runtime.operator.options import Lease

__all__ = ["LeaderRunner", "OpenTerm", "Runnable"]

_log: Final = logging.getLogger(__name__)

# Seconds that a term may take to end after its lease was lost.
_TERM_END: Final = 60.0


class Runnable(Protocol):
    """Something that a process runs while it leads."""

    async def run(self) -> None:
        """Run until `stop` is called, or cancelled."""
        ...

    def stop(self) -> None:
        """Start nothing new; `run` returns once the running reconciles have ended. May be called at any time."""
        ...

    def ready(self) -> str:
        """Return why it is not ready; empty if it is."""
        ...

    def live(self) -> str:
        """Return why the process should be restarted; empty if it should not."""
        ...


OpenTerm: TypeAlias = Callable[[Cluster], AbstractAsyncContextManager[Runnable]]
"""Opens the runnable of a term on a cluster that rejects writes once the lease is lost; closed when the term ends."""


class LeaderRunner:
    """Runs a `Runnable` for each term as a leader; without a lease, for a single term.

    A lost lease cancels the run of its term. The next term gets a new runnable, so nothing is kept in memory from one
    term to the next.

    Args:
        cluster: The cluster of the lease and of the terms.
        open_term: Opens the runnable of a term.
        lease: The lease that a leader holds; None runs without leader election.
        clock: Measures how long other holders of the lease have not renewed it; the system clock by default.
        random: Draws a number from 0 up to 1.
        stopped: An event that the caller may set instead of calling `stop`.

    Example:
        >>> from ocf_server import EmbeddedCluster
        >>> class Job:
        ...     async def run(self) -> None:
        ...         runner.stop()
        ...     def stop(self) -> None: ...
        ...     def ready(self) -> str:
        ...         return ""
        ...     def live(self) -> str:
        ...         return ""
        >>> @asynccontextmanager
        ... async def term(cluster: Cluster) -> AsyncIterator[Job]:
        ...     yield Job()
        >>> runner = LeaderRunner(EmbeddedCluster(), term)
        >>> asyncio.run(runner.run())
    """

    def __init__(
        self,
        cluster: Cluster,
        open_term: OpenTerm,
        *,
        lease: Lease | None = None,
        clock: Clock | None = None,
        random: Callable[[], float] = random.random,
        stopped: asyncio.Event | None = None,
    ) -> None:
        self._cluster = cluster
        self._open_term = open_term
        self._lease = lease
        self._clock = clock or SystemClock()
        self._random = random
        self._stop = stopped or asyncio.Event()
        self._running: Runnable | None = None
        self._leadership: Leadership | None = None

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()

    def ready(self) -> str:
        """Return why the runnable is not ready; empty if it is, or if the process waits for the lease."""
        return self._running.ready() if self._running is not None else ""

    def live(self) -> str:
        """Return why the process should be restarted; empty if it should not."""
        return self._running.live() if self._running is not None else ""

    def lost(self) -> str:
        """Return that a term has not ended long after its lease was lost: a task of it ignores its cancellation."""
        overdue = self._leadership.overdue() if self._leadership is not None else 0.0
        if self._lease is None or overdue < _TERM_END:
            return ""
        return (
            f"the lease {self._lease.namespace}/{self._lease.name} was lost {overdue:.0f} s ago, and its term goes on"
        )

    def stop(self) -> None:
        """Stop the runnable, and release the lease; `run` then returns."""
        self._stop.set()
        if self._running is not None:
            self._running.stop()

    async def run(self) -> None:
        """Run until `stop` is called.

        Raises:
            Exception: What ended the runnable, or kept it from starting.
            asyncio.CancelledError: If cancelled; running reconciles are cancelled, too.
        """
        terms = asyncio.create_task(self._run_terms(), name="terms", context=background_context())
        stopping = asyncio.create_task(self._stop.wait(), name="stop")
        try:
            await asyncio.wait({terms, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if self._stop.is_set() and self._running is not None:
                self._running.stop()
            if self._running is not None or terms.done():
                await terms
        finally:
            # Waiting for a lease, or for what a term needs to start, has no end of its own.
            for task in (terms, stopping):
                task.cancel()
            await asyncio.gather(terms, stopping, return_exceptions=True)

    async def _run_terms(self) -> None:
        while not self._stop.is_set():
            try:
                async with self._leading() as cluster, self._open_term(cluster) as runnable:
                    await self._run_term(runnable)
            except LeaseLostError as error:
                _log.warning("%s", error)
            else:
                if self._lease is None:
                    return

    async def _run_term(self, runnable: Runnable) -> None:
        if self._stop.is_set():
            return
        self._running = runnable
        try:
            await runnable.run()
        finally:
            self._running = None

    @asynccontextmanager
    async def _leading(self) -> AsyncIterator[Cluster]:
        lease = self._lease
        if lease is None:
            yield self._cluster
            return
        async with lead(
            self._cluster,
            lease.name,
            namespace=lease.namespace,
            identity=lease.identity,
            clock=self._clock,
            timing=lease.timing,
            random=self._random,
        ) as leadership:
            self._leadership = leadership
            try:
                yield leadership.cluster
            finally:
                self._leadership = None
