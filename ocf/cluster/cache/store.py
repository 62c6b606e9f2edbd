"""The store of an informer: the newest known state of each object.

There are three sources: lists and watches (the stream), the answers to our own writes, and single reads. They overtake
each other, so every state has its resource version and never replaces a newer one. Where versions cannot decide, the
object is marked *stale*: it is read from the cluster until the stream has caught up. A stale mark costs a read and
never returns a wrong answer, so it is used wherever an answer is ambiguous: a delete (its answer has no version), a
write whose answer was lost, a conflict (another client has written), a Scale (it is not the object), opaque versions.

A list replaces everything that was known before it began, whatever the versions: they go back after the cluster was
restored from a backup. Until then, a list is due (`relist_reason`) when an answer is older than what was known when the
request was sent, or when an event goes back to an older version.

The store does not wait, sends no requests and does not depend on time.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ocf.cluster.cache.keys import NamespacedName, namespaced_name
from ocf.cluster.cache.serialization import CacheEntry, Packing, orphans_dependents, unpack
from ocf.cluster.cache.transform import NeedsContent, Reduction, metadata_of
from ocf.cluster.indexes import Index, IndexKey
from ocf.cluster.protocol import EventType, ListOptions, WatchEvent
from ocf.objects import Manifest
from ocf.objects.resource_versions import is_newer, is_older, number_of

__all__ = ["Store", "WriteSnapshot"]


@dataclass(frozen=True, slots=True, eq=False)
class _StaleMark:
    """The cached state of an object may be older than our own write, so it is read from the cluster until then.

    Args:
        listing: The number of lists that had begun when the object was marked; a later list removes the mark.
        version: The version that our write made, if known; an event that has reached it removes the mark.
        uid: The uid of the object that we deleted, if known; its `DELETED` event removes the mark.
    """

    listing: int
    version: str = ""
    uid: str = ""


@dataclass(slots=True, eq=False)
class WriteSnapshot:
    """The state of the store, concerning one object, when a request about that object was sent.

    Args:
        known: Version of the object, or of its absence; None if neither is known.
        mark: The stale mark of the object; None if it was not stale.
    """

    name: NamespacedName
    known: str | None
    stream: str
    epoch: int
    mark: _StaleMark | None
    seen: set[str] = field(default_factory=set)
    """The versions of the object that the watch has reported since then."""


# Limits the marks of objects that are never read again; one list removes them all.
_MAX_STALE_MARKS: Final = 1_000


class Store:
    """The objects of one scope.

    Args:
        reduce: Removes from an object what is not cached; None caches the whole object.
        changed: Called with namespace and name of every object that was added, changed or removed.
        needs_content: Which objects are held with more than their metadata before they were read; None for all.
    """

    def __init__(
        self,
        reduce: Reduction | None,
        changed: Callable[[NamespacedName], None],
        needs_content: NeedsContent | None = None,
    ) -> None:
        self._reduce = reduce
        self._packing = Packing()
        self._changed = changed
        self._needs_content = needs_content
        self._may_be_partial = needs_content is not None
        self._asked: set[NamespacedName] = set()
        """Objects whose content was read, or looked for, since the last list; earlier, if that had them."""
        self._entries: dict[NamespacedName, CacheEntry] = {}
        self._owned: dict[str, set[NamespacedName]] = {}
        """The objects that refer to each owner, by its uid."""
        self._indexes: dict[Index[Any], _KeysOfObjects] = {}
        self._absent: dict[NamespacedName, str] = {}
        """Versions at which objects did not exist; kept while an older state may still arrive."""
        self._stale_marks: dict[NamespacedName, _StaleMark] = {}
        self._in_flight: dict[NamespacedName, list[WriteSnapshot]] = {}
        self._listing = 0
        self._changed_while_listing: set[NamespacedName] | None = None
        """Objects that changed since the present list began; None between lists."""
        self._epoch = 0
        self.version = ""
        """The version that the stream has reached; empty before the first list."""
        self.relist_reason = ""
        """Why a list is due; empty if no list is due."""

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, name: NamespacedName) -> CacheEntry | None:
        """Return an object; None if it does not exist."""
        return self._entries.get(name)

    def items(self, namespace: str = "") -> list[tuple[NamespacedName, CacheEntry]]:
        """Return the objects of a namespace (empty for all), ordered by namespace and name."""
        names = [name for name in self._entries if not namespace or name[0] == namespace]
        return [(name, self._entries[name]) for name in sorted(names)]

    def unordered(self) -> Iterable[tuple[NamespacedName, CacheEntry]]:
        """Return all objects, in no particular order; the caller does not wait while reading them."""
        return self._entries.items()

    def owned_by(self, uid: str) -> list[tuple[NamespacedName, CacheEntry]]:
        """Return the objects with an owner reference to a uid, in no particular order."""
        return [(name, self._entries[name]) for name in self._owned.get(uid, ())]

    def indexed(self, where: IndexKey) -> list[tuple[NamespacedName, CacheEntry]]:
        """Return the objects with a key of an index, in no particular order; its first use looks at all objects."""
        table = self._indexes.get(where.index)
        if table is None:
            table = self._indexes[where.index] = _KeysOfObjects(where.index)
            for name, entry in self._entries.items():
                table.add(name, entry)
        return [(name, self._entries[name]) for name in table.at(where.key)]

    def narrowed(self, options: ListOptions) -> Iterable[tuple[NamespacedName, CacheEntry]]:
        """Return the objects with the controller, the owner and the key of an index that a list names, unordered."""
        controller, owner, index = options.controller, options.owner, options.index
        if not (controller or owner or index):
            return self._entries.items()
        found = self.indexed(index) if index is not None else self.owned_by(controller or owner)
        return [
            (name, entry)
            for name, entry in found
            if (not owner or owner in entry.owners)
            and (not controller or (entry.controller is not None and entry.controller.uid == controller))
        ]

    def holds_all_content(self) -> bool:
        """Return whether each object is held as a whole, now and from now on."""
        if self._may_be_partial and self._needs_content is None:
            # The list that `ask_for_all` has made due may not have come yet.
            self._may_be_partial = any(entry.metadata_only for entry in self._entries.values())
        return not self._may_be_partial

    def lacks_content(self, name: NamespacedName) -> bool:
        """Return whether only the metadata of an object is held."""
        entry = self._entries.get(name)
        return entry is not None and entry.metadata_only

    def ask_for(self, name: NamespacedName) -> None:
        """Hold the content of an object from its next state on."""
        if self._needs_content is not None:
            self._asked.add(name)

    def ask_for_all(self) -> None:
        """Hold the content of all objects; those that lack it have to be listed again."""
        self._needs_content = None
        self.relist_reason = "the content of objects is read of which only the metadata is held"

    def is_stale(self, name: NamespacedName) -> bool:
        """Return whether the object must be read from the cluster."""
        return name in self._stale_marks

    def stale(self, namespace: str = "") -> list[NamespacedName]:
        """Return the objects of a namespace (empty for all) that must be read from the cluster."""
        return [name for name in self._stale_marks if not namespace or name[0] == namespace]

    def clear(self) -> None:
        """Forget all objects."""
        self._entries.clear()
        self._asked.clear()
        self._owned.clear()
        self._indexes.clear()
        self._absent.clear()
        self._stale_marks.clear()

    # The stream

    def begin_listing(self) -> None:
        """Record that a list begins: a state that arrives from now on may be newer than the list."""
        self._listing += 1
        self._changed_while_listing = set()
        self.relist_reason = ""

    def listed(self, manifest: Manifest) -> tuple[NamespacedName, CacheEntry]:
        """Serialize an object of a list, or return the present entry if it has the same version."""
        name = namespaced_name(manifest)
        entry, metadata = self._entries.get(name), manifest["metadata"]
        version = (metadata.get("resourceVersion") or "", metadata.get("uid") or "")
        same = entry is not None and entry.version and (entry.version, entry.uid) == version
        if entry is not None and same:
            self._complete(entry, manifest)
            return name, entry
        packed = self._packed(manifest)
        # What happened between the deletion and this list was not seen.
        packed.orphans = packed.orphans or "deletionTimestamp" in metadata
        return name, packed

    def replace(self, listed: Mapping[NamespacedName, CacheEntry], version: str) -> None:
        """Replace the content of the store with a list that `begin_listing` has announced.

        Args:
            listed: The objects, as `listed` returned them.
        """
        kept = {
            name for name in self._changed_while_listing or () if is_newer(self._known_version(name) or "", version)
        }
        self._changed_while_listing = None
        self._asked &= listed.keys()
        self._absent = {name: at for name, at in self._absent.items() if name in kept}
        self._stale_marks = {name: mark for name, mark in self._stale_marks.items() if mark.listing == self._listing}
        for name in self._entries.keys() - listed.keys() - kept:
            self._drop(name).orphans = True
            self._changed(name)
        for name, entry in listed.items():
            if name not in kept and self._entries.get(name) is not entry:
                self._put(name, entry)
                self._changed(name)
        self.version = version
        self._epoch += 1

    def take(self, event: WatchEvent) -> None:
        """Apply an event of the watch that follows the last list."""
        metadata = event.object["metadata"]
        version = str(metadata.get("resourceVersion") or "")
        if event.type is EventType.BOOKMARK:
            self._advance(version)
            return
        name, uid = namespaced_name(event.object), str(metadata.get("uid") or "")
        entry, known = self._entries.get(name), self._known_version(name)
        if entry is not None and entry.uid == uid and orphans_dependents(event.object):
            # Also if the answer to a write of ours was newer than this state.
            entry.orphans = entry.orphaning = True
        # A deletion is final, whatever its version: some servers send the last version that the object had.
        ends = event.type is EventType.DELETED and entry is not None and bool(uid) and entry.uid == uid
        if not self._advance(version, lenient=ends):
            return
        for snapshot in self._in_flight.get(name, ()):
            snapshot.seen.add(version)
        self._clear_mark_by_event(name, event.type, version, uid)
        if ends or known is None or not (version == known or is_older(version, known)):
            self._set(name, None if event.type is EventType.DELETED else event.object, version)

    def _advance(self, version: str, *, lenient: bool = False) -> bool:
        """Advance to the version of an event; return False for an event that goes back and must be ignored."""
        if not is_older(version, self.version):
            self.version = version
            self._forget_absences()
        elif not lenient:
            self.relist_reason = f"the watch went back from resourceVersion {self.version} to {version}"
            return False
        return True

    def _clear_mark_by_event(self, name: NamespacedName, happened: EventType, version: str, uid: str) -> None:
        mark = self._stale_marks.get(name)
        if mark is None:
            return
        written = mark.version and (version == mark.version or is_newer(version, mark.version))
        if written or (mark.uid and happened is EventType.DELETED and uid == mark.uid):
            del self._stale_marks[name]

    # Our own requests

    def begin(self, name: NamespacedName) -> WriteSnapshot:
        """Record that a request about an object is sent; the caller ends it with `end`."""
        snapshot = WriteSnapshot(
            name, self._known_version(name), self.version, self._epoch, self._stale_marks.get(name)
        )
        self._in_flight.setdefault(name, []).append(snapshot)
        return snapshot

    def empty_snapshot(self, name: NamespacedName) -> WriteSnapshot:
        """Return a snapshot without knowledge, for a request that was sent before its object was known."""
        return WriteSnapshot(name, None, "", -1, None)

    def end(self, snapshot: WriteSnapshot) -> None:
        """Record that a request has ended, whatever its outcome."""
        snapshots = self._in_flight[snapshot.name]
        snapshots.remove(snapshot)
        if not snapshots:
            del self._in_flight[snapshot.name]
            self._forget_absences()

    def found(self, snapshot: WriteSnapshot, manifest: Manifest) -> None:
        """Record the object in the answer to a request."""
        name, version = snapshot.name, str(manifest["metadata"].get("resourceVersion") or "")
        if not self._can_order(version):
            self._mark_until(snapshot, version)
            return
        known = self._known_version(name)
        if self._went_back(snapshot, version, absent=False):
            self._set(name, manifest, version)
        elif known is not None:
            if is_newer(version, known):
                self._set(name, manifest, version)
            elif version == known and name in self._entries:
                self._complete(self._entries[name], manifest)
        elif snapshot.epoch != self._epoch and not is_newer(version, self.version):
            # A list in between did not contain it: it was deleted, or created after the list began.
            self.mark_stale(snapshot)
            return
        else:
            self._set(name, manifest, version)
        self._clear_mark_of(snapshot)

    def missed(self, snapshot: WriteSnapshot, version: str) -> None:
        """Record that an object did not exist.

        Args:
            snapshot: The snapshot of the read that did not find it.
        """
        if not self._can_order(version):
            return
        known = self._known_version(snapshot.name)
        entry = self._entries.get(snapshot.name)
        if entry is not None and not _is_ending(entry):
            # Its deletion was not seen yet. Later on, no finalizer is added any more.
            entry.orphans = True
        if self._went_back(snapshot, version, absent=True) or known is None or not is_newer(known, version):
            self._set(snapshot.name, None, version)
        self._clear_mark_of(snapshot)

    def expect_version(self, snapshot: WriteSnapshot, version: str) -> None:
        """Record that a write made a version of the object that its answer did not contain.

        Args:
            version: The version; empty if unknown.
        """
        if version:
            self._mark_until(snapshot, version)
        else:
            self.mark_stale(snapshot)

    def mark_stale(self, snapshot: WriteSnapshot, *, version: str = "", uid: str = "") -> None:
        """Mark an object as stale: its cached state may be older than our own write.

        Args:
            version: The version that the write made, if known.
            uid: The uid of the object that the write deleted, if known.
        """
        current = self._stale_marks.get(snapshot.name)
        if current is not None and current is not snapshot.mark:
            # The order of two concurrent requests is unknown: no event about one of them removes the mark of both.
            version = uid = ""
        self._stale_marks[snapshot.name] = _StaleMark(self._listing, version, uid)
        if len(self._stale_marks) > _MAX_STALE_MARKS:
            self.relist_reason = f"more than {_MAX_STALE_MARKS} objects are stale"

    def _mark_until(self, snapshot: WriteSnapshot, version: str) -> None:
        """Mark an object as stale until the stream has reached a version, unless it has already."""
        known = self._known_version(snapshot.name)
        passed = version in snapshot.seen or version in (snapshot.known, known) or is_newer(known or "", version)
        if not passed:
            self.mark_stale(snapshot, version=version)

    def _went_back(self, snapshot: WriteSnapshot, version: str, *, absent: bool) -> bool:
        """Return whether an answer is older than what was known when the request was sent."""
        if snapshot.epoch != self._epoch:
            return False
        before = snapshot.known or snapshot.stream
        back = is_older(version, before)
        if absent:
            # A list is as new as the stream; an object may have its version for a long time.
            back = back or is_older(version, snapshot.stream)
        elif snapshot.known is None:
            # An object that the stream had not reported is newer than the stream.
            back = back or version == snapshot.stream
        if back:
            self.relist_reason = f"the cluster answered with resourceVersion {version} after {before}"
        return back

    def _clear_mark_of(self, snapshot: WriteSnapshot) -> None:
        if snapshot.mark is not None and self._stale_marks.get(snapshot.name) is snapshot.mark:
            del self._stale_marks[snapshot.name]

    # Helpers

    def _can_order(self, version: str) -> bool:
        return number_of(version) is not None and (not self.version or number_of(self.version) is not None)

    def _known_version(self, name: NamespacedName) -> str | None:
        entry = self._entries.get(name)
        return entry.version if entry is not None else self._absent.get(name)

    def _set(self, name: NamespacedName, manifest: Manifest | None, version: str) -> None:
        if self._changed_while_listing is not None:
            self._changed_while_listing.add(name)
        if manifest is not None:
            self._absent.pop(name, None)
            before, entry = self._entries.get(name), self._packed(manifest)
            if before is not None and before.uid == entry.uid:
                entry.orphans, entry.orphaning = entry.orphans or before.orphans, entry.orphaning or before.orphaning
            self._put(name, entry)
            self._changed(name)
            return
        if name in self._in_flight or is_older(self.version, version):
            self._absent[name] = version
        if name in self._entries:
            self._drop(name)
            self._changed(name)

    def _put(self, name: NamespacedName, entry: CacheEntry) -> None:
        """Set the entry of an object, also in the indexes."""
        before = self._entries.get(name)
        if before is not None and before.owners != entry.owners:
            self._drop(name)
        self._entries[name] = entry
        for uid in entry.owners:
            self._owned.setdefault(uid, set()).add(name)
        for table in self._indexes.values():
            table.add(name, entry)

    def _drop(self, name: NamespacedName) -> CacheEntry:
        """Remove the entry of an object that is known, also from the indexes."""
        entry = self._entries.pop(name)
        for table in self._indexes.values():
            table.remove(name)
        for uid in {*entry.owners}:
            names = self._owned[uid]
            names.discard(name)
            if not names:
                del self._owned[uid]
        return entry

    def _packed(self, manifest: Manifest) -> CacheEntry:
        reduced = self._reduce(manifest) if self._reduce is not None else manifest
        if self._needs_content is None or namespaced_name(manifest) in self._asked or self._needs_content(manifest):
            return self._packing.pack(reduced)
        entry = self._packing.pack(metadata_of(reduced))
        entry.metadata_only = True
        return entry

    def _complete(self, entry: CacheEntry, manifest: Manifest) -> None:
        """Add the content to an entry of the same version that lacks it, if it is held now."""
        if entry.metadata_only:
            packed = self._packed(manifest)
            entry.packed, entry.samples = packed.packed, packed.samples
            entry.metadata_only = packed.metadata_only

    def _forget_absences(self) -> None:
        """Drop the absences of objects of which no older state can arrive."""
        if self._absent:
            self._absent = {
                name: at for name, at in self._absent.items() if name in self._in_flight or is_older(self.version, at)
            }


class _KeysOfObjects:
    """The objects of one index by their keys."""

    def __init__(self, index: Index[Any]) -> None:
        self._index = index
        self._names: dict[Hashable, set[NamespacedName]] = {}
        self._keys: dict[NamespacedName, frozenset[Hashable]] = {}

    def at(self, key: Hashable) -> Iterable[NamespacedName]:
        return self._names.get(key, ())

    def add(self, name: NamespacedName, entry: CacheEntry) -> None:
        """Set the keys of an object, in place of those of its last state."""
        self.remove(name)
        self._keys[name] = keys = self._index.keys_of(unpack(entry))
        for key in keys:
            self._names.setdefault(key, set()).add(name)

    def remove(self, name: NamespacedName) -> None:
        for key in self._keys.pop(name, ()):
            names = self._names[key]
            names.discard(name)
            if not names:
                del self._names[key]


def _is_ending(entry: CacheEntry) -> bool:
    return "deletionTimestamp" in unpack(entry)["metadata"]
