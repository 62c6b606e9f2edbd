"""The cluster that functions of webhooks read: the cache of the process, whose misses are asked of the API server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from ocf.cluster import Cluster, InterceptingCluster, Subresource
from ocf.cluster.cache import CachedCluster
from ocf.cluster.impersonation import NO_EXTRA, Impersonation, ServiceAccount
from ocf.cluster.interceptor import wrapped_clusters
from ocf.cluster.packed import PackedList, list_packed
from ocf.cluster.protocol import as_user
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey

__all__ = ["AskedOnMiss"]


# A user creates a namespace, and at once an object in it, before the cache has seen the namespace. Kubernetes' own
# admission plugin NamespaceLifecycle looks twice for the same reason.
class AskedOnMiss(InterceptingCluster):
    """A cache that asks the API server for an object that it does not have.

    Args:
        cache: The cache of the process.
        direct: The cluster without a cache.
    """

    __slots__ = ("_direct",)

    def __init__(self, cache: Cluster, direct: Cluster) -> None:
        super().__init__(cache)
        self._direct = direct

    def acting_as(
        self,
        user: str | ServiceAccount,
        *,
        groups: Sequence[str] = (),
        uid: str = "",
        extra: Mapping[str, Sequence[str]] = NO_EXTRA,
    ) -> Self:
        """Return this cluster with another user; see `Cluster.acting_as`."""
        view = super().acting_as(user, groups=groups, uid=uid, extra=extra)
        view._direct = as_user(self._direct, Impersonation.of(user, groups, uid, extra))  # noqa: SLF001 (its own class)
        return view

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        """Read one object, or its Scale."""
        try:
            return await self._inner.get(key, subresource=subresource)
        except NotFoundError:
            if subresource is not None or self._is_uncached(key):
                raise  # the API server was asked
            return await self._direct.get(key, subresource=subresource)

    def _is_uncached(self, key: ObjectKey) -> bool:
        caches = (one for one in wrapped_clusters(self._inner) if isinstance(one, CachedCluster))
        return any((key.api_version, key.kind) in one.uncached for one in caches)

    async def list_packed(self, api_version: str, kind: str, namespace: str = "") -> PackedList | None:
        """Return the objects of a kind as the cache holds them, for projections."""
        return await list_packed(self._inner, api_version, kind, namespace)
