"""Watch events of one watch, derived from the changes of a store."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from ocf.cluster.protocol import EventType, WatchEvent
from ocf.embedded.api.status_errors import expired
from ocf.embedded.registry.registry import kind_of
from ocf.embedded.registry.selectors import Predicate
from ocf.embedded.registry.storage import Change, Storage
from ocf.errors import api_error
from ocf.objects import Manifest, copy_json
from ocf.schema.builtin import ApiResource

__all__ = ["WatchSelector", "follow", "read_version"]


@dataclass(frozen=True, slots=True)
class WatchSelector:
    """Objects that a watch selects.

    Args:
        resource: The kind.
        namespace: The namespace; empty for all.
        selects: Predicate for the objects; None for all.
        shown: Converts a stored object to the requested API version.
    """

    resource: ApiResource
    namespace: str
    selects: Predicate | None
    shown: Callable[[Manifest], Manifest]

    def event(self, change: Change, store: Storage) -> WatchEvent | None:
        """Return the event for a change in a store.

        An object that starts to match is ADDED, one that no longer matches is DELETED. None if the object matches
        neither before nor after the change.
        """
        if change.kind != kind_of(self.resource) or (self.namespace and change.place[0] != self.namespace):
            return None
        before, after = self.selected(change.before), self.selected(change.after)
        if after is not None:
            current = after is store.get(change.kind, change.place)
            copied = store.copy(change.kind, change.place, after) if current else copy_json(after)
            return WatchEvent(EventType.MODIFIED if before is not None else EventType.ADDED, copied)
        if before is None:
            return None
        last: Manifest = copy_json(before)
        last["metadata"]["resourceVersion"] = str(change.version)
        return WatchEvent(EventType.DELETED, last)

    def selected(self, manifest: Manifest | None) -> Manifest | None:
        """Return a stored object in the requested version; None if the watch does not select it."""
        if manifest is None:
            return None
        manifest = self.shown(manifest)
        return manifest if self.selects is None or self.selects(manifest) else None

    def bookmark(self, version: int) -> WatchEvent:
        """Return the bookmark event for a resource version."""
        metadata = {"resourceVersion": str(version)}
        head = {"kind": self.resource.kind, "apiVersion": self.resource.api_version}
        return WatchEvent(EventType.BOOKMARK, {**head, "metadata": metadata})


def read_version(text: str) -> int:
    """Parse a resource version.

    Args:
        text: The version; an empty text means 0.

    Returns:
        The number.

    Raises:
        ServerError: If the text is not a number.
    """
    if text and not text.isdecimal():
        problem = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        # A real API server responds with an internal error, although the request is at fault.
        raise api_error(f'resourceVersion: Invalid value: "{text}": {problem}', code=500)
    return int(text or 0)


async def follow(
    store: Storage, scope: WatchSelector, version: int, *, bookmark_every: int
) -> AsyncGenerator[WatchEvent, None]:
    """Report the changes after a resource version, without end.

    Args:
        store: The store.
        scope: Objects that the watch selects.
        version: Resource version to start at; 0 reports the existing objects first.
        bookmark_every: Number of changes outside the scope after which a bookmark is sent.

    Yields:
        The events.

    Raises:
        ExpiredError: If the version is older than the history of the store.
    """
    if version == 0:
        version = store.version
        for _, stored in store.objects(kind_of(scope.resource), scope.namespace):
            manifest = scope.selected(stored)
            if manifest is not None:
                yield WatchEvent(EventType.ADDED, copy_json(manifest))
    reported_version = version
    while True:
        if version < store.forgotten:
            raise expired(f"too old resource version: {version} ({store.forgotten})")
        for change in store.since(version):
            version = change.version
            event = scope.event(change, store)
            if event is not None:
                reported_version = version
                yield event
        if version - reported_version >= bookmark_every:
            reported_version = version
            yield scope.bookmark(version)
        if version >= store.version:
            await store.changed()
