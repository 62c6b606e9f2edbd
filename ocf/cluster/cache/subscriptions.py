"""Bounded, coalescing subscriptions to the changes of the cache.

A slow subscriber does not fill the memory: a subscription keeps which objects changed, not each change, and reports the
last state of each.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator

from ocf.cluster.cache.keys import NamespacedName
from ocf.cluster.cache.serialization import CacheEntry, unpack
from ocf.cluster.cache.store import Store
from ocf.cluster.protocol import EventType, WatchEvent

__all__ = ["Subscription"]


class Subscription:
    """The pending changes of one subscriber.

    Args:
        store: The objects.
        namespace: Only changes in this namespace; empty for all namespaces.
    """

    def __init__(self, store: Store, namespace: str = "") -> None:
        self._store = store
        self._namespace = namespace
        self._pending = dict.fromkeys(name for name, _ in store.items(namespace))
        self._last_sent: dict[NamespacedName, CacheEntry] = {}
        self._changed = asyncio.Event()
        self._closed = False

    def mark_changed(self, name: NamespacedName) -> None:
        """Record that an object changed."""
        if not self._namespace or name[0] == self._namespace:
            self._pending[name] = None
            self._changed.set()

    def close(self) -> None:
        """End `events`."""
        self._closed = True
        self._changed.set()

    async def events(self) -> AsyncGenerator[WatchEvent, None]:
        """Yield the changes of each object since it was last reported, until closed."""
        while not self._closed:
            self._changed.clear()
            for name in iter(self._next, None):
                for event in self._events_of(name):
                    yield event
            await self._changed.wait()

    def take(self) -> list[tuple[NamespacedName, CacheEntry | None]]:
        """Return the objects with pending changes, each with its present entry; None for one that is gone.

        For a reader that keeps an index of the cache and brings it up to date when it is asked; `events` is not used
        then. An object is returned once, however often it changed, and nothing is unpacked.
        """
        names, self._pending = self._pending, {}
        return [(name, self._store.get(name)) for name in names]

    def _next(self) -> NamespacedName | None:
        """Return an object with a pending change; None if there is none, or the subscription is closed."""
        if self._closed or not self._pending:
            return None
        name = next(iter(self._pending))
        del self._pending[name]
        return name

    def _events_of(self, name: NamespacedName) -> Iterator[WatchEvent]:
        before, after = self._last_sent.pop(name, None), self._store.get(name)
        if after is not None:
            self._last_sent[name] = after
        same = before is not None and after is not None and before.uid == after.uid
        if before is not None and not same:
            yield WatchEvent(EventType.DELETED, unpack(before))
        if after is None or before is after:
            return
        if same and before is not None:
            yield WatchEvent(EventType.MODIFIED, unpack(after), old=unpack(before))
        else:
            yield WatchEvent(EventType.ADDED, unpack(after))
