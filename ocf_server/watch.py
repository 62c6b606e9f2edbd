"""Watch events of one watch, derived from the changes of a store."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ocf.cluster.protocol import EventType
from ocf.errors import api_error
from ocf.objects import Manifest
from ocf.schema.builtin import ApiResource
from ocf_server.api.resource_versions import version_problem
from ocf_server.api.status_errors import expired
from ocf_server.registry.registry import DEFINITION, Registry, kind_of
from ocf_server.registry.selectors import Predicate
from ocf_server.registry.storage import Change, Kind, Storage

__all__ = ["StoredEvent", "WatchSelector", "follow", "read_version"]


Ready: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Function that repeats a computation after calls of conversion webhooks, and returns its result."""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One event of a watch, with an object of the store, which must not be changed.

    Args:
        stored: The object in the version in which it is stored; of a bookmark the whole object.
        version: Version of the store after the change; 0 for an object that existed before the watch began.
    """

    type: EventType
    stored: Manifest
    version: int
    registry: Registry
    resource: ApiResource

    @property
    def object(self) -> Manifest:
        """The object in the requested version, with the resource version of the change."""
        if self.type is EventType.BOOKMARK:
            return self.stored
        found = self.registry.shown(self.stored, self.resource)
        if self.type is not EventType.DELETED:
            return found
        return {**found, "metadata": {**found["metadata"], "resourceVersion": str(self.version)}}

    def copied(self) -> Manifest:
        """Return a copy of the object, for the caller."""
        return self.stored if self.type is EventType.BOOKMARK else self.registry.copy(self.object)


_INITIAL_END: Final = "k8s.io/initial-events-end"
_BEFORE_END: Final = 2.0
"""Seconds between the last bookmark of a watch and its end, as of a real API server."""


@dataclass(frozen=True, slots=True)
class WatchSelector:
    """Objects that a watch selects.

    Args:
        namespace: The namespace; empty for all.
        selects: Predicate for the objects; None for all.
        ready: Repeats a computation after calls of conversion webhooks; None if none converts the objects.
    """

    registry: Registry
    resource: ApiResource
    namespace: str
    selects: Predicate | None
    ready: Ready | None = None

    @property
    def awaited(self) -> tuple[Kind, ...]:
        """The kinds whose changes concern the watch."""
        kind = kind_of(self.resource)
        return (kind, DEFINITION) if self.resource.custom else (kind,)

    def event(self, change: Change) -> StoredEvent | None:
        """Return the event for a change in a store.

        An object that starts to match is ADDED, one that no longer matches is DELETED. None if the object matches
        neither before nor after the change.
        """
        if change.kind != kind_of(self.resource) or (self.namespace and change.place[0] != self.namespace):
            return None
        before, after = self.selected(change.before), self.selected(change.after)
        if after is not None:
            return self._event(EventType.ADDED if before is None else EventType.MODIFIED, after, change.version)
        return None if before is None else self._event(EventType.DELETED, before, change.version)

    def existing(self) -> list[StoredEvent]:
        """Return an event for each existing object."""
        found = self.registry.store.objects(kind_of(self.resource), self.namespace)
        return [self._event(EventType.ADDED, stored, 0) for _, stored in found if self.selected(stored) is not None]

    def selected(self, stored: Manifest | None) -> Manifest | None:
        """Return a stored object; None if the watch does not select it."""
        if stored is None or self.selects is None:
            return stored
        return stored if self.selects(self.registry.shown(stored, self.resource)) else None

    def bookmark(self, version: int, *, initial_end: bool = False) -> StoredEvent:
        """Return the bookmark event for a resource version; it may mark the end of the initial events."""
        metadata: Manifest = {"resourceVersion": str(version)}
        if initial_end:
            metadata["annotations"] = {_INITIAL_END: "true"}
        head = {"kind": self.resource.kind, "apiVersion": self.resource.api_version}
        return self._event(EventType.BOOKMARK, {**head, "metadata": metadata}, version)

    def _event(self, kind: EventType, stored: Manifest, version: int) -> StoredEvent:
        return StoredEvent(kind, stored, version, self.registry, self.resource)


def read_version(text: str) -> int:
    """Parse a resource version.

    Args:
        text: The version; an empty text means 0.

    Raises:
        ServerError: If the text is not a number.
    """
    if problem := version_problem(text):
        # A real API server responds with an internal error, although the request is at fault.
        raise api_error(problem, code=500)
    return int(text or 0)


async def follow(
    scope: WatchSelector, version: int, *, bookmark_every: int, seconds: float | None = None
) -> AsyncGenerator[StoredEvent, None]:
    """Report the changes after a resource version.

    A change of the CustomResourceDefinition of the kind that concerns its storage (any of its spec, and its deletion)
    ends the watch, as at a real API server.

    Args:
        version: Resource version to start at; 0 reports the existing objects first, and a bookmark at their end.
        bookmark_every: Number of changes outside the scope after which a bookmark is sent.
        seconds: Seconds until the end, with a bookmark two seconds before; None for no end.

    Yields:
        The events.

    Raises:
        ExpiredError: If the version is older than the history of the store, or than the storage of a custom kind.
    """
    store, kind, began = scope.registry.store, kind_of(scope.resource), _stored_since(scope, version)
    timer = _Timer.starting(seconds)
    if version == 0:
        existing, version = await _existing(scope)
        for initial in (*existing, scope.bookmark(version, initial_end=True)):
            yield initial
    reported_version = version
    while True:
        changes, version = _changes_since(store, version, kind), max(version, store.version)
        changes, ended = _until_storage_ends(scope, changes, began)
        async with aclosing(_events(scope, changes)) as events:
            async for event in events:
                reported_version = event.version
                yield event
        if ended:
            return
        # A client that sees no changes for long must not fall out of the history.
        if version - reported_version >= bookmark_every:
            reported_version = version
            yield scope.bookmark(version)
        # The store has changed while the events were read.
        if version < store.version:
            continue
        changed_at = await timer.wait(store, scope.awaited, reported_version + bookmark_every)
        if changed_at is not None:
            # Changes of other kinds may have been forgotten during the wait.
            version = max(version, changed_at - 1)
            continue
        if timer.ended:
            return
        reported_version = version = _unchanged_until(store, kind, version)
        yield scope.bookmark(version)


def _stored_since(scope: WatchSelector, version: int) -> int:
    """Return the version since which the storage of a kind is set up; raise ExpiredError if a watch starts before."""
    since = scope.registry.stored_since(kind_of(scope.resource))
    if 0 < version < since:
        raise expired(f"too old resource version: {version} ({since})")
    return since


def _until_storage_ends(scope: WatchSelector, changes: list[Change], began: int) -> tuple[list[Change], bool]:
    """Return the changes in the storage that a watch began with, and whether that has been set up anew since."""
    since = scope.registry.stored_since(kind_of(scope.resource))
    if since == began:
        return changes, False
    return [change for change in changes if not since or change.version < since], True


def _changes_since(store: Storage, version: int, kind: Kind) -> list[Change]:
    """Return the changes of a kind after a version; raise ExpiredError if the log no longer contains them."""
    if version < store.forgotten:
        raise expired(f"too old resource version: {version} ({store.forgotten})")
    return [change for change in store.since(version) if change.kind == kind]


def _unchanged_until(store: Storage, kind: Kind, version: int) -> int:
    """Return the version of a store if no object of a kind has changed since a version; else this version."""
    return version if store.changed_at(kind) > version else max(version, store.version)


@dataclass(slots=True)
class _Timer:
    """End of a watch, and the last bookmark before it.

    Args:
        end: Time of the event loop at which the watch ends; None for never.
        due: Time of the last bookmark; None if there is none, or it was sent.
    """

    end: float | None
    due: float | None

    @classmethod
    def starting(cls, seconds: float | None) -> "_Timer":
        """Return the timer of a watch that starts now."""
        now = asyncio.get_running_loop().time()
        if seconds is None:
            return cls(None, None)
        return cls(now + seconds, now + seconds - _BEFORE_END if seconds > _BEFORE_END else None)

    async def wait(self, store: Storage, kinds: tuple[Kind, ...], latest: int) -> int | None:
        """Wait for the next change as `Storage.kinds_changed` does; return None if the bookmark or the end is due."""
        due, self.due = self.due, None
        changed_at = await store.kinds_changed(*kinds, latest=latest, deadline=self.end if due is None else due)
        if changed_at is not None:
            self.due = due
        return changed_at

    @property
    def ended(self) -> bool:
        """Whether the watch is over."""
        return self.end is not None and asyncio.get_running_loop().time() >= self.end


async def _existing(scope: WatchSelector) -> tuple[list[StoredEvent], int]:
    """Return an event for each existing object, converted by the webhook of the kind; and their resource version."""
    store, ready = scope.registry.store, scope.ready
    if ready is None:
        return scope.existing(), store.version
    events, version = await ready(lambda: (scope.existing(), store.version))
    stored = [event.stored for event in events]
    await ready(lambda: scope.registry.require_converted(scope.resource, stored))
    return events, version


async def _events(scope: WatchSelector, changes: list[Change]) -> AsyncGenerator[StoredEvent, None]:
    """Yield the events for changes, after the conversion of their objects by the webhook of the kind, if it has one."""
    for change in changes:
        event = scope.event(change) if scope.ready is None else await _converted_event(scope, change, scope.ready)
        if event is not None:
            yield event


async def _converted_event(scope: WatchSelector, change: Change, ready: Ready) -> StoredEvent | None:
    """Return the event for a change, after the conversion of its object by a webhook."""
    event: StoredEvent | None = await ready(lambda: scope.event(change))
    if event is not None:
        await ready(lambda: scope.registry.require_converted(scope.resource, (event.stored,)))
    return event
