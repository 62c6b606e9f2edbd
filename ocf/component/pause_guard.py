"""The cluster of a reconcile, which sends no write once the owner is paused.

A pause may come between two writes of one reconcile. A write that was sent before the pause was seen is not taken back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ocf.cluster import Cluster, InterceptingCluster, ListOptions, ObjectList, Request, Subresource
from ocf.cluster.interceptor import is_write
from ocf.cluster.packed import PackedList, list_packed
from ocf.cluster.protocol import DEFAULT_LIST_OPTIONS
from ocf.objects import Manifest, ObjectKey

__all__ = ["PauseGuard"]


class PauseGuard(InterceptingCluster):
    """Rejects the writes of a paused owner.

    Args:
        require_running: Raises an error if the owner is paused.
    """

    def __init__(self, cluster: Cluster, require_running: Callable[[], None]) -> None:
        super().__init__(cluster)
        self._require_running = require_running

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        """Read one object, or its Scale."""
        # Reads are most requests of a reconcile, so they are not described as a `Request`.
        return await self._inner.get(key, subresource=subresource)

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        """Read the objects of a kind."""
        return await self._inner.list(api_version, kind, options)

    async def list_packed(self, api_version: str, kind: str, namespace: str = "") -> PackedList | None:
        """Read the objects of a kind as a cache holds them."""
        return await list_packed(self._inner, api_version, kind, namespace)

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        """Send a request, unless it is a write for a paused owner."""
        if is_write(request):
            self._require_running()
        return await send()
