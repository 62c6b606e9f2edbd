"""The objects, their versions, and what happened to them.

One counter numbers every change of the whole store, as the resourceVersion of a real cluster does. The log of changes
is bounded; it serves watches, and lists that go on from a token: the state at an earlier version is the present one
with the later changes undone.

Stored objects are never changed in place, so the log and the readers share them; who hands one out copies it.
"""

import asyncio
import marshal
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from ocf.objects import Manifest, copy_json

__all__ = ["Change", "Kind", "Place", "Store"]

Kind: TypeAlias = tuple[str, str]
"""Group and kind."""

Place: TypeAlias = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one object.

    Args:
        version: The store's version after it.
        kind: The object's kind.
        place: Where the object is.
        before: The object before; None if it was created.
        after: The object after; None if it was deleted.
    """

    version: int
    kind: Kind
    place: Place
    before: Manifest | None
    after: Manifest | None


@dataclass(slots=True)
class Store:
    """Holds the objects of a cluster.

    Args:
        history: How many changes are remembered.
    """

    history: int
    version: int = field(default=0, init=False)
    forgotten: int = field(default=0, init=False)
    _objects: dict[Kind, dict[Place, Manifest]] = field(default_factory=dict, init=False, repr=False)
    _dependents: defaultdict[str, set[tuple[Kind, Place]]] = field(
        default_factory=lambda: defaultdict(set), init=False, repr=False
    )
    _changed: dict[Kind, int] = field(default_factory=dict, init=False, repr=False)
    _packed: dict[tuple[Kind, Place], bytes] = field(default_factory=dict, init=False, repr=False)
    _log: deque[Change] = field(default_factory=deque, init=False, repr=False)
    _waiting: set[asyncio.Future[None]] = field(default_factory=set, init=False, repr=False)

    def get(self, kind: Kind, place: Place) -> Manifest | None:
        """Return an object, or None."""
        return self._objects.get(kind, {}).get(place)

    def copy(self, kind: Kind, place: Place, manifest: Manifest) -> Manifest:
        """Copy a stored object for a reader; many readers of one object are cheaper than one each."""
        packed = self._packed.get((kind, place))
        if packed is None:
            try:
                # Version 2 knows no references: a part that stands in two places is two parts in the copy.
                packed = marshal.dumps(manifest, 2)
            except ValueError:
                # A custom resource may hold what only looks like text, an enum for example.
                copied: Manifest = copy_json(manifest)
                return copied
            self._packed[kind, place] = packed
        unpacked: Manifest = marshal.loads(packed)  # noqa: S302 (our own bytes; it copies twice as fast as Python does)
        return unpacked

    def has(self, kind: Kind) -> bool:
        """Say whether there is an object of a kind."""
        return bool(self._objects.get(kind))

    def changed_at(self, kind: Kind) -> int:
        """Return the version at which an object of a kind last changed; 0 if none ever did."""
        return self._changed.get(kind, 0)

    def unpack(self) -> None:
        """Forget the prepared copies: objects are shown differently from now on."""
        self._packed.clear()

    def objects(self, kind: Kind, namespace: str = "") -> list[tuple[Place, Manifest]]:
        """Return the objects of a kind, of one namespace or of all, ordered by namespace and name."""
        return _ordered(self._objects.get(kind, {}), namespace)

    def everything(self, namespace: str = "") -> Iterator[tuple[Kind, Place, Manifest]]:
        """Walk through all objects, or those of one namespace, in a stable order."""
        for kind in sorted(self._objects):
            for place, manifest in self.objects(kind, namespace):
                yield kind, place, manifest

    def dependents(self, uid: str) -> list[tuple[Kind, Place]]:
        """Return where the objects are that name an owner, in a stable order."""
        return sorted(self._dependents.get(uid, ()))

    def put(self, kind: Kind, place: Place, manifest: Manifest) -> Manifest:
        """Store an object under the next version.

        Args:
            kind: Its kind.
            place: Where it goes.
            manifest: The object; the store owns it from here on.

        Returns:
            The object as stored.
        """
        before = self.get(kind, place)
        self.version += 1
        manifest["metadata"]["resourceVersion"] = str(self.version)
        self._objects.setdefault(kind, {})[place] = manifest
        self._index(kind, place, before, manifest)
        self._record(Change(self.version, kind, place, before, manifest))
        return manifest

    def remove(self, kind: Kind, place: Place) -> None:
        """Remove an object that is there."""
        before = self._objects[kind].pop(place)
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
        self._changed[change.kind] = change.version
        self._log.append(change)
        while len(self._log) > self.history:
            self.forgotten = self._log.popleft().version
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def forget(self) -> None:
        """Drop the whole log, as a compaction does."""
        self.forgotten = self.version
        self._log.clear()

    def since(self, version: int) -> list[Change]:
        """Return the changes after a version, oldest first; the version must not be forgotten."""
        # The newest are the ones asked for, and the log may be long.
        found: list[Change] = []
        for change in reversed(self._log):
            if change.version <= version:
                break
            found.append(change)
        return found[::-1]

    def at(self, version: int, kind: Kind, namespace: str = "") -> list[tuple[Place, Manifest]]:
        """Return the objects of a kind as they were at a version that is not forgotten."""
        state = dict(self._objects.get(kind, {}))
        for change in reversed(self.since(version)):
            if change.kind == kind:
                if change.before is None:
                    state.pop(change.place, None)
                else:
                    state[change.place] = change.before
        return _ordered(state, namespace)

    async def changed(self) -> None:
        """Wait until something changes."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            await future
        finally:
            self._waiting.discard(future)


def _owners(manifest: Manifest | None) -> set[str]:
    if manifest is None:
        return set()
    return {owner["uid"] for owner in manifest["metadata"].get("ownerReferences") or ()}


def _ordered(objects: dict[Place, Manifest], namespace: str) -> list[tuple[Place, Manifest]]:
    places = sorted(place for place in objects if not namespace or place[0] == namespace)
    return [(place, objects[place]) for place in places]
