"""Release of held objects whose owner is gone for good, because a user has removed its finalizers.

An object may be deleted after its owner, by the garbage collector, or before it: with its namespace, or in the
foreground. Or it was orphaned, and stays, but nothing would remove its finalizer. So both its own events and the
deletion of its owner are followed. A release that fails is tried again.

With sharding, the owner may go while no replica holds its slot. So each replica remembers what is held, for all owners,
and looks at it again when it takes the slot.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster import ListOptions
from ocf.cluster.cache.serialization import unpack
from ocf.cluster.protocol import EventType
from ocf.component.apply.owner_check import latest_object
from ocf.component.held_objects import release_object
from ocf.component.model.holds import hold_finalizer, recorded
from ocf.component.model.ownership import SECOND, finalizers_of, is_ending
from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import OcfError
from ocf.objects import ObjectKey
from ocf.objects.managed_fields import ManagedFields
from ocf.objects.owner_references import controller_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.cluster import Cluster
    from ocf.cluster.cache import CachedCluster
    from ocf.cluster.cache.serialization import CacheEntry
    from ocf.cluster.cache.subscriptions import CacheChange
    from ocf.objects import Manifest
    from ocf.runtime.operator.operator import Operator

__all__ = ["AbandonedObjects"]

_log: Final = logging.getLogger(__name__)
_BACKOFF: Final = ExponentialBackoff()


class AbandonedObjects:
    """Held objects of one operator that are being deleted, or whose owner is; each is released if that is gone."""

    def __init__(
        self,
        operator: Operator[Any],
        cache: CachedCluster,
        owners: CachedCluster,
        holds: Callable[[str, str], bool],
        unlisted: Cluster | None = None,
    ) -> None:
        """Look after the objects of the owners of this process, as `holds` says by uid and namespace.

        Owners that `owners` may not have listed yet, because their slot was just taken, are read from `unlisted`.
        """
        self._unlisted = unlisted
        self._holds = holds
        self._operator = operator
        self._cache = cache
        self._owner_cache = owners
        self._finalizer = hold_finalizer(operator.name)
        self._found: asyncio.Queue[ObjectKey] = asyncio.Queue()
        self._failures: dict[ObjectKey, int] = {}
        self._remembered: dict[ObjectKey, frozenset[str]] = {}
        """With sharding: what is held, and is being deleted or was orphaned, each with the uids of its owners."""

    def look_at(self, key: ObjectKey, change: CacheChange) -> None:
        """Note an object that is held for an owner of this kind, if it is being deleted or was orphaned."""
        live = self._held(change.entry) if change.type is not EventType.DELETED else None
        if live is None:
            self._remembered.pop(key, None)
        elif self._unlisted is None:
            self._found.put_nowait(key)
        else:
            controller = controller_of(live)
            owners = self._appliers(live) if controller is None else {controller.uid}
            self._remembered[key] = frozenset(owners)
            self._look_at_own(key)

    def look_again(self) -> None:
        """Look at what is held for the owners of this process; called when it has taken slots."""
        for key in sorted(self._remembered):
            self._look_at_own(key)

    def _look_at_own(self, key: ObjectKey) -> None:
        if any(self._holds(uid, key.namespace) for uid in self._remembered[key]):
            self._found.put_nowait(key)

    def _held(self, entry: CacheEntry) -> Manifest | None:
        """Return an object that is held for an owner of this kind and is being deleted or was orphaned."""
        controller = entry.controller
        if controller is not None and (controller.group, controller.kind) != self._operator.owner_group_kind:
            return None
        # Nearly all objects have no such finalizer, and need not be unpacked.
        if not entry.has_text(self._finalizer):
            return None
        live = unpack(entry)
        is_held = (controller is None or is_ending(live)) and self._finalizer in finalizers_of(live)
        return live if is_held else None

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
                await self._owner_cache.wait_for_sync(*self._operator.owner_kind, namespace=self._home(key))
                await release_object(self._cache, key, self._operator.name, await self._need_of(key))
            except OcfError as error:
                self._failures[key] = failures = self._failures.get(key, 0) + 1
                _log.warning("%s: %s is held, and cannot be released: %s", self._operator.name, key, error)
                delay = _BACKOFF.after(failures).total_seconds()
                asyncio.get_running_loop().call_later(delay, self._found.put_nowait, key)
            else:
                self._failures.pop(key, None)

    async def _need_of(self, key: ObjectKey) -> Callable[[Manifest], bool]:
        """Return what decides whether an object has an owner, or is not being deleted: its deletion is another event.

        One without a controller was orphaned, or a client has removed the reference, which its owner puts back. Then
        the names of its field managers show the owner, unless they are hashed.
        """
        entry = self._cache.entry(key)
        if entry is not None and entry.controller is not None and self._unlisted is not None:
            where = key.namespace if await self._unlisted.is_namespaced(*self._operator.owner_kind) else ""
            name = ObjectKey(*self._operator.owner_kind, entry.controller.name, where)
            owner = await latest_object(self._unlisted, name)
            if owner is not None and owner["metadata"]["uid"] == entry.controller.uid:
                return lambda _: True
        if entry is None or entry.controller is not None:
            return self._is_needed
        kind, home = self._operator.owner_kind, ListOptions(namespace=self._home(key), metadata_only=True)
        owners_at = self._unlisted or self._owner_cache
        living = {one["metadata"]["uid"] for one in (await owners_at.list(*kind, home)).items}

        def is_needed(live: Manifest) -> bool:
            owners = self._appliers(live)
            # The owner cache does not have those of other replicas.
            others = not all(self._is_own(uid, live) for uid in owners)
            return controller_of(live) is not None or not owners or others or not owners.isdisjoint(living)

        return is_needed

    def _appliers(self, live: Manifest) -> set[str]:
        """Return the uids of the owners for which this operator has applied an object."""
        start = f"{self._operator.name}/{self._operator.owner_kind[1]}/"
        names = [name for name in ManagedFields.of(live).appliers if name.startswith(start)]
        return {name.removesuffix(f"/{SECOND}").rpartition("/")[2] for name in names}

    def _is_own(self, uid: str, live: Manifest) -> bool:
        """Return whether an object's owner is one of this process; owners divided by namespace are in that of it."""
        return self._holds(uid, live["metadata"].get("namespace", ""))

    def _home(self, key: ObjectKey) -> str:
        """Return the namespace whose owners are read with those of an object; empty if those of all are."""
        scopes = {each.namespace for each in self._owner_cache.informers_of(*self._operator.owner_kind)}
        return key.namespace if key.namespace in scopes else ""

    def _is_needed(self, live: Manifest) -> bool:
        """Return whether an object has an owner, or is not being deleted, so that its deletion is another event."""
        controller = controller_of(live)
        if controller is None or not is_ending(live) or not self._is_own(controller.uid, live):
            return True
        homes = live["metadata"].get("namespace", ""), ""
        names = [ObjectKey(*self._operator.owner_kind, controller.name, home) for home in homes]
        owners = [self._owner_cache.entry(name) for name in names]
        return any(owner is not None and owner.uid == controller.uid for owner in owners)
