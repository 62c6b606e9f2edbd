"""Release of held objects whose owner is gone for good, because a user has removed its finalizers.

An object may be deleted after its owner, by the garbage collector, or before it: with its namespace, or in the
foreground. So both its own events and the deletion of its owner are followed. A release that fails is tried again.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster.cache.serialization import unpack
from ocf.component.held_objects import release_object
from ocf.component.model.holds import hold_finalizer, recorded
from ocf.component.model.ownership import finalizers_of, is_ending
from ocf.concepts.backoff import ExponentialBackoff
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
_BACKOFF: Final = ExponentialBackoff()


class AbandonedObjects:
    """Held objects of one operator that are being deleted, or whose owner is; each is released if that is gone."""

    def __init__(self, operator: Operator[Any], cache: CachedCluster) -> None:
        self._operator = operator
        self._cache = cache
        self._finalizer = hold_finalizer(operator.name)
        self._found: asyncio.Queue[ObjectKey] = asyncio.Queue()
        self._failures: dict[ObjectKey, int] = {}

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

    def owner_ended(self, last: Manifest) -> None:
        """Note the objects that are held for a deleted owner; after its clean-up, none of them has the finalizer.

        Args:
            last: Its last state.
        """
        for key in sorted(recorded(last, self._operator.name)):
            self._found.put_nowait(key)

    async def run(self) -> None:
        """Release objects until cancelled."""
        while True:
            key = await self._found.get()
            try:
                # Until the owners are read, each of them seems to be gone.
                await self._cache.wait_for_sync(*self._operator.owner_kind, namespace=self._home(key))
                await release_object(self._cache, key, self._operator.name, self._is_needed)
            except OcfError as error:
                self._failures[key] = failures = self._failures.get(key, 0) + 1
                _log.warning("%s: %s is held, and cannot be released: %s", self._operator.name, key, error)
                delay = _BACKOFF.after(failures).total_seconds()
                asyncio.get_running_loop().call_later(delay, self._found.put_nowait, key)
            else:
                self._failures.pop(key, None)

    def _home(self, key: ObjectKey) -> str:
        """Return the namespace whose owners are read with those of an object; empty if those of all are."""
        scopes = {each.namespace for each in self._cache.informers_of(*self._operator.owner_kind)}
        return key.namespace if key.namespace in scopes else ""

    def _is_needed(self, live: Manifest) -> bool:
        """Return whether an object has an owner, or is not being deleted, so that its deletion is another event."""
        controller = controller_of(live)
        if controller is None or not is_ending(live):
            return True
        homes = live["metadata"].get("namespace", ""), ""
        names = [ObjectKey(*self._operator.owner_kind, controller.name, home) for home in homes]
        owners = [self._cache.entry(name) for name in names]
        return any(owner is not None and owner.uid == controller.uid for owner in owners)
