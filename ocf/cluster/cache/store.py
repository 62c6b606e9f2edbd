"""What is known of the objects of one kind: one state per object, the newest that anybody told.

Three sources tell: lists and watches (the stream), the answers of our own writes, and single reads. They overtake each
other, so every state comes with its resource version and never replaces a newer one. What no version can order is a
*doubt*: the object is then read from the cluster until the stream has caught up. A doubt costs a read, never a wrong
answer, and so it is the way out wherever an answer is ambiguous: a delete (it does not say at which version), a write
whose reply was lost, a conflict (somebody else knows more), a Scale (it is not the object), opaque versions.

A list replaces everything that was known before it began, whatever the versions: after the cluster was restored from a
backup they go back. Until then, an answer that is older than what was known when it was asked for, or an event that
goes back, says that a list is due (`contradiction`).

Nothing here waits, sends or knows the time.
"""

from collections.abc import Callable, Mapping
from typing import Final

from ocf.cluster.cache.in_flight import StaleMark, WriteSnapshot
from ocf.cluster.cache.keys import NamespacedName, namespaced_name
from ocf.cluster.cache.resource_versions import is_newer, is_older, number_of
from ocf.cluster.cache.serialization import CacheEntry, pack
from ocf.cluster.cache.transform import Reduction
from ocf.cluster.protocol import EventType, WatchEvent
from ocf.objects import Manifest

__all__ = ["Store"]

# Doubts about objects that nobody reads again; one list clears them all.
_MOST_DOUBTS: Final = 1_000


class Store:
    """The objects of one scope.

    Args:
        reduce: Leaves out of an object what is not kept; None keeps all of it.
        changed: Called with the place of every object that is another one now, or gone.
    """

    def __init__(self, reduce: Reduction | None, changed: Callable[[NamespacedName], None]) -> None:
        self._reduce = reduce
        self._changed = changed
        self._entries: dict[NamespacedName, CacheEntry] = {}
        self._absent: dict[NamespacedName, str] = {}
        """Versions at which objects were not there; kept while something older may still come."""
        self._doubts: dict[NamespacedName, StaleMark] = {}
        self._flights: dict[NamespacedName, list[WriteSnapshot]] = {}
        self._listing = 0
        self._fresh: set[NamespacedName] | None = None
        """What was told while a list is under way; None while none is."""
        self._epoch = 0
        self.version = ""
        """How far the stream has come; empty before the first list."""
        self.contradiction = ""
        """Why a list is due; empty if none is."""

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, place: NamespacedName) -> CacheEntry | None:
        """Return an object; None if it is not there."""
        return self._entries.get(place)

    def items(self, namespace: str = "") -> list[tuple[NamespacedName, CacheEntry]]:
        """Return the objects of a namespace, or of all, ordered by namespace and name."""
        places = [place for place in self._entries if not namespace or place[0] == namespace]
        return [(place, self._entries[place]) for place in sorted(places)]

    def is_stale(self, place: NamespacedName) -> bool:
        """Tell whether only the cluster can say what is there."""
        return place in self._doubts

    def stale(self, namespace: str = "") -> list[NamespacedName]:
        """Return the places of a namespace, or of all, where only the cluster can say what is there."""
        return [place for place in self._doubts if not namespace or place[0] == namespace]

    def clear(self) -> None:
        """Forget all objects."""
        self._entries.clear()
        self._absent.clear()
        self._doubts.clear()

    # The stream

    def begin_listing(self) -> None:
        """Note that a list begins: what is told from here on may be newer than the list."""
        self._listing += 1
        self._fresh = set()
        self.contradiction = ""

    def listed(self, manifest: Manifest) -> tuple[NamespacedName, CacheEntry]:
        """Put an object of a list into its small form, or find the one that is there already."""
        place = namespaced_name(manifest)
        entry, metadata = self._entries.get(place), manifest["metadata"]
        version = (metadata.get("resourceVersion") or "", metadata.get("uid") or "")
        same = entry is not None and entry.version and (entry.version, entry.uid) == version
        return place, entry if entry is not None and same else self._packed(manifest)

    def replace(self, listed: Mapping[NamespacedName, CacheEntry], version: str) -> None:
        """Take over a list that `begin_listing` has announced.

        Args:
            listed: The objects, as `listed` returned them.
            version: The version of the list.
        """
        kept = {place for place in self._fresh or () if is_newer(self._known(place) or "", version)}
        self._fresh = None
        self._absent = {place: at for place, at in self._absent.items() if place in kept}
        self._doubts = {place: doubt for place, doubt in self._doubts.items() if doubt.listing == self._listing}
        for place in self._entries.keys() - listed.keys() - kept:
            del self._entries[place]
            self._changed(place)
        for place, entry in listed.items():
            if place not in kept and self._entries.get(place) is not entry:
                self._entries[place] = entry
                self._changed(place)
        self.version = version
        self._epoch += 1

    def take(self, event: WatchEvent) -> None:
        """Take over an event of the watch that follows the last list."""
        metadata = event.object["metadata"]
        version = str(metadata.get("resourceVersion") or "")
        if event.type is EventType.BOOKMARK:
            self._advance(version)
            return
        place, uid = namespaced_name(event.object), str(metadata.get("uid") or "")
        entry, known = self._entries.get(place), self._known(place)
        # The end of an object is final, whatever its version: some servers send the last one it had.
        ends = event.type is EventType.DELETED and entry is not None and bool(uid) and entry.uid == uid
        if not self._advance(version, lenient=ends):
            return
        for ticket in self._flights.get(place, ()):
            ticket.seen.add(version)
        self._clear_up(place, event.type, version, uid)
        if ends or known is None or not (version == known or is_older(version, known)):
            self._set(place, None if event.type is EventType.DELETED else event.object, version)

    def _advance(self, version: str, *, lenient: bool = False) -> bool:
        """Go on to the version of an event; False for an event that goes back and is not to count."""
        if not is_older(version, self.version):
            self.version = version
            if self._absent:
                self._forget_absences()
        elif not lenient:
            self.contradiction = f"the watch went back from resourceVersion {self.version} to {version}"
            return False
        return True

    def _clear_up(self, place: NamespacedName, happened: EventType, version: str, uid: str) -> None:
        doubt = self._doubts.get(place)
        if doubt is None:
            return
        written = doubt.version and (version == doubt.version or is_newer(version, doubt.version))
        if written or (doubt.uid and happened is EventType.DELETED and uid == doubt.uid):
            del self._doubts[place]

    # Requests of ours

    def begin(self, place: NamespacedName) -> WriteSnapshot:
        """Note that a request about an object is sent; `end` has to follow."""
        ticket = WriteSnapshot(place, self._known(place), self.version, self._epoch, self._doubts.get(place))
        self._flights.setdefault(place, []).append(ticket)
        return ticket

    def late(self, place: NamespacedName) -> WriteSnapshot:
        """Return a ticket for a request that was sent before we knew that it would concern us."""
        return WriteSnapshot(place, None, "", -1, None)

    def end(self, ticket: WriteSnapshot) -> None:
        """Note that a request is over, whatever came of it."""
        flights = self._flights[ticket.place]
        flights.remove(ticket)
        if not flights:
            del self._flights[ticket.place]
            self._forget_absences()

    def found(self, ticket: WriteSnapshot, manifest: Manifest) -> None:
        """Take over an object that a request of ours was answered with.

        Args:
            ticket: Of the request.
            manifest: The object.
        """
        place, version = ticket.place, str(manifest["metadata"].get("resourceVersion") or "")
        if not self._can_order(version):
            self._await_version(ticket, version)
            return
        known = self._known(place)
        if self._goes_back(ticket, version, absent=False):
            self._set(place, manifest, version)
        elif known is not None:
            if is_newer(version, known):
                self._set(place, manifest, version)
        elif ticket.epoch != self._epoch and not is_newer(version, self.version):
            # A list came in between and did not have it: it ended, or the list began before it.
            self.mark_stale(ticket)
            return
        else:
            self._set(place, manifest, version)
        self._cleared(ticket)

    def missed(self, ticket: WriteSnapshot, version: str) -> None:
        """Take over that an object was not there.

        Args:
            ticket: Of the read that did not find it.
            version: At which version it was not there.
        """
        if not self._can_order(version):
            return
        known = self._known(ticket.place)
        if self._goes_back(ticket, version, absent=True) or known is None or not is_newer(known, version):
            self._set(ticket.place, None, version)
        self._cleared(ticket)

    def expect_version(self, ticket: WriteSnapshot, version: str) -> None:
        """Note that a request of ours made a version of the object that its answer did not contain.

        Args:
            ticket: Of the request.
            version: The version; empty if unknown.
        """
        if version:
            self._await_version(ticket, version)
        else:
            self.mark_stale(ticket)

    def mark_stale(self, ticket: WriteSnapshot, *, version: str = "", uid: str = "") -> None:
        """Note that memory may be older than what we did to an object.

        Args:
            ticket: Of the request that did it.
            version: The version that our write made, if known.
            uid: The uid of what we deleted, if known.
        """
        open_doubt = self._doubts.get(ticket.place)
        if open_doubt is not None and open_doubt is not ticket.doubt:
            # Of two requests under way at once nobody knows which came last: no event about one settles both.
            version = uid = ""
        self._doubts[ticket.place] = StaleMark(self._listing, version, uid)
        if len(self._doubts) > _MOST_DOUBTS:
            self.contradiction = f"more than {_MOST_DOUBTS} objects are in doubt"

    def _await_version(self, ticket: WriteSnapshot, version: str) -> None:
        """Doubt an object until the stream has reached a version, if it has not yet."""
        known = self._known(ticket.place)
        passed = version in ticket.seen or version in (ticket.known, known) or is_newer(known or "", version)
        if not passed:
            self.mark_stale(ticket, version=version)

    def _goes_back(self, ticket: WriteSnapshot, version: str, *, absent: bool) -> bool:
        """Tell whether an answer is older than what was known when it was asked for."""
        if ticket.epoch != self._epoch:
            return False
        before = ticket.known or ticket.stream
        back = is_older(version, before)
        if absent:
            # A list is as new as the stream; an object may have been as it is for long.
            back = back or is_older(version, ticket.stream)
        elif ticket.known is None:
            # An object that the stream did not have is newer than the stream.
            back = back or version == ticket.stream
        if back:
            self.contradiction = f"the cluster answered with resourceVersion {version} after {before}"
        return back

    def _cleared(self, ticket: WriteSnapshot) -> None:
        if ticket.doubt is not None and self._doubts.get(ticket.place) is ticket.doubt:
            del self._doubts[ticket.place]

    # Both

    def _can_order(self, version: str) -> bool:
        return number_of(version) is not None and (not self.version or number_of(self.version) is not None)

    def _known(self, place: NamespacedName) -> str | None:
        entry = self._entries.get(place)
        return entry.version if entry is not None else self._absent.get(place)

    def _set(self, place: NamespacedName, manifest: Manifest | None, version: str) -> None:
        if self._fresh is not None:
            self._fresh.add(place)
        if manifest is not None:
            self._absent.pop(place, None)
            self._entries[place] = self._packed(manifest)
            self._changed(place)
            return
        if place in self._flights or is_older(self.version, version):
            self._absent[place] = version
        if self._entries.pop(place, None) is not None:
            self._changed(place)

    def _packed(self, manifest: Manifest) -> CacheEntry:
        return pack(self._reduce(manifest) if self._reduce is not None else manifest)

    def _forget_absences(self) -> None:
        """Drop the absences behind which nothing older can come any more."""
        self._absent = {
            place: at for place, at in self._absent.items() if place in self._flights or is_older(self.version, at)
        }
