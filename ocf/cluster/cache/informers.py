"""The informers of a cache: which one covers a namespace, who keeps it, and when it ends."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator, Mapping

from ocf.cluster.cache.divided import DividedInformer, Division
from ocf.cluster.cache.informer import Informer
from ocf.cluster.cache.informer_state import InformerState
from ocf.cluster.cache.keys import NamespacedName, WatchScope
from ocf.cluster.cache.selection import Selection
from ocf.cluster.cache.selective import SelectiveInformer
from ocf.cluster.cache.serialization import CacheEntry
from ocf.cluster.cache.write_tracker import InFlightWrite
from ocf.objects import ObjectKey
from ocf.objects.manifest import split_api_version

__all__ = ["Informers", "require_served"]


class Informers:
    """The informers of a cache, each of one kind in one namespace or in all.

    Args:
        make: Makes the informer of a kind and a namespace, of what a selection selects; None selects all.
        uncached: Kinds that have none, as pairs of apiVersion and kind. It is asked for each kind that is read.
        per_namespace: Whether there is one for each namespace that is read.
        selections: The kinds of which not all objects are listed.
        read_by_name: See `CachedCluster`.
        division: Of which kinds this process holds the objects of its part.
    """

    def __init__(
        self,
        make: Callable[[WatchScope, Selection | None], Informer],
        uncached: Container[tuple[str, str]],
        *,
        per_namespace: bool,
        selections: Mapping[tuple[str, str], Selection],
        read_by_name: Mapping[tuple[str, str], Callable[[CacheEntry], bool]] | None,
        division: Division | None = None,
    ) -> None:
        self._make = make
        self._uncached = uncached
        self._per_namespace = per_namespace
        read_by_name = read_by_name or {}
        self._selections = {**dict.fromkeys(read_by_name, Selection(by_name=True)), **selections}
        self._read_by_name = {kind: is_own for kind, is_own in read_by_name.items() if kind not in selections}
        self._division = division
        self._by_scope: dict[tuple[str, str, str], Informer | SelectiveInformer] = {}
        """By `WatchScope`, which equals a tuple of its fields."""
        self._scopes: defaultdict[tuple[str, str], list[WatchScope]] = defaultdict(list)
        """By version and kind, one for each namespace."""
        self._of_kind: defaultdict[tuple[str, str], list[Informer]] = defaultdict(list)
        """By group and kind, all that list and watch."""
        self._users: Counter[WatchScope] = Counter()
        """How many have retained an informer."""
        self._ending: set[asyncio.Task[None]] = set()
        self.closed = False

    def __iter__(self) -> Iterator[Informer | SelectiveInformer]:
        return iter(self._by_scope.values())

    @property
    def selective(self) -> Iterator[SelectiveInformer]:
        """Those of kinds of which not all objects are listed."""
        return (each for each in self._by_scope.values() if isinstance(each, SelectiveInformer))

    @property
    def held(self) -> Iterator[tuple[ObjectKey, CacheEntry]]:
        """The objects in memory; one that is watched in two ways comes twice."""
        for informer in self:
            for one in informer.all if isinstance(informer, SelectiveInformer) else (informer,):
                for (namespace, name), entry in one.store.unordered():
                    yield ObjectKey(one.scope.api_version, one.scope.kind, name, namespace), entry

    async def close(self) -> None:
        """Stop all, and wait until they have ended; from then on there are none."""
        self.closed = True
        informers = tuple(self)
        self._by_scope.clear()
        self._scopes.clear()
        await asyncio.gather(*(informer.close() for informer in informers))
        while self._ending:
            await asyncio.gather(*self._ending)
        self._of_kind.clear()

    def states_of(self, api_version: str, kind: str) -> tuple[InformerState, ...]:
        """Return the state of each informer of a kind."""
        return tuple(self._by_scope[scope].state for scope in self._scopes.get((api_version, kind), ()))

    def covering(self, api_version: str, kind: str, namespace: str) -> Informer | SelectiveInformer | None:
        """Return the informer that covers a namespace (empty for all); None if reads go to the cluster."""
        found = self._by_scope.get((api_version, kind, namespace))
        if found is None and namespace:
            found = self._by_scope.get((api_version, kind, ""))
        if found is not None:
            return found
        return self.of(WatchScope(api_version, kind, namespace if self._per_namespace else ""))

    def of(self, scope: WatchScope) -> Informer | SelectiveInformer | None:
        """Return the informer of a kind and a namespace, a new one if need be; None if reads go to the cluster."""
        if self.closed or scope[:2] in self._uncached:
            return None
        informer = self._by_scope.get(scope)
        if informer is None:
            selection = self._selections.get(scope[:2])
            if self._division is not None and self._is_divided(scope[:2]) and not scope.namespace:
                informer = DividedInformer(scope, self, self._division)
            elif selection is None:
                informer = self.make(scope, None)
            else:
                informer = SelectiveInformer(scope, selection, self, self._read_by_name.get(scope[:2]))
            self._by_scope[scope] = informer
            self._scopes[scope[:2]].append(scope)
        return informer

    def _is_divided(self, kind: tuple[str, str]) -> bool:
        return self._division is not None and self._division.divides(kind)

    def make(self, scope: WatchScope, selection: Selection | None) -> Informer:
        """Make an informer, which notices writes of its kind."""
        informer = self._make(scope, selection)
        self._of_kind[split_api_version(scope.api_version)[0], scope.kind].append(informer)
        return informer

    def end(self, informer: Informer) -> None:
        """Stop an informer, which notices no more writes, unless those of its kind are being closed."""
        of_kind = self._of_kind[split_api_version(informer.scope.api_version)[0], informer.scope.kind]
        if informer in of_kind:
            of_kind.remove(informer)
            self._close_later(informer)

    def keeps(self, informer: object) -> bool:
        """Return whether the informers of a kind are in use."""
        return any(one is informer for one in self)

    def started(self, key: ObjectKey) -> Informer | None:
        """Return the informer that holds an object if it exists; None if none was started."""
        scope = (key.api_version, key.kind)
        found = self._by_scope.get((*scope, key.namespace)) or self._by_scope.get((*scope, ""))
        return found.holder((key.namespace, key.name)) if isinstance(found, SelectiveInformer) else found

    def selective_of(self, key: ObjectKey) -> SelectiveInformer | None:
        """Return the informers of a kind of which not all objects are listed; None if all are."""
        kind = (key.api_version, key.kind)
        if kind not in self._selections and not self._is_divided(kind):
            return None
        found = self.covering(key.api_version, key.kind, key.namespace)
        return found if isinstance(found, SelectiveInformer) else None

    def in_flight_write(self, key: ObjectKey) -> InFlightWrite:
        """Return a write of an object, which all informers of its kind notice."""
        name: NamespacedName | None = (key.namespace, key.name) if key.name else None
        return InFlightWrite(self._of_kind[key.group_kind], name, key.api_version)

    def retain(self, scope: WatchScope) -> None:
        """Keep an informer, once it was started, until `release` was called as often."""
        self._users[scope] += 1

    def release(self, scope: WatchScope) -> None:
        """Stop an informer unless it is retained by others."""
        self._users[scope] -= 1
        if self._users[scope] > 0:
            return
        del self._users[scope]
        informer = self._by_scope.pop(scope, None)
        if informer is not None:
            self._scopes[scope[:2]].remove(scope)
            # Those of single objects may end by themselves until then.
            for one in informer.all if isinstance(informer, SelectiveInformer) else [informer]:
                self.end(one)
            self._close_later(informer)

    def _close_later(self, informer: Informer | SelectiveInformer) -> None:
        ending = asyncio.create_task(informer.close(), name=f"end of the cache of {informer.scope}")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)


def require_served(informer: Informer | SelectiveInformer | None) -> None:
    """Raise the error of the last look for a kind that the cluster does not serve."""
    if informer is not None and informer.missing and (error := informer.error) is not None:
        raise error
