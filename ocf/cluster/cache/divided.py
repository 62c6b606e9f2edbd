"""The objects of a kind that several processes divide by namespace: this one lists and holds those of its part.

What a process reads elsewhere is not hidden. A read by name of another namespace asks the API server, and what it finds
is watched alone. A list beyond the part, or more single watches than there may be, ends the division of the kind in
this process: from then on it holds all, as one process would. So a read is answered from the cache only where the last
list had all objects, and waits for the next list where that will have them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from ocf.cluster.cache.keys import NamespacedName, WatchScope, namespaced_name
from ocf.cluster.cache.selection import Selection
from ocf.cluster.cache.selective import SelectiveInformer

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.cluster.cache.informer import Informer
    from ocf.cluster.cache.informer_maker import InformerMaker
    from ocf.cluster.cache.list_filter import ListFilter
    from ocf.cluster.cache.serialization import CacheEntry
    from ocf.cluster.protocol import ListOptions, ObjectList
    from ocf.objects import Manifest, ObjectKey

__all__ = ["DividedInformer", "Division"]

_WIDENED: Final = "objects beyond the part of this process are read"


class Division(Protocol):
    """Which objects of the divided kinds the lists and watches of a cache have."""

    def divides(self, kind: tuple[str, str]) -> bool:
        """Return whether a kind, as apiVersion and kind, is divided."""
        ...

    def has(self, kind: tuple[str, str], namespace: str) -> bool:
        """Return whether lists that begin now have the objects of a namespace; of an empty one, those of all."""
        ...

    def shows(self, kind: tuple[str, str], namespace: str) -> bool:
        """Return whether the last list that has ended has them, and the watch has had them since."""
        ...

    async def listed(self, kind: tuple[str, str]) -> None:
        """Wait for the end of a list; raise the error of one that fails, or has failed last."""
        ...

    def widen(self, kind: tuple[str, str]) -> None:
        """Let all later lists have all objects of a kind."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part(Selection):
    """All objects in the part of this process, of which a write elsewhere is none."""

    has: Callable[[str], bool]

    def may_select(self, name: NamespacedName) -> bool:
        return self.has(name[0])


class DividedInformer(SelectiveInformer):
    """The informers of a divided kind: one for the part of this process, and those of single objects elsewhere."""

    def __init__(self, scope: WatchScope, maker: InformerMaker, division: Division) -> None:
        self._division = division
        self._kind: Final = scope[:2]
        super().__init__(scope, _Part(has=lambda namespace: division.has(self._kind, namespace)), maker)

    @property
    def _base(self) -> Informer:
        return self._bases[0]

    # Reads

    def holder(self, name: NamespacedName) -> Informer | None:
        """Return the informer that holds an object if it exists, without a request; None if none does."""
        if self._division.shows(self._kind, name[0]) or self._base.missing:
            return self._base
        return self._single.get(name)

    async def find(self, name: NamespacedName) -> Informer | None:
        """Return the informer that answers a read by name; None if the read goes to the API server."""
        if not await self._shown(name[0]):
            return await super().find(name)
        self._end(name)
        return self._base

    def may_hide(self, informer: Informer | None) -> bool:
        """Return whether what an informer does not find may exist: nothing holds it."""
        return informer is None

    async def found_by(self, name: NamespacedName, sent: Awaitable[Manifest]) -> Manifest:
        """Wait for the answer to a read that went to the API server; what it finds is watched from now on."""
        found = await super().found_by(name, sent)
        await self._shown(name[0])
        return found

    def written(self, live: Manifest) -> None:
        """Watch an object that was written, if it is not in the part of this process."""
        name = namespaced_name(live)
        if name not in self._single and not self._division.has(self._kind, name[0]):
            self._watch_alone(name)

    async def select(self, selection: ListFilter, options: ListOptions, cluster: Cluster) -> ObjectList | None:
        """Return the objects that a filter selects; None if the API server has to answer."""
        if not await self._widely_shown(options.namespace):
            return None
        found = await self._base.select(selection, options, cluster)
        # During the reads of stale ones, the namespace may have left the part.
        return found if self._division.shows(self._kind, options.namespace) else None

    async def whole(self) -> Informer | None:
        """Return the informer that holds all of the kind, which it does from now on; None if that fails."""
        return self._base if await self._widely_shown("") else None

    def unwatched(self, key: ObjectKey) -> str:
        """Return why no watch reports the changes of an object; empty if one does."""
        single = self._single.get((key.namespace, key.name))
        return "" if single is None else single.state.unwatched

    # Subscriptions

    def get(self, name: NamespacedName) -> CacheEntry | None:
        """Return an object as it was last seen; None if it was not."""
        single = self._single.get(name)
        entry = None if single is None else single.store.get(name)
        return self._base.store.get(name) if entry is None else entry

    def changed(self, name: NamespacedName, *, by: Informer) -> None:
        """Record that an object has changed in an informer."""
        if by is self._base:
            self._absent.discard(name)
            self._end(name)
        self._mark_changed(name)

    # Informers

    def _covering(self, namespace: str) -> list[Informer]:
        return [self._base] if self._division.shows(self._kind, namespace) else []

    def _watch_alone(self, name: NamespacedName) -> bool:
        if super()._watch_alone(name):
            return True
        self._widen()
        return False

    def _exists(self, name: NamespacedName) -> bool:
        return self._watch_alone(name)

    async def _widely_shown(self, namespace: str) -> bool:
        """Hold the objects of a namespace, empty for all, from now on; return whether that is so."""
        if not self._division.has(self._kind, namespace):
            self._widen()
        return await self._shown(namespace)

    async def _shown(self, namespace: str) -> bool:
        """Return whether the cache has all objects of a namespace; wait for the list where it will have them."""
        while not self._division.shows(self._kind, namespace):
            if not self._base.synced or not self._division.has(self._kind, namespace):
                return False
            await self._division.listed(self._kind)
        return self._base.synced

    def _widen(self) -> None:
        if not self._division.has(self._kind, "") and self._maker.keeps(self):
            self._division.widen(self._kind)
            self._base.store.relist_reason = _WIDENED
            self._base.relist_if_due()
