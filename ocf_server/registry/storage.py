"""Storage of objects, with resourceVersions and a log of changes.

One counter numbers the changes of the whole store, as in a real cluster. The log of changes is bounded. Watches read
it, and so do lists with a continue token: the state at an earlier version is the present state with the later changes
undone.

Stored objects are never changed in place, so the log and the readers share them; objects are copied before a client
receives them.
"""

import asyncio
import marshal
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import merge
from typing import TypeAlias

from ocf.objects import Manifest, copy_json
from ocf_server.registry.encodings import EncodingCache

__all__ = ["Change", "Kind", "Listing", "ObjectTable", "Place", "Storage"]

Place: TypeAlias = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""


@dataclass(frozen=True, slots=True)
class ObjectTable:
    """Objects of one kind, by namespace and name; each change takes the time of a binary search."""

    _objects: dict[Place, Manifest] = field(default_factory=dict)
    _places: list[Place] = field(default_factory=list)

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self._objects)

    def clone(self) -> "ObjectTable":
        """Return an independent table of the same objects."""
        return ObjectTable(self._objects.copy(), self._places.copy())

    def get(self, place: Place) -> Manifest | None:
        """Return the object at a place, or None."""
        return self._objects.get(place)

    def put(self, place: Place, manifest: Manifest) -> None:
        """Add or replace an object."""
        if place not in self._objects:
            insort(self._places, place)
        self._objects[place] = manifest

    def remove(self, place: Place) -> Manifest:
        """Remove and return an object, which must exist."""
        found = self._objects.pop(place)
        del self._places[bisect_left(self._places, place)]
        return found

    def listing(
        self, namespace: str = "", after: Place | None = None, earlier: Mapping[Place, Manifest | None] | None = None
    ) -> "Listing":
        """Return the objects in order.

        Args:
            namespace: The namespace; empty for all.
            after: The place after which the listing starts; None for the first.
            earlier: Objects to list instead of the present ones, by place; None means that there was none.

        Returns:
            The objects; to be read before the next change of the table.
        """
        bounds = _Bounds(namespace, after)
        shown = {place: item for place, item in (earlier or {}).items() if bounds.contains(place)}
        return Listing(self._objects, self._places, bounds.start(self._places), bounds.stop(self._places), shown)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The part of an ordered list of places that a listing covers."""

    namespace: str
    after: Place | None

    def start(self, places: list[Place]) -> int:
        first = bisect_left(places, (self.namespace,)) if self.namespace else 0
        return first if self.after is None else max(first, bisect_right(places, self.after))

    def stop(self, places: list[Place]) -> int:
        # No string is between a namespace and the same with the lowest character appended.
        end = bisect_left(places, (f"{self.namespace}\0",)) if self.namespace else len(places)
        return max(end, self.start(places))

    def contains(self, place: Place) -> bool:
        return (not self.namespace or place[0] == self.namespace) and (self.after is None or place > self.after)


@dataclass(frozen=True, slots=True)
class Listing:
    """Objects of one kind in order, in a namespace, after a place, and possibly as they were earlier."""

    _objects: Mapping[Place, Manifest]
    _places: list[Place]
    _start: int
    _stop: int
    _earlier: Mapping[Place, Manifest | None]

    def __len__(self) -> int:
        """Return the number of objects, without walking through them."""
        replaced = sum(place in self._objects for place in self._earlier)
        return self._stop - self._start - replaced + sum(item is not None for item in self._earlier.values())

    def __iter__(self) -> Iterator[Manifest]:
        """Yield the objects."""
        if not self._earlier:
            # No tuple for each object: many of them would start a collection of garbage, which walks the whole store.
            return map(self._objects.__getitem__, self._present())
        return (manifest for _, manifest in self.items())

    def items(self) -> Iterator[tuple[Place, Manifest]]:
        """Yield place and object."""
        kept = ((place, self._objects[place]) for place in self._present() if place not in self._earlier)
        past = sorted((place, item) for place, item in self._earlier.items() if item is not None)
        return merge(kept, past, key=lambda pair: pair[0]) if past else kept

    def _present(self) -> Iterator[Place]:
        # islice would walk through what precedes the start.
        return map(self._places.__getitem__, range(self._start, self._stop))


Kind: TypeAlias = tuple[str, str]
"""Group and kind."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one object.

    Args:
        before: The object before the change; None if it was created.
        after: The object after the change; None if it was deleted.
    """

    version: int
    kind: Kind
    place: Place
    before: Manifest | None
    after: Manifest | None


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    """A wait for a change.

    Args:
        kinds: The kinds of the change; empty for any.
        latest: A version at which a change of any kind ends the wait.
        future: Its result is the version of the change; None if the wait ended without one.
    """

    kinds: tuple[Kind, ...]
    latest: int
    future: "asyncio.Future[int | None]"

    def wants(self, change: Change) -> bool:
        return not self.kinds or change.kind in self.kinds or self.latest <= change.version

    def finish(self, version: int | None) -> None:
        if not self.future.done():
            self.future.set_result(version)


@dataclass(slots=True)
class Storage:
    """Objects of a cluster."""

    history: int
    version: int = field(default=0, init=False)
    forgotten: int = field(default=0, init=False)
    encodings: EncodingCache = field(default_factory=EncodingCache, init=False, repr=False)
    _objects: defaultdict[Kind, ObjectTable] = field(
        default_factory=lambda: defaultdict(ObjectTable), init=False, repr=False
    )
    _dependents: defaultdict[str, set[tuple[Kind, Place]]] = field(
        default_factory=lambda: defaultdict(set), init=False, repr=False
    )
    _changed: dict[Kind, int] = field(default_factory=dict, init=False, repr=False)
    _packed: dict[tuple[Kind, Place], bytes] = field(default_factory=dict, init=False, repr=False)
    _log: deque[Change] = field(default_factory=deque, init=False, repr=False)
    # In order of arrival, so that runs in virtual time are the same each time; a set has the order of addresses.
    _waiting: dict[_Waiter, None] = field(default_factory=dict, init=False, repr=False)

    def clone(self) -> "Storage":
        """Return an independent store in the present state; the waits for changes remain with this one."""
        clone = Storage(self.history)
        clone.version, clone.forgotten = self.version, self.forgotten
        clone._objects.update((kind, table.clone()) for kind, table in self._objects.items())
        clone._dependents.update((uid, found.copy()) for uid, found in self._dependents.items())
        clone._changed.update(self._changed)
        clone._packed.update(self._packed)
        clone._log.extend(self._log)
        return clone

    def get(self, kind: Kind, place: Place) -> Manifest | None:
        """Return an object, or None if it does not exist."""
        table = self._objects.get(kind)
        return None if table is None else table.get(place)

    def copy(self, kind: Kind, place: Place, manifest: Manifest) -> Manifest:
        """Return a copy of a stored object; further copies of the same object are cheaper than the first."""
        packed = self._packed.get((kind, place))
        if packed is None:
            try:
                # Version 2 has no references: a part that occurs twice in the object is copied twice.
                packed = marshal.dumps(manifest, 2)
            except ValueError:
                # A custom resource may contain subclasses of str, for example members of an enum.
                copied: Manifest = copy_json(manifest)
                return copied
            self._packed[kind, place] = packed
        unpacked: Manifest = marshal.loads(packed)  # noqa: S302 (our own bytes; it copies twice as fast as Python does)
        return unpacked

    def has(self, kind: Kind) -> bool:
        """Return whether an object of a kind exists."""
        return bool(self._objects.get(kind))

    def changed_at(self, kind: Kind) -> int:
        """Return the version of the last change of a kind; 0 if no object of the kind was ever written."""
        return self._changed.get(kind, 0)

    def unpack(self) -> None:
        """Drop cached copies and encodings, after a change of the schemas by which objects are read."""
        self._packed.clear()
        self.encodings = EncodingCache()

    def objects(self, kind: Kind, namespace: str = "") -> list[tuple[Place, Manifest]]:
        """Return the present objects of a kind, of one namespace or of all, ordered by namespace and name."""
        return list(self._objects[kind].listing(namespace).items())

    def everything(self, namespace: str = "") -> Iterator[tuple[Kind, Place, Manifest]]:
        """Yield all objects, or those of one namespace, in a stable order."""
        for kind in sorted(self._objects):
            for place, manifest in self.objects(kind, namespace):
                yield kind, place, manifest

    def dependents(self, uid: str) -> list[tuple[Kind, Place]]:
        """Return the objects with an owner reference to a uid, in a stable order."""
        return sorted(self._dependents.get(uid, ()))

    def put(self, kind: Kind, place: Place, manifest: Manifest) -> Manifest:
        """Store an object under the next version.

        Args:
            manifest: The object; it belongs to the store afterwards.

        Returns:
            The object as stored.
        """
        before = self.get(kind, place)
        self.version += 1
        # One counter for all kinds, as the revision of etcd: clients compare versions of different kinds.
        manifest["metadata"]["resourceVersion"] = str(self.version)
        self._objects[kind].put(place, manifest)
        self._index(kind, place, before, manifest)
        self._record(Change(self.version, kind, place, before, manifest))
        return manifest

    def remove(self, kind: Kind, place: Place) -> None:
        """Remove an object, which must exist."""
        before = self._objects[kind].remove(place)
        self.version += 1
        self._index(kind, place, before, None)
        self._record(Change(self.version, kind, place, before, None))

    def _index(self, kind: Kind, place: Place, before: Manifest | None, after: Manifest | None) -> None:
        for uid in _owners(before) - _owners(after):
            self._dependents[uid].discard((kind, place))
            if not self._dependents[uid]:
                del self._dependents[uid]
        for uid in _owners(after):
            self._dependents[uid].add((kind, place))

    def _record(self, change: Change) -> None:
        self._packed.pop((change.kind, change.place), None)
        if change.before is not None:
            self.encodings.retire(change.before["metadata"]["resourceVersion"])
        self._changed[change.kind] = change.version
        self._log.append(change)
        while len(self._log) > self.history:
            self.forgotten = self._log.popleft().version
        woken = [waiter for waiter in self._waiting if waiter.wants(change)]
        for waiter in woken:
            del self._waiting[waiter]
        for waiter in woken:
            waiter.finish(change.version)

    def forget(self) -> None:
        """Drop the whole log, as a compaction of etcd does."""
        self.forgotten = self.version
        self._log.clear()

    def since(self, version: int) -> list[Change]:
        """Return the changes after a version, oldest first; the log must still contain them."""
        # Most callers need only the newest changes of a long log, so the search starts at its end.
        found: list[Change] = []
        for change in reversed(self._log):
            if change.version <= version:
                break
            found.append(change)
        return found[::-1]

    def changed_places(self, kind: Kind, version: int, known: Iterable[Place]) -> list[Place]:
        """Return where objects of a kind have changed after a version, in order.

        Args:
            known: Where there were objects at that version; if the log does not reach back, they may all have changed.
        """
        if version >= self.forgotten:
            return sorted({change.place for change in self.since(version) if change.kind == kind})
        return sorted({*known, *(place for place, _ in self.objects(kind))})

    def listing(
        self, kind: Kind, namespace: str = "", *, version: int | None = None, after: Place | None = None
    ) -> Listing:
        """Return the objects of a kind in order; to be read before the next change of the store.

        Args:
            namespace: Their namespace; empty for all.
            version: The version at which to list them; the log must still contain the changes since then. None for the
                present one.
            after: The place after which the listing starts; None for the first.
        """
        earlier: dict[Place, Manifest | None] = {}
        if version is not None and version < self.changed_at(kind):
            for change in self.since(version):
                if change.kind == kind:
                    # The first change after the version has the state of then.
                    earlier.setdefault(change.place, change.before)
        return self._objects[kind].listing(namespace, after, earlier)

    async def changed(self) -> None:
        """Wait for the next change."""
        await self._wait((), 0, None)

    async def kinds_changed(self, *kinds: Kind, latest: int, deadline: float | None) -> int | None:
        """Wait for the next change of one of some kinds.

        Args:
            latest: A version at which a change of any kind ends the wait.
            deadline: Time of the event loop at which the wait ends; None for never.

        Returns:
            The version of the change; None if there was none before the deadline.
        """
        return await self._wait(kinds, latest, deadline)

    async def _wait(self, kinds: tuple[Kind, ...], latest: int, deadline: float | None) -> int | None:
        loop = asyncio.get_running_loop()
        waiter = _Waiter(kinds, latest, loop.create_future())
        timer = None if deadline is None else loop.call_at(deadline, waiter.finish, None)
        self._waiting[waiter] = None
        try:
            return await waiter.future
        finally:
            self._waiting.pop(waiter, None)
            if timer is not None:
                timer.cancel()


def _owners(manifest: Manifest | None) -> set[str]:
    if manifest is None:
        return set()
    return {owner["uid"] for owner in manifest["metadata"].get("ownerReferences") or ()}
