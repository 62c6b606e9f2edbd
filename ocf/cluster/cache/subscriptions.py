"""Telling others what changes in the cache, no faster than they listen.

A slow listener does not fill memory: what waits for it is which objects changed, not how often, and it is told their
last state.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator

from ocf.cluster.cache.keys import NamespacedName
from ocf.cluster.cache.serialization import CacheEntry, unpack
from ocf.cluster.cache.store import Store
from ocf.cluster.protocol import EventType, WatchEvent

__all__ = ["Subscription"]


class Subscription:
    """What one listener has yet to be told.

    Args:
        store: The objects.
        namespace: Of this namespace; empty for all.
    """

    def __init__(self, store: Store, namespace: str = "") -> None:
        self._store = store
        self._namespace = namespace
        self._waiting = dict.fromkeys(place for place, _ in store.items(namespace))
        self._told: dict[NamespacedName, CacheEntry] = {}
        self._wake = asyncio.Event()
        self._closed = False

    def note(self, place: NamespacedName) -> None:
        """Note that an object changed."""
        if not self._namespace or place[0] == self._namespace:
            self._waiting[place] = None
            self._wake.set()

    def close(self) -> None:
        """End `events`."""
        self._closed = True
        self._wake.set()

    async def events(self) -> AsyncGenerator[WatchEvent, None]:
        """Yield what happened to each object since the last time it was told, until closed."""
        while not self._closed:
            self._wake.clear()
            for place in iter(self._next, None):
                for event in self._tell(place):
                    yield event
            await self._wake.wait()

    def _next(self) -> NamespacedName | None:
        """Return an object that waits; None when none does, or nobody is to be told any more."""
        if self._closed or not self._waiting:
            return None
        place = next(iter(self._waiting))
        del self._waiting[place]
        return place

    def _tell(self, place: NamespacedName) -> Iterator[WatchEvent]:
        before, after = self._told.pop(place, None), self._store.get(place)
        if after is not None:
            self._told[place] = after
        same = before is not None and after is not None and before.uid == after.uid
        if before is not None and not same:
            yield WatchEvent(EventType.DELETED, unpack(before))
        if after is not None and before is not after:
            yield WatchEvent(EventType.MODIFIED if same else EventType.ADDED, unpack(after))
