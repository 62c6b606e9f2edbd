"""Operating the controller: who leads works, whoever lost the lead begins anew without memory, a stop is graceful."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from ocf.cluster import Cluster
from ocf.concepts import Clock, Recorder, SystemClock
from ocf.controllers.hpa.controller import HpaController
from ocf.controllers.hpa.reporter import COMPONENT
from ocf.errors import LeaseLostError
from ocf.runtime.events import broadcasting_events
from ocf.runtime.leader import Timing, lead

__all__ = ["Election", "Operator"]

Make: TypeAlias = Callable[[Cluster, Recorder | None], HpaController]
"""Makes the controller of one term, for a cluster that refuses writes once the term is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """How a leader is elected.

    Args:
        name: Name of the lease.
        namespace: Where it is.
        identity: Who we are; empty makes one up.
        timing: How long things last.
    """

    name: str
    namespace: str
    identity: str = ""
    timing: Timing = field(default_factory=Timing)


class Operator:
    """Runs a controller, term after term, until stopped.

    Args:
        cluster: The cluster.
        make: Makes the controller of one term.
        election: How a leader is elected; None works without.
        posts: Whether events are posted.
        clock: Stamps events, and measures leases.
    """

    def __init__(
        self,
        cluster: Cluster,
        make: Make,
        *,
        election: Election | None = None,
        posts: bool = True,
        clock: Clock | None = None,
    ) -> None:
        self._cluster = cluster
        self._make = make
        self._election = election
        self._posts = posts
        self._clock = clock or SystemClock()
        self._controller: HpaController | None = None

    def unready(self) -> str:
        """Say why it is not ready; empty if it works, or waits to lead."""
        return self._controller.not_ready() if self._controller is not None else ""

    def stuck(self) -> str:
        """Say whether a round does not end; empty if all is well."""
        return self._controller.stuck() if self._controller is not None else ""

    async def run(self, stopped: asyncio.Event) -> None:
        """Work until stopped, or cancelled.

        Rounds that are under way when it is stopped end, events are posted, and the lease is given back.

        Args:
            stopped: Set to stop.

        Raises:
            ConfigError: If the controller cannot work in this cluster.
        """
        terms = asyncio.create_task(self._terms(stopped), name="terms")
        stopping = asyncio.create_task(stopped.wait(), name="stop")
        try:
            await asyncio.wait({terms, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not terms.done():
                if self._controller is not None and self._controller.working:
                    self._controller.stop()
                else:
                    terms.cancel()
            await asyncio.wait({terms})
            if not terms.cancelled():
                terms.result()
        finally:
            for task in (terms, stopping):
                task.cancel()
            await asyncio.wait({terms, stopping})

    async def _terms(self, stopped: asyncio.Event) -> None:
        election = self._election
        if election is None:
            await self._term(self._cluster)
            return
        while not stopped.is_set():
            with suppress(LeaseLostError):
                async with lead(
                    self._cluster,
                    election.name,
                    namespace=election.namespace,
                    identity=election.identity,
                    clock=self._clock,
                    timing=election.timing,
                ) as leadership:
                    await self._term(leadership.cluster)

    async def _term(self, cluster: Cluster) -> None:
        if not self._posts:
            await self._with(self._make(cluster, None))
            return
        async with broadcasting_events(cluster, controller=COMPONENT, clock=self._clock) as events:
            await self._with(self._make(cluster, events))

    async def _with(self, controller: HpaController) -> None:
        self._controller = controller
        try:
            await controller.run()
        finally:
            self._controller = None
