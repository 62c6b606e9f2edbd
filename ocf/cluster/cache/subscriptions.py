"""Bounded, coalescing subscriptions to the changes of the cache.

A slow subscriber does not fill the memory: a subscription keeps which objects changed, not each change, and reports the
last state of each. A change is reported with packed objects: most subscribers ignore most changes, and what they decide
by is in the entries.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from ocf.cluster.cache.keys import NamespacedName, namespaced_name
from ocf.cluster.cache.serialization import CacheEntry, pack, unpack
from ocf.cluster.protocol import EventType, WatchEvent

__all__ = ["CacheChange", "Entries", "OnServed", "Relay", "Subscription"]

_YIELD_EVERY: Final = 100


@dataclass(slots=True, eq=False)
class CacheChange:
    """One change of an object in the cache: a `WatchEvent` whose objects are packed.

    Args:
        type: What happened; never a bookmark.
        entry: The object after it happened; for a deletion, the last known state.
        old: The object as it was reported before, if that is another state; None if it is not known.

    Example:
        >>> pod = {"kind": "Pod", "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "7"}}
        >>> change = CacheChange.of(WatchEvent(EventType.ADDED, pod))
        >>> change.name, change.entry.version, change.event().object == pod
        (('shop', 'web'), '7', True)
    """

    type: EventType
    name: NamespacedName
    entry: CacheEntry
    old: CacheEntry | None = None

    @classmethod
    def of(cls, event: WatchEvent) -> CacheChange:
        """Pack the objects of an event.

        Args:
            event: The event, not a bookmark.
        """
        old = pack(event.old) if event.old is not None else None
        entry = pack(event.object)
        # The states before the last one are not known.
        entry.orphans = entry.orphans or event.type is EventType.DELETED
        return cls(event.type, namespaced_name(event.object), entry, old)

    @property
    def version(self) -> str:
        """The version of the object after it happened; empty if it is gone."""
        return "" if self.type is EventType.DELETED else self.entry.version

    def followed_by(self, later: CacheChange) -> CacheChange:
        """Return this change and a later one of the same object as one; `old` is None if it is not one modification."""
        both = {self.type, later.type} == {EventType.MODIFIED}
        return CacheChange(later.type, later.name, later.entry, self.old if both else None)

    def event(self) -> WatchEvent:
        """Return the change with unpacked objects, as copies for the caller."""
        old = unpack(self.old) if self.old is not None else None
        return WatchEvent(self.type, unpack(self.entry), old=old)


class OnServed(Protocol):
    """Called when a kind may be served anew."""

    def __call__(self, *, failed: bool = False) -> object:
        """See `Subscription`."""
        ...


class Entries(Protocol):
    """The objects that a subscription reports: those of a store, or of several."""

    def get(self, name: NamespacedName) -> CacheEntry | None:
        """Return an object; None if it does not exist."""
        ...

    def items(self, namespace: str = "") -> list[tuple[NamespacedName, CacheEntry]]:
        """Return the objects of a namespace (empty for all), ordered by namespace and name."""
        ...


class Subscription:
    """The pending changes of one subscriber.

    Args:
        namespace: Only changes in this namespace; empty for all namespaces.
        on_served: Called when the API server serves the kind again after it did not, or after it may not have, and when
            the kind begins to be `unwatched`; with
            `failed=True` after an outage, in which the definition may have been replaced: only who has failed because
            of the former one may need to know.
    """

    def __init__(self, store: Entries, namespace: str = "", on_served: OnServed | None = None) -> None:
        self.on_served: Final = on_served
        self._store = store
        self._namespace = namespace
        self._pending: dict[NamespacedName, CacheEntry | None] = dict(store.items(namespace))
        """Each with its last state since it was reported; None if there was none."""
        self._last_sent: dict[NamespacedName, CacheEntry] = {}
        self._changed = asyncio.Event()
        self._closed = False

    def mark_changed(self, name: NamespacedName) -> None:
        """Record that an object changed."""
        if not self._namespace or name[0] == self._namespace:
            entry = self._store.get(name)
            if entry is not None or name not in self._pending:
                self._pending[name] = entry
            self._changed.set()

    def forget(self, name: NamespacedName) -> None:
        """Drop what is kept of an object that nothing holds any more, although it may exist."""
        self._pending.pop(name, None)
        self._last_sent.pop(name, None)

    def close(self) -> None:
        """End `changes`."""
        self._closed = True
        self._changed.set()

    async def changes(self) -> AsyncGenerator[CacheChange, None]:
        """Yield the changes of each object since it was last reported, until closed."""
        while not self._closed:
            self._changed.clear()
            for number, (name, last) in enumerate(iter(self._next, None), start=1):
                for change in self._changes_of(name, last):
                    yield change
                # At the start every object is a change: workers begin before all of them are handled.
                if number % _YIELD_EVERY == 0:
                    await asyncio.sleep(0)
            await self._changed.wait()

    def take(self) -> list[tuple[NamespacedName, CacheEntry | None]]:
        """Return the objects with pending changes, each with its present entry; None for one that is gone.

        For a reader that keeps an index of the cache and brings it up to date when it is asked; `changes` is not used
        then. An object is returned once, however often it changed, and nothing is unpacked.
        """
        names, self._pending = self._pending, {}
        return [(name, self._store.get(name)) for name in names]

    def _next(self) -> tuple[NamespacedName, CacheEntry | None] | None:
        """Return an object with a pending change, and its last state; None if there is none, or when closed."""
        if self._closed or not self._pending:
            return None
        name = next(iter(self._pending))
        return name, self._pending.pop(name)

    def _changes_of(self, name: NamespacedName, last: CacheEntry | None) -> Iterator[CacheChange]:
        before, after = self._last_sent.pop(name, None), self._store.get(name)
        if after is not None:
            self._last_sent[name] = after
        same = before is not None and after is not None and before.uid == after.uid
        if before is not None and not same:
            ended = last if last is not None and last.uid == before.uid else before
            # Another object of the name has replaced it, so states between the reported one and the last are not known.
            ended.orphans = ended.orphans or (last is not None and ended is before)
            yield CacheChange(EventType.DELETED, name, ended, old=before if ended is not before else None)
        if after is None or before is after:
            return
        if same:
            yield CacheChange(EventType.MODIFIED, name, after, old=before)
        else:
            yield CacheChange(EventType.ADDED, name, after)


class Relay(Subscription):
    """Passes the changes of a store on, and its end."""

    def __init__(
        self, store: Entries, on_served: OnServed, changed: Callable[[NamespacedName], None], closed: Callable[[], None]
    ) -> None:
        super().__init__(store, on_served=on_served)
        self._pass_on, self._end = changed, closed

    def mark_changed(self, name: NamespacedName) -> None:
        """Pass a change on."""
        self._pass_on(name)

    def close(self) -> None:
        """Pass the end on."""
        self._end()
