"""Release of held objects whose owner is gone for good, because a user has removed its finalizers."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster.cache.serialization import unpack
from ocf.component.held_objects import release_object
from ocf.component.model.holds import hold_finalizer
from ocf.component.model.ownership import finalizers_of, is_ending
from ocf.errors import OcfError
from ocf.objects import ObjectKey
from ocf.objects.owner_references import controller_of

if TYPE_CHECKING:
    from ocf.cluster.cache import CachedCluster
    from ocf.cluster.cache.serialization import CacheEntry
    from ocf.objects import Manifest
    from ocf.runtime.operator.operator import Operator

__all__ = ["AbandonedObjects"]

_log: Final = logging.getLogger(__name__)


class AbandonedObjects:
    """Objects of one operator that are being deleted and are held; each is released if its owner does not exist."""

    def __init__(self, operator: Operator[Any], cache: CachedCluster) -> None:
        self._operator = operator
        self._cache = cache
        self._finalizer = hold_finalizer(operator.name)
        self._found: asyncio.Queue[ObjectKey] = asyncio.Queue()

    def look_at(self, key: ObjectKey, entry: CacheEntry) -> None:
        """Note an object if it is being deleted and is held for an owner of this kind."""
        controller = entry.controller
        if controller is None or (controller.group, controller.kind) != self._operator.owner_group_kind:
            return
        # Nearly all objects have no such finalizer, and need not be unpacked.
        if self._finalizer.encode() in entry.packed:
            live = unpack(entry)
            if is_ending(live) and self._finalizer in finalizers_of(live):
                self._found.put_nowait(key)

    async def run(self) -> None:
        """Release objects until cancelled."""
        while True:
            key = await self._found.get()
            try:
                # Until the owners are read, each of them seems to be gone.
                await self._cache.wait_for_sync(*self._operator.owner_kind, namespace=self._home(key))
                await release_object(self._cache, key, self._operator.name, self._has_owner)
            except OcfError as error:
                _log.warning("%s: %s is held, and cannot be released: %s", self._operator.name, key, error)

    def _home(self, key: ObjectKey) -> str:
        """Return the namespace whose owners are read with those of an object; empty if those of all are."""
        scopes = {each.namespace for each in self._cache.informers_of(*self._operator.owner_kind)}
        return key.namespace if key.namespace in scopes else ""

    def _has_owner(self, live: Manifest) -> bool:
        controller = controller_of(live)
        if controller is None:
            return True
        homes = live["metadata"].get("namespace", ""), ""
        names = [ObjectKey(*self._operator.owner_kind, controller.name, home) for home in homes]
        owners = [self._cache.entry(name) for name in names]
        return any(owner is not None and owner.uid == controller.uid for owner in owners)
