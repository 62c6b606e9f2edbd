"""Kinds that the API server does not serve, and how often it is asked for them.

Owners may name any number of kinds whose definitions do not exist, and they may never come. So the informers of such
kinds do not each list again: one look at the discovery documents is for all of them, and the time until the next one
grows up to `CacheTiming.longest_delay`, however many kinds are missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ocf.concepts.tracing import background_context
from ocf.errors import ApiError, NotFoundError

if TYPE_CHECKING:
    from ocf.cluster.cache.timing import CacheTiming
    from ocf.cluster.protocol import Cluster

__all__ = ["MissingKinds"]


@dataclass(slots=True, eq=False)
class _Missing:
    """A kind that was not served.

    Args:
        looks: How often in a row it was not.
    """

    looks: int
    found: asyncio.Event = field(default_factory=asyncio.Event)


class MissingKinds:
    """Waits for kinds that are not served yet."""

    def __init__(self, cluster: Cluster, timing: CacheTiming) -> None:
        self._cluster = cluster
        self._timing = timing
        # In order of arrival, so that runs in virtual time are the same each time.
        self._missing: dict[_Missing, tuple[str, str]] = {}
        """Who waits for a kind, with the kind."""
        self._task: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._planned_for: int | None = None
        """The number of looks that the present delay is for; None while no delay goes on."""

    async def served_of(self, kinds: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        """Return which kinds the API server serves now; those of a failed request are not among them."""
        found: set[tuple[str, str]] = set()
        for kind in sorted(kinds):
            with suppress(ApiError):
                await self._cluster.is_namespaced(*kind)
                found.add(kind)
        return found

    async def until_served(self, api_version: str, kind: str) -> bool:
        """Wait until the API server serves a kind, however often it cannot be asked; return whether it did not."""
        looks = 0
        while True:
            try:
                await self._cluster.is_namespaced(api_version, kind)
            except ApiError:
                looks += 1
                await self.served((api_version, kind), looks)
            else:
                return looks > 0

    async def served(self, kind: tuple[str, str], looks: int) -> None:
        """Wait until a kind may be served: a look has found it, or has failed for another reason.

        Args:
            looks: How often in a row it was not served, at least 1.
        """
        missing = _Missing(looks)
        self._missing[missing] = kind
        if self._task is None or (self._planned_for or 0) > looks:
            # A kind that has just been named is looked for soon, and the others with it.
            self._stop()
            self._task = asyncio.create_task(self._look(), name="discovery of kinds", context=background_context())
        try:
            await missing.found.wait()
        finally:
            del self._missing[missing]
            if not self._missing:
                self._stop()

    async def close(self) -> None:
        """Look no more; the informers that wait are stopped before."""
        self._stop()
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _stop(self) -> None:
        if self._task is not None:
            self._ending.add(self._task)
            self._task.add_done_callback(self._ending.discard)
            self._task.cancel()
        self._task = self._planned_for = None

    async def _look(self) -> None:
        while self._missing:
            self._planned_for = min(each.looks for each in self._missing)
            await self._timing.sleep(self._timing.delay(self._planned_for))
            self._planned_for = None
            looked_for = dict(self._missing)
            kinds = dict.fromkeys(looked_for.values())
            # At once, so that the client answers all of them from one request.
            answers = await asyncio.gather(
                *(self._cluster.is_namespaced(*kind) for kind in kinds), return_exceptions=True
            )
            absent = {kind for kind, answer in zip(kinds, answers, strict=True) if isinstance(answer, NotFoundError)}
            for missing, kind in looked_for.items():
                if kind in absent:
                    missing.looks += 1
                else:
                    missing.found.set()
            # Those that were found leave before the next delay is planned.
            await asyncio.sleep(0)
