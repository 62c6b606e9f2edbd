"""The owners of an operator: the objects of their kind that it selects, and the cache that holds them.

A selector goes to the API server, so only what it selects is cached; that is a cache of its own, because the
components may read other objects of the kind. A function is called for each event, before anything is queued.

An owner that is not selected any more is released: the finalizers of the operator are removed, and nothing else is
changed. The watch of a selector shows it as deleted, and one that was changed while no process ran is not shown
at all. So the objects that are not selected are listed at the start and with each resync, page by page.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from ocf.cluster import InterceptingCluster, ListOptions, ServiceAccount
from ocf.cluster.cache.serialization import pack, unpack
from ocf.cluster.impersonation import NO_EXTRA
from ocf.cluster.interceptor import requested_key
from ocf.cluster.packed import list_packed
from ocf.cluster.protocol import DEFAULT_DELETE_OPTIONS, DEFAULT_LIST_OPTIONS
from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import ApiError, ConfigError, NotFoundError
from ocf.objects import ObjectKey
from ocf.objects.managed_fields import ManagedFields
from ocf.objects.owner_references import controller_of
from ocf.runtime.sharding.slots import NO_SLOT

if TYPE_CHECKING:
    from datetime import timedelta

    from ocf.cluster import Cluster, DeleteOptions, ObjectList, PatchOptions, Subresource, WatchEvent, WatchOptions
    from ocf.cluster.cache import CachedCluster, Selection
    from ocf.cluster.cache.serialization import CacheEntry
    from ocf.cluster.cache.subscriptions import CacheChange
    from ocf.cluster.cache.transform import NeedsContent
    from ocf.cluster.packed import PackedList
    from ocf.objects import Manifest
    from ocf.runtime.operator.operator import Operator
    from ocf.runtime.sharding.sharded_objects import ShardedObjects

__all__ = ["Owners", "SelectedObjects", "content_needed"]

_log: Final = logging.getLogger(__name__)
_PAGE: Final = 500
_RETRIES: Final = ExponentialBackoff()
_SECRET: Final = ("v1", "Secret")


def content_needed(
    operators: Sequence[Operator[Any]], selections: Mapping[tuple[str, str], Selection] | None = None
) -> dict[tuple[str, str], NeedsContent]:
    """Return the kinds of which a process caches only the metadata of what none of its operators uses.

    Secrets are the kind of which a cluster has thousands, some of them large, such as those of Helm releases. Of the
    kind of owners that a function selects, the others may be as many.

    Args:
        selections: What the operators select of kinds that none of them declares as a whole.

    Returns:
        For each kind, which objects are cached as a whole before a reconcile reads them: selected owners, their
        children, and what an operator has written.
    """
    selecting = [each for each in operators if callable(each.select)]
    # All owners without a selection are used, and watches and predicates look at any object of their kinds.
    whole = {each.owner_kind for each in operators if not (callable(each.select) or each.selects_by_server)}
    whole |= {(watch.api_version, watch.kind) for each in operators for watch in each.kind_watches}
    whole |= {kind for each in operators for kind in each.triggers}
    kinds = {_SECRET, *(each.owner_kind for each in selecting)} - whole
    kinds |= {kind for kind, one in (selections or {}).items() if one.metadata_only}
    writers = tuple(f"{each.name}/" for each in operators)
    owners = {each.owner_group_kind for each in operators}

    def is_used(kind: tuple[str, str], live: Manifest) -> bool:
        controller = controller_of(live)
        if controller is not None and (controller.group, controller.kind) in owners:
            return True
        if any(entry.manager.name.startswith(writers) for entry in ManagedFields.of(live).entries):
            return True
        return any(_may_select(each, live) for each in selecting if each.owner_kind == kind)

    return {kind: partial(is_used, kind) for kind in kinds}


def _may_select(operator: Operator[Any], live: Manifest) -> bool:
    """Return whether an object is an owner, or was one; also if the function that decides fails, which is retried."""
    try:
        return bool(operator.finalizers.own_of(live)) or operator.selects(live)
    except ConfigError:
        return True


class SelectedObjects(InterceptingCluster):
    """A cluster in which the lists and watches of one kind show only what a selection selects in their namespace."""

    def __init__(self, cluster: Cluster, kind: tuple[str, str], selection: Selection) -> None:
        super().__init__(cluster)
        self._kind = kind
        self._selection = selection

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        """Read the selected objects of the kind, or all of another kind."""
        narrowed = self._selection.narrowed(options) if (api_version, kind) == self._kind else options
        return await self._inner.list(api_version, kind, narrowed)

    async def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        """Report what happens to the selected objects of the kind, or to all of another kind."""
        narrowed = self._selection.narrowed(options) if (api_version, kind) == self._kind else options
        async for event in super().watch(api_version, kind, narrowed):
            yield event


class _OwnersElsewhere(InterceptingCluster):
    """A cluster of which some requests go to the cluster of the owners."""

    __slots__ = ("_owners",)

    def __init__(self, cluster: Cluster, owners: Cluster) -> None:
        super().__init__(cluster)
        self._owners = owners

    def acting_as(
        self,
        user: str | ServiceAccount,
        *,
        groups: Sequence[str] = (),
        uid: str = "",
        extra: Mapping[str, Sequence[str]] = NO_EXTRA,
    ) -> Self:
        view = super().acting_as(user, groups=groups, uid=uid, extra=extra)
        acting = self._owners.acting_as(user, groups=groups, uid=uid, extra=extra)
        view._owners = acting  # noqa: SLF001 (of this class)
        return view


class _Routed(_OwnersElsewhere):
    """A cluster in which the requests for one owner go another way than all others."""

    def __init__(self, cluster: Cluster, owners: Cluster, owner: ObjectKey) -> None:
        super().__init__(cluster, owners)
        self._owner = owner

    def _way(self, key: ObjectKey) -> Cluster:
        return self._owners if key == self._owner else self._inner

    async def list_packed(self, api_version: str, kind: str, namespace: str = "") -> PackedList | None:
        return await list_packed(self._inner, api_version, kind, namespace)

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        return await self._way(key).get(key, subresource=subresource)

    async def apply(
        self,
        manifest: Manifest,
        *,
        field_manager: str,
        force: bool = False,
        subresource: Subresource | None = None,
        dry_run: bool = False,
    ) -> Manifest:
        return await self._way(requested_key(manifest)).apply(
            manifest, field_manager=field_manager, force=force, subresource=subresource, dry_run=dry_run
        )

    async def update(
        self, manifest: Manifest, *, field_manager: str, subresource: Subresource | None = None, dry_run: bool = False
    ) -> Manifest:
        return await self._way(requested_key(manifest)).update(
            manifest, field_manager=field_manager, subresource=subresource, dry_run=dry_run
        )

    async def patch(self, key: ObjectKey, patch: Any, options: PatchOptions) -> Manifest:
        return await self._way(key).patch(key, patch, options)

    async def delete(self, key: ObjectKey, options: DeleteOptions = DEFAULT_DELETE_OPTIONS) -> None:
        await self._way(key).delete(key, options)


class _OwnersApart(_OwnersElsewhere):
    """A cluster in which lists of the owners' kind are those of the selected ones, from their cache."""

    def __init__(self, cluster: Cluster, owners: Cluster, kind: tuple[str, str]) -> None:
        super().__init__(cluster, owners)
        self._kind = kind

    def _way(self, api_version: str, kind: str) -> Cluster:
        return self._owners if (api_version, kind) == self._kind else self._inner

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        return await self._way(api_version, kind).list(api_version, kind, options)

    async def list_packed(self, api_version: str, kind: str, namespace: str = "") -> PackedList | None:
        return await list_packed(self._way(api_version, kind), api_version, kind, namespace)


class FoundOwner(NamedTuple):
    """An owner at the begin of its reconcile.

    Attributes:
        cluster: The cluster of the reconcile.
        manifest: The live object.
        selected: Whether the operator selects it.
    """

    cluster: Cluster
    manifest: Manifest
    selected: bool


class Owners:
    """The owners of one operator.

    Args:
        shared: The cache of the process.
        cache: The cache that holds them: the shared one, or that of the selected objects alone.
        direct: The cluster without a cache.
        sharded: The cluster of that cache, if this process reconciles the owners of some slots only.
    """

    def __init__(
        self,
        operator: Operator[Any],
        shared: CachedCluster,
        cache: CachedCluster,
        direct: Cluster,
        sharded: ShardedObjects | None = None,
    ) -> None:
        self._sharded = sharded
        self.slots: Final = sharded.slots if sharded is not None else None
        """The slots whose owners this process reconciles; None for all owners."""
        self.cache: Final = cache
        self.are_cached_apart: Final = cache is not shared
        self._operator = operator
        self._shared = shared
        self._direct = direct
        self._selects_all: Final = not (callable(operator.select) or operator.selects_by_server)
        self._unselected: dict[ObjectKey, str] = {}
        """The uid of each unselected object that was found; no cache has it."""

    @property
    def unlisted(self) -> Cluster | None:
        """Where owners are looked up that the cache may not have listed yet; None if it lists all from the start."""
        return self._direct if self.slots is not None else None

    def holds(self, uid: str, namespace: str) -> bool:
        """Return whether reconciles of an owner may begin in this process."""
        return self.slots is None or self.slots.accepts(uid, namespace)

    def shows(self, uid: str, namespace: str) -> bool:
        """Return whether an owner that is not in the cache is deleted, and not only in a slot that is not listed."""
        return self._sharded is None or (self.holds(uid, namespace) and self._sharded.shows(uid, namespace))

    def has_left(self, owner: ObjectKey, uid: str | None) -> bool:
        """Return whether an owner, with the uid that was known last, is not one of this process any more."""
        if self.slots is None:
            return False
        uid = self._uid(owner, uid)
        return uid is None or not self.holds(uid, owner.namespace)

    def _uid(self, owner: ObjectKey, last: str | None) -> str | None:
        state = self.cache.entry(owner)
        return state.uid if state is not None else last or self._unselected.get(owner)

    def are_in(self, slots: frozenset[int], owner: ObjectKey) -> bool:
        """Return whether an owner in the cache is in one of some slots."""
        state = self.cache.entry(owner)
        return self.slots is not None and state is not None and self.slots.slot_of(state.uid, owner.namespace) in slots

    @asynccontextmanager
    async def working(self, owner: ObjectKey, uid: str | None) -> AsyncGenerator[None, None]:
        """Run a reconcile as work in the slot of the owner.

        Args:
            uid: The uid that was known last; None for none.

        Raises:
            SlotLostError: If the slot is not held, or is lost meanwhile.
        """
        if self.slots is None:
            yield
            return
        known = self._uid(owner, uid)
        slot = self.slots.slot_of(known, owner.namespace) if known is not None else NO_SLOT
        async with self.slots.working(slot):
            yield

    def concerns(self, state: CacheEntry) -> bool:
        """Return whether the operator has to look at an object of the kind of its owners.

        That is an owner, or an object that has the operator's finalizer. One for which the author's function fails is
        looked at, so that the failure is retried, logged and counted.
        """
        if self._selects_all:
            return True
        if state.metadata_only:
            # By `content_needed`; the author's function may look at what is not held.
            return False
        live = unpack(state)
        if self._operator.finalizers.own_of(live):
            return True
        try:
            return self._operator.selects(live)
        except ConfigError:
            return True

    def is_affected(self, owner: ObjectKey, key: ObjectKey, change: CacheChange, *, known: bool) -> bool:
        """Return whether a change of an object may enqueue an owner that it affects: not one that is not selected.

        Args:
            key: The object: the owner, or another one.
            known: Whether the owner was selected in its last reconcile, or is being reconciled.
        """
        state = self.cache.entry(owner)
        if self.slots is not None and not known and (state is None or not self.holds(state.uid, owner.namespace)):
            # The cache has all owners of this process.
            return False
        if self._selects_all or known:
            return True
        if key == owner:
            return any(self.concerns(state) for state in (change.entry, change.old) if state is not None)
        # Whatever the API server has selected for a cache of its own is selected.
        return state is None or self._operator.selects_by_server or self.concerns(state)

    @property
    def watching(self) -> Cluster:
        """The cluster of the functions of watches."""
        if not self.are_cached_apart:
            return self._shared
        return _OwnersApart(self._shared, self.cache, self._operator.owner_kind)

    def routed(self, owner: ObjectKey, *, direct: bool = False) -> Cluster:
        """Return the cluster of a reconcile.

        Args:
            direct: Whether the requests for the owner pass its cache by, because that does not hold the owner.
        """
        if not self.are_cached_apart:
            return self._shared
        return _Routed(self._shared, self._direct if direct else self.cache, owner)

    async def find(self, owner: ObjectKey, recording: Callable[[Cluster], Cluster]) -> FoundOwner | None:
        """Read an owner at the begin of its reconcile; return None if it is gone.

        Args:
            recording: Wraps the cluster of the reconcile.
        """
        # A cache of some namespaces would begin to watch another one.
        is_elsewhere = self.are_cached_apart and not self._operator.selection.may_select((owner.namespace, owner.name))
        for direct in (True,) if is_elsewhere else (False, True) if self.are_cached_apart else (False,):
            cluster = recording(self.routed(owner, direct=direct))
            try:
                live = await cluster.get(owner)
            except NotFoundError:
                continue
            uid = live["metadata"].get("uid", "")
            if self.slots is not None and not self.slots.works_on(uid, owner.namespace):
                # Deleted, and created again under its name; that one is in another slot, maybe of another replica.
                return None
            return FoundOwner(cluster, live, self._selects(live, is_cached=not direct))
        return None

    def _selects(self, live: Manifest, *, is_cached: bool) -> bool:
        """Return whether an object is an owner; if only the API server knows, what is in the cache is one."""
        return self._operator.selects(live) and (is_cached or self._operator.selection.selects(live) is not None)

    async def known(self, namespace: str) -> list[ObjectKey]:
        """List the owners of a namespace, empty for all; none if that fails, which is logged."""
        try:
            options = ListOptions(namespace=namespace, metadata_only=True)
            found = await self.cache.list(*self._operator.owner_kind, options)
        except ApiError as error:
            _log.warning("%s: resync skipped: %s", self._operator.name, error)
            return []
        keys = {ObjectKey.of(live): live for live in found.items}
        return [key for key, live in keys.items() if self.concerns(self.cache.entry(key) or pack(live))]

    async def looks_for_unselected(self, period: timedelta) -> AsyncGenerator[None, None]:
        """Yield when unselected objects are to be listed: at the start, once per period, and when slots were taken."""
        terms: frozenset[tuple[int, int]] = frozenset()
        while True:
            if self.slots is None:
                yield
                await asyncio.sleep(period.total_seconds())
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(period.total_seconds()):
                    while not self.slots.terms - terms:
                        await self.slots.changed.wait()
            terms = self.slots.terms
            yield

    async def unselected(self, namespace: str) -> list[ObjectKey]:
        """List the unselected objects of a namespace, empty for all, that have a finalizer of the operator."""
        failures = 0
        while True:
            try:
                found = {key: uid async for key, uid in self._pages_of_unselected(namespace)}
            except ApiError as error:
                failures += 1
                _log.warning("%s: owners to release cannot be listed: %s", self._operator.name, error)
                await asyncio.sleep(_RETRIES.after(failures).total_seconds())
            else:
                others = {key: uid for key, uid in self._unselected.items() if namespace not in {"", key.namespace}}
                self._unselected = others | found
                return [*found]

    async def _pages_of_unselected(self, namespace: str) -> AsyncGenerator[tuple[ObjectKey, str], None]:
        options = ListOptions(namespace=namespace, limit=_PAGE)
        while True:
            page = await self._direct.list(*self._operator.owner_kind, options)
            for live in page.items:
                key, uid = ObjectKey.of(live), live["metadata"].get("uid", "")
                held = self._operator.finalizers.own_of(live) and self.holds(uid, key.namespace)
                if held and not self._selects(live, is_cached=self.cache.entry(key) is not None):
                    yield key, uid
            if not page.continue_token:
                return
            options = replace(options, continue_token=page.continue_token)
