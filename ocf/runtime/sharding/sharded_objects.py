"""`ShardedObjects`: a cluster that shows of one kind only the objects in the slots of this process.

The API server selects them, if it can; what it sends beyond is dropped here, so that correctness does not depend on it.
When the slots change, a watch ends, and the cache lists again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster import InterceptingCluster
from ocf.cluster.protocol import DEFAULT_LIST_OPTIONS, EventType, ListOptions, SelectionChangedError, WatchEvent
from ocf.cluster.request_purpose import Purpose, current_purpose
from ocf.errors import ConfigError

if TYPE_CHECKING:
    from ocf.cluster import Cluster, ObjectList, WatchOptions
    from ocf.objects.shards import ShardSelector
    from ocf.runtime.sharding.slots import Slots

__all__ = ["ShardedObjects"]


@dataclass(frozen=True, slots=True)
class _Listed:
    """What a list of the cache shows.

    Args:
        changed: Set when the slots are others.
        terms: The slots, each with its number.
    """

    selector: ShardSelector
    changed: asyncio.Event
    terms: frozenset[tuple[int, int]]


class ShardedObjects(InterceptingCluster):
    """A cluster in which the lists and watches of one kind show only what is in the slots of this process."""

    def __init__(self, cluster: Cluster, kind: tuple[str, str], slots: Slots) -> None:
        super().__init__(cluster)
        self._kind = kind
        self.slots: Final = slots
        self._listed: dict[str, _Listed] = {}
        """The last list that was begun, by namespace."""
        self._shown: dict[str, frozenset[tuple[int, int]]] = {}
        """What the last list has shown that has ended, by namespace."""

    def shows(self, uid: str, namespace: str) -> bool:
        """Return whether an object would be in the cache if it existed.

        That is so if the slot has been held from the begin of the last list on. Otherwise the object may be absent from
        the cache because the list began without its slot, even if that is held now.
        """
        term = self.slots.term_of(uid, namespace)
        return term is not None and any(term in self._shown.get(home, ()) for home in (namespace, ""))

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        """Read the objects of the kind in these slots, or all of another kind."""
        if (api_version, kind) != self._kind:
            return await self._inner.list(api_version, kind, options)
        # Not what others read while the cache cannot answer.
        is_cached = current_purpose() is Purpose.CACHE and options.limit != 1
        listed = self._listed.get(options.namespace) if is_cached else None
        # All pages of a list have the same objects; a watch after it ends if the slots have changed in between.
        if listed is None or not options.continue_token:
            listed = _Listed(self.slots.selector, self.slots.moved, self.slots.held_terms)
        if is_cached:
            self._listed[options.namespace] = listed
        selector = listed.selector
        # Without a slot, only the version is of interest.
        limits = {"shard_selector": str(selector)} if selector.ranges else {"limit": 1, "continue_token": ""}
        page = await self._inner.list(api_version, kind, replace(options, **limits))
        if selector.ranges:
            self.slots.note_selection(api_version, kind, by_server=bool(page.shard_selector))
        if self.slots.sharding.by == "namespace" and not all(item["metadata"].get("namespace") for item in page.items):
            raise ConfigError(f"{api_version} {kind} is cluster-scoped: shard by uid, its objects are in no namespace")
        items = tuple(item for item in page.items if selector.matches(item))
        token = page.continue_token if selector.ranges else ""
        if is_cached and not token:
            self._shown[options.namespace] = listed.terms
        return replace(page, items=items, continue_token=token, remaining_item_count=None)

    async def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        """Report what happens to the objects of the kind in these slots, or to all of another kind."""
        if (api_version, kind) != self._kind:
            async for event in super().watch(api_version, kind, options):
                yield event
            return
        listed = self._listed.get(options.namespace)
        if listed is None or listed.changed.is_set():
            raise SelectionChangedError("the slots of this process have changed")
        if not listed.selector.ranges:
            await listed.changed.wait()
            raise SelectionChangedError("the slots of this process have changed")
        narrowed = replace(options, shard_selector=str(listed.selector))
        events = super().watch(api_version, kind, narrowed)
        async with aclosing(events):
            async for event in _until(listed.changed, events):
                if event.type is EventType.BOOKMARK or listed.selector.matches(event.object):
                    yield event
                else:
                    yield _passed(event)


def _passed(event: WatchEvent) -> WatchEvent:
    """Return a bookmark in place of an event of another replica's object, so that the watch does not fall behind."""
    live = event.object
    metadata = {"resourceVersion": live["metadata"].get("resourceVersion", "")}
    return WatchEvent(EventType.BOOKMARK, {key: live[key] for key in ("apiVersion", "kind")} | {"metadata": metadata})


async def _until(changed: asyncio.Event, events: AsyncIterator[WatchEvent]) -> AsyncIterator[WatchEvent]:
    """Yield events until something has changed, which is an error."""
    ending = asyncio.ensure_future(changed.wait())
    coming: asyncio.Future[WatchEvent] | None = None
    try:
        while True:
            coming = asyncio.ensure_future(anext(events))
            await asyncio.wait({coming, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                raise SelectionChangedError("the slots of this process have changed")
            try:
                event = coming.result()
            except StopAsyncIteration:
                return
            yield event
    finally:
        waited: list[asyncio.Future[Any]] = [each for each in (coming, ending) if each is not None]
        for each in waited:
            each.cancel()
        await asyncio.gather(*waited, return_exceptions=True)
