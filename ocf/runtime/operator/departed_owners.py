"""Objects of deleted owners whose owner reference is missing, so that the garbage collector does not know them.

A client may remove the owner reference of an object. The next reconcile of the owner puts it back, unless the owner is
deleted before that. Then the reference is put back here, and the garbage collector deletes the object as any other
dependent, after it has asked the API server whether the owner is really gone. That needs no more permissions than an
apply does.

Once the owner is gone, such an object looks exactly as one that was orphaned, because the garbage collector orphans
objects by removing the reference. So this is done only if both are known:

* The last reconcile of the owner in this process has managed the object, with an owner reference.
* The watch of the owner has shown the whole deletion, and that its dependents were not to be orphaned
  (`CacheEntry.orphans`). What was deleted while no process ran, or while a watch was interrupted, is left alone.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from ocf.cluster import PatchOptions, PatchType
from ocf.component.model.ownership import SECOND, is_ending
from ocf.errors import ConflictError, NotFoundError
from ocf.objects.managed_fields import ManagedFields

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ocf.cluster import Cluster
    from ocf.cluster.cache import CachedCluster
    from ocf.cluster.cache.serialization import CacheEntry
    from ocf.component import Component, ReconcileContext
    from ocf.component.model.ownership import Owner
    from ocf.objects import Manifest, ObjectKey

__all__ = ["DepartedOwners"]

_log: Final = logging.getLogger(__name__)

# Where no garbage collector runs, the objects of deleted owners stay.
_LIMIT: Final = 10_000
# A client that removes each reference in time, before the garbage collector acts, is given up.
_TRIES: Final = 10


class _Left(NamedTuple):
    """An object of a deleted owner.

    Attributes:
        component: The component that managed it.
        tries_left: How often its owner reference may still be put back.
    """

    owner: Owner
    component: str
    tries_left: int = _TRIES


class DepartedOwners:
    """The objects that the components of an operator manage, and those of deleted owners that may still exist."""

    def __init__(self, cache: CachedCluster, owners: CachedCluster) -> None:
        self._cache = cache
        self._owner_cache = owners
        self._managed: dict[str, tuple[Owner, Mapping[ObjectKey, str]]] = {}
        """The managed objects of each living owner, by its uid, each with its component."""
        self._left: OrderedDict[ObjectKey, dict[ObjectKey, _Left]] = OrderedDict()
        """The objects of each deleted owner."""
        self._owners: dict[ObjectKey, ObjectKey] = {}
        """The deleted owner of each of them."""

    def manages(self, context: ReconcileContext, components: Sequence[Component]) -> None:
        """Record which objects with an owner reference the components of an owner manage, unless it is gone."""
        owner = context.owned_by
        known = self._owner_cache.entry(owner.key)
        if known is not None and known.uid == owner.uid:
            objects = {key: one.name for one in components for key in one.owned_objects(owner)}
            self._managed[owner.uid] = (owner, objects)

    def ended(self, last: CacheEntry, *, paused: bool = False) -> None:
        """Record that an owner is deleted.

        Args:
            last: Its last state.
            paused: Whether it was paused, so that nothing is written for it.
        """
        known = self._managed.pop(last.uid, None)
        if known is None or last.orphans or paused:
            return
        owner, objects = known
        for key, component in objects.items():
            self._drop(key)
            self._owners[key] = owner.key
            self._left.setdefault(owner.key, {})[key] = _Left(owner, component)
        while len(self._owners) > _LIMIT:
            for key in list(self._left[next(iter(self._left))]):
                self._drop(key)

    def owner(self, key: ObjectKey) -> Iterator[ObjectKey]:
        """Yield the deleted owner of an object that may still exist."""
        if key in self._owners:
            yield self._owners[key]

    def released(self, owner: ObjectKey) -> None:
        """Forget the objects of an owner that exists, and that its watch does not show any more."""
        for key in [*self._left.get(owner, {})]:
            self._drop(key)

    def knows(self, owner: ObjectKey) -> bool:
        """Return whether objects of a deleted owner may still exist."""
        return owner in self._left

    def uid(self, owner: ObjectKey) -> str | None:
        """Return the uid of a deleted owner whose objects may still exist; None if there is none."""
        return next((left.owner.uid for left in self._left.get(owner, {}).values()), None)

    async def restore_references(self, owner: ObjectKey) -> None:
        """Put back the owner references of what a deleted owner has left behind.

        An object that has its reference is looked at again when it changes, because a cache may not have seen yet that
        the reference was removed.

        Raises:
            ApiError: If an object cannot be read or changed.
        """
        for key, left in [*self._left.get(owner, {}).items()]:
            try:
                await self._look_at(key, left, await self._cache.get(key))
            except NotFoundError:
                self._drop(key)

    async def _look_at(self, key: ObjectKey, left: _Left, live: Manifest) -> None:
        if is_ending(live) or not (left.owner.references(live) or _is_left_behind(live, left)):
            self._drop(key)
        elif left.owner.references(live):
            return
        elif not left.tries_left:
            self._drop(key)
            _log.warning("%s outlives %s: its owner reference is removed again and again", key, left.owner.key)
        else:
            # If it has changed since it was read, its event brings it back here.
            with suppress(ConflictError):
                await _restore_reference(key, left, live, self._cache)
                self._left[left.owner.key][key] = left._replace(tries_left=left.tries_left - 1)

    def _drop(self, key: ObjectKey) -> None:
        owner = self._owners.pop(key, None)
        if owner is not None:
            del self._left[owner][key]
            if not self._left[owner]:
                del self._left[owner]


async def _restore_reference(key: ObjectKey, left: _Left, live: Manifest, cluster: Cluster) -> None:
    references = left.owner.owned(live)["metadata"]["ownerReferences"]
    as_read = {"uid": live["metadata"]["uid"], "resourceVersion": live["metadata"]["resourceVersion"]}
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager=left.owner.field_manager(left.component))
    await cluster.patch(key, {"metadata": {**as_read, "ownerReferences": references}}, options)
    _log.info("%s had lost its owner reference before %s was deleted; it is put back", key, left.owner.key)


def _is_left_behind(live: Manifest, left: _Left) -> bool:
    """Return whether an object has no owner at all, and only the component of the deleted owner applies it."""
    manager, second = (left.owner.field_manager(left.component, *more) for more in ((), (SECOND,)))
    appliers = set(ManagedFields.of(live).appliers)
    return not live["metadata"].get("ownerReferences") and {manager} <= appliers <= {manager, second}
