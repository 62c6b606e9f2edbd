"""Values computed from all objects of a kind, each of them only when its object has changed.

A controller that looks at every object in each reconcile would otherwise unpack and parse all of them each time,
although hardly any has changed.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar

from ocf.cluster.cache.cluster import CachedCluster
from ocf.cluster.cache.keys import NamespacedName, namespaced_name
from ocf.cluster.cache.serialization import CacheEntry, unpack
from ocf.cluster.protocol import Cluster
from ocf.objects import Manifest

__all__ = ["Projection"]

Value = TypeVar("Value")
# A long list lets other tasks run in between.
_YIELD_EVERY: Final = 500


class Projection(Generic[Value]):
    """A value for each object of a kind.

    Read from a `CachedCluster`, it has the guarantees of its `list`, and costs what has changed since the last read.
    From any other cluster, all objects are listed each time, and values are kept by uid and resource version.

    Args:
        api_version: Group and version.
        compute: Returns the value of an object; it must not change the object. It is called once per version.

    Example:
        >>> import asyncio
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
        self._known: dict[NamespacedName, tuple[object, Value]] = {}
        self._values: tuple[Value, ...] = ()

    async def read(self, cluster: Cluster) -> tuple[Value, ...]:
        """Return the values of all objects, ordered by namespace and name.

        Returns:
            The values; the same tuple as before if nothing has changed.

        Raises:
            ApiError: If the cluster cannot be read.
        """
        entries = await cluster.entries(*self._kind) if isinstance(cluster, CachedCluster) else None
        found = iter(entries) if entries is not None else _listed((await cluster.list(*self._kind)).items)
        known: dict[NamespacedName, tuple[object, Value]] = {}
        computed = 0
        for name, source in found:
            version = source if isinstance(source, CacheEntry) else _version_of(source)
            old = self._known.get(name)
            if old is None or old[0] != version or version is None:
                old = (version, self._compute(unpack(source) if isinstance(source, CacheEntry) else source))
                computed += 1
                if computed % _YIELD_EVERY == 0:
                    await asyncio.sleep(0)
            known[name] = old
        if computed or len(known) != len(self._known):
            self._known, self._values = known, tuple(known[name][1] for name in sorted(known))
        return self._values


def _listed(manifests: tuple[Manifest, ...]) -> Iterator[tuple[NamespacedName, Manifest]]:
    for manifest in manifests:
        yield namespaced_name(manifest), manifest


def _version_of(manifest: Manifest) -> Any:
    """Return what changes with each version of an object; None if the cluster gives it no version."""
    metadata = manifest["metadata"]
    version = metadata.get("resourceVersion")
    return (metadata.get("uid"), version) if version else None
