"""The owners that an object refers to, by its controller reference or by the watches of an operator."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster.cache.serialization import unpack
from ocf.objects import ObjectKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ocf.cluster.cache import CachedCluster
    from ocf.cluster.cache.serialization import CacheEntry
    from ocf.runtime.operator.operator import Operator

__all__ = ["ReferredOwners"]

_log: Final = logging.getLogger(__name__)


class ReferredOwners:
    """Finds the owners of one operator that objects refer to."""

    def __init__(self, operator: Operator[Any], cache: CachedCluster) -> None:
        self._operator = operator
        self._cache = cache
        # These are read for every change of the cache.
        self._owner_kind: Final = operator.owner_kind
        self._owner_group_kind: Final = operator.owner_group_kind

    def of(self, key: ObjectKey, state: CacheEntry) -> Iterable[ObjectKey]:
        """Yield the owners that a state of an object refers to: its controller, and what the watches map it to."""
        controller = state.controller
        if controller is not None and (controller.group, controller.kind) == self._owner_group_kind:
            yield from self._named(key.namespace, controller.name, controller.uid)
        for watch in self._operator.watches:
            if (watch.api_version, watch.kind) == (key.api_version, key.kind):
                try:
                    yield from [owner for named in watch.owners(unpack(state)) for owner in self._named(*named)]
                except Exception:  # noqa: BLE001 (the other state and the other watches may name owners)
                    _log.exception("%s: a watch could not map %s to owners", self._operator.name, key)

    def _named(self, namespace: str, name: str, uid: str | None = None) -> Iterator[ObjectKey]:
        """Yield the owner of a name, in a namespace or cluster-scoped as its kind is; none if it does not exist.

        The key is that of the owner in the cache, and never built from an object in a namespace: a reconcile of a key
        that names no owner would report a living one as deleted. An owner that the cache does not hold yet is
        reconciled when it arrives.

        Args:
            uid: The uid that the owner must have; None for any.
        """
        for home in dict.fromkeys((namespace, "")):
            key = ObjectKey(*self._owner_kind, name, home)
            found = self._cache.entry(key)
            if found is not None and uid in {None, found.uid}:
                yield key
