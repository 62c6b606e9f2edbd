"""Values computed from all objects of a kind, each of them only when its object has changed.

A controller that looks at every object in each reconcile would otherwise unpack and parse all of them each time,
although hardly any has changed.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar

from ocf.cluster.cache.keys import NamespacedName, namespaced_name
from ocf.cluster.interceptor import wrapped_clusters
from ocf.cluster.packed import list_packed
from ocf.cluster.protocol import Cluster
from ocf.objects import Manifest

__all__ = ["Projection"]

Value = TypeVar("Value")
# A long list lets other tasks run in between.
_YIELD_EVERY: Final = 500


class Projection(Generic[Value]):
    """A value for each object of a kind.

    Read from a `CachedCluster`, or from `context.cluster` in a reconcile, it has the guarantees of `list`, and costs
    what has changed since the last read: the reconcile is triggered by a change of any of the objects. From any other
    cluster, all objects are listed each time, and values are kept by uid and resource version.

    Args:
        api_version: Group and version.
        compute: Returns the value of an object; it must not change the object. It is called once per version.

    Example:
        >>> import asyncio
        >>> from ocf.cluster.cache import CachedCluster
        >>> from ocf_server import EmbeddedCluster
        >>> async def main() -> None:
        ...     projection = Projection("v1", "Namespace", lambda found: found["metadata"]["name"].upper())
        ...     async with CachedCluster(EmbeddedCluster(namespaces=("shop",))) as cached:
        ...         first = await projection.read(cached)
        ...         print(first[-1], await projection.read(cached) is first)
        >>> asyncio.run(main())
        SHOP True
    """

    def __init__(self, api_version: str, kind: str, compute: Callable[[Manifest], Value]) -> None:
        self._kind: Final = (api_version, kind)
        self._compute = compute
        self._known: dict[NamespacedName, tuple[str, str, Value]] = {}
        """Resource version, uid and value of each object."""
        self._values: tuple[Value, ...] = ()
        self._source: _Source | None = None
        """That of the last read: embedded clusters repeat uids and versions."""

    async def read(self, cluster: Cluster) -> tuple[Value, ...]:
        """Return the values of all objects, ordered by namespace and name.

        Args:
            cluster: The cluster, `context.cluster` in a reconcile.

        Returns:
            The values; the same tuple as before if nothing has changed.

        Raises:
            ApiError: If the cluster cannot be read.
        """
        *_, innermost = wrapped_clusters(cluster)
        # A cluster that acts as another user is a view, made for each reconcile; what it reads is the same.
        source = innermost.apply_cache.shared(_Source)
        if source is not self._source:
            self._source, self._known, self._values = source, {}, ()
        found = await list_packed(cluster, *self._kind)
        if found is None:
            found = {namespaced_name(one): _Listed.of(one) for one in (await cluster.list(*self._kind)).items}
        known: dict[NamespacedName, tuple[str, str, Value]] = {}
        computed = 0
        for name, one in found.items():
            old = self._known.get(name)
            if old is None or old[0] != one.version or old[1] != one.uid or not one.version:
                old = (one.version, one.uid, self._compute(one.unpack()))
                computed += 1
                if computed % _YIELD_EVERY == 0:
                    await asyncio.sleep(0)
            known[name] = old
        if computed or len(known) != len(self._known):
            self._known, self._values = known, tuple(known[name][2] for name in sorted(known))
        return self._values


class _Source:
    """The identity of the cluster that is read."""


class _Listed(NamedTuple):
    """An object of a list."""

    uid: str
    version: str
    manifest: Manifest

    @classmethod
    def of(cls, manifest: Manifest) -> "_Listed":
        metadata = manifest["metadata"]
        return cls(metadata.get("uid") or "", metadata.get("resourceVersion") or "", manifest)

    def unpack(self) -> Manifest:
        return self.manifest
