"""Following the changes of a store as one watch sees them."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from ocf.cluster.protocol import EventType, WatchEvent
from ocf.embedded.api.status_errors import expired
from ocf.embedded.registry.registry import kind_of
from ocf.embedded.registry.selectors import Predicate
from ocf.embedded.registry.storage import Change, Store
from ocf.errors import api_error
from ocf.objects import Manifest, copy_json
from ocf.schema.builtin import ApiResource

__all__ = ["Scope", "follow", "read_version"]


@dataclass(frozen=True, slots=True)
class Scope:
    """What a watch is about.

    Args:
        resource: The kind.
        namespace: The namespace; empty for all.
        selects: Which objects; None for all.
        shown: Shows a stored object in the version that is asked for.
    """

    resource: ApiResource
    namespace: str
    selects: Predicate | None
    shown: Callable[[Manifest], Manifest]

    def event(self, change: Change) -> WatchEvent | None:
        """Return what a change is to this watch: what begins to match is added, what ceases to is deleted."""
        if change.kind != kind_of(self.resource) or (self.namespace and change.place[0] != self.namespace):
            return None
        before, after = self.selected(change.before), self.selected(change.after)
        if after is not None:
            return WatchEvent(EventType.MODIFIED if before is not None else EventType.ADDED, copy_json(after))
        if before is None:
            return None
        last: Manifest = copy_json(before)
        last["metadata"]["resourceVersion"] = str(change.version)
        return WatchEvent(EventType.DELETED, last)

    def selected(self, manifest: Manifest | None) -> Manifest | None:
        """Return a stored object as this watch sees it; None if it does not."""
        if manifest is None:
            return None
        manifest = self.shown(manifest)
        return manifest if self.selects is None or self.selects(manifest) else None

    def bookmark(self, version: int) -> WatchEvent:
        """Return the bookmark of a version."""
        metadata = {"resourceVersion": str(version)}
        head = {"kind": self.resource.kind, "apiVersion": self.resource.api_version}
        return WatchEvent(EventType.BOOKMARK, {**head, "metadata": metadata})


def read_version(text: str) -> int:
    """Read a resource version.

    Args:
        text: The version; empty is read as 0.

    Returns:
        The number.

    Raises:
        ServerError: If it is none.
    """
    if text and not text.isdecimal():
        problem = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        # A server answers with an internal error, although the fault is the caller's.
        raise api_error(f'resourceVersion: Invalid value: "{text}": {problem}', code=500)
    return int(text or 0)


async def follow(store: Store, scope: Scope, version: int, *, bookmark_every: int) -> AsyncGenerator[WatchEvent, None]:
    """Report what happens after a version, without end.

    Args:
        store: The store.
        scope: What the watch is about.
        version: Where it starts; 0 reports the present objects first.
        bookmark_every: After how many changes that do not concern it a bookmark comes.

    Yields:
        The events.

    Raises:
        ExpiredError: If what it needs is forgotten.
    """
    if version == 0:
        version = store.version
        for _, stored in store.objects(kind_of(scope.resource), scope.namespace):
            manifest = scope.selected(stored)
            if manifest is not None:
                yield WatchEvent(EventType.ADDED, copy_json(manifest))
    told = version
    while True:
        if version < store.forgotten:
            raise expired(f"too old resource version: {version} ({store.forgotten})")
        for change in store.since(version):
            version = change.version
            event = scope.event(change)
            if event is not None:
                told = version
                yield event
        if version - told >= bookmark_every:
            told = version
            yield scope.bookmark(version)
        if version >= store.version:
            await store.changed()
