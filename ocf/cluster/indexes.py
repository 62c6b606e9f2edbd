"""`Index`: objects of a kind by values that a function computes, for lists that a cache answers without a scan."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from ocf.objects import Manifest

__all__ = ["Index", "IndexKey"]

_log: Final = logging.getLogger(__name__)

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class IndexKey:
    """The objects that have a key in an index; made by `Index.at`."""

    index: Index[Any]
    key: Hashable

    def selects(self, live: Manifest) -> bool:
        """Return whether an object has the key."""
        return self.key in self.index.keys_of(live)


class Index(Generic[Key]):
    """An index of the objects of a kind, of which `ListOptions(index=...)` lists those with a key.

    From the first list on, a cache computes the keys of an object when it has changed, and finds the objects of a key
    without looking at others. Any other cluster lists what the other options select, and computes the keys of all of
    these. A reconcile that has listed a key is triggered by a change of an object that has the key, or had it.

    Semantics: client-go's `cache.Indexers`.

    Args:
        keys: Returns the keys of an object; it must not change the object. A text is one key. If it raises an error,
            that is logged, and the object has no key.

    Example:
        >>> import asyncio
        >>> from ocf.cluster import ListOptions
        >>> from ocf.cluster.cache import CachedCluster
        >>> from ocf_server import EmbeddedCluster
        >>> BY_ACCOUNT = Index[str](lambda pod: pod["spec"].get("serviceAccountName", "default"))
        >>> async def main() -> None:
        ...     async with CachedCluster(EmbeddedCluster()) as cached:
        ...         for name, account in (("web", "shop"), ("db", "store")):
        ...             spec = {"serviceAccountName": account, "containers": [{"name": "main", "image": "main:1"}]}
        ...             pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}}
        ...             await cached.create(pod | {"spec": spec}, field_manager="demo")
        ...         found = await cached.list("v1", "Pod", ListOptions(index=BY_ACCOUNT.at("shop")))
        ...         print([one["metadata"]["name"] for one in found.items])
        >>> asyncio.run(main())
        ['web']
    """

    def __init__(self, keys: Callable[[Manifest], Iterable[Key]]) -> None:
        self._keys = keys

    def at(self, key: Key) -> IndexKey:
        """Return the option that lists the objects with a key.

        Args:
            key: The key.
        """
        return IndexKey(self, key)

    def keys_of(self, live: Manifest) -> frozenset[Hashable]:
        """Return the keys of an object; none if the function fails, which is logged.

        Args:
            live: The object.
        """
        try:
            found = self._keys(live)
            return frozenset((found,) if isinstance(found, str) else found)
        except Exception:  # noqa: BLE001 (whatever the author's function raises; other objects have keys)
            metadata = live["metadata"]
            where = f"{live.get('kind')} {metadata.get('namespace', '')}/{metadata.get('name')}"
            _log.exception("an index has no keys for %s", where)
            return frozenset()
