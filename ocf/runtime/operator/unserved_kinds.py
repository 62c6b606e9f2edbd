"""Kinds in `uncached` that the API server did not serve when a reconcile requested them.

Such a kind has no informer that would look for it. Without a look, an owner that failed because of it would wait for
its next retry, which may be hours away when the kind is installed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ocf.cluster.cache import CachedCluster
    from ocf.runtime.operator.observed_versions import Followed
    from ocf.runtime.operator.operator import Operator
    from ocf.runtime.operator.supervised_tasks import StartTask

__all__ = ["UnservedKinds"]


class UnservedKinds:
    """Waits for kinds, one wait for each, and reports those that are served again.

    Args:
        enqueue: Called with what is served again.
    """

    def __init__(self, operator: Operator[Any], cache: CachedCluster, enqueue: Callable[[Followed], None]) -> None:
        self._operator = operator
        self._cache = cache
        self._enqueue = enqueue
        self._waits: dict[Followed, Callable[[], None]] = {}
        """Each with the function that ends it."""

    def look_for(self, scope: Followed, start: StartTask | None) -> None:
        """Wait for a kind if it has no cache and is not served; whether it is, is found out in a task.

        Args:
            scope: What was requested, and not found: the object or the kind.
        """
        if start is not None and scope[:2] in self._cache.uncached and scope not in self._waits:
            self._waits[scope] = start(self._wait(scope), f"{self._operator.name} looks for {scope[1]}")

    def release(self, used: Collection[Followed]) -> None:
        """End the waits for what no owner requests any more."""
        for scope in self._waits.keys() - used:
            self._waits.pop(scope)()

    async def _wait(self, scope: Followed) -> None:
        if await self._cache.missing_kinds.until_served(*scope[:2]):
            self._enqueue(scope)
        # Its task must not return.
        self._waits.pop(scope)()
        await asyncio.sleep(0)
