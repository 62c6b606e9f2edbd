"""All versions of the objects of a cluster, in the order in which the API server stored them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ocf.cluster import Cluster, ListOptions, WatchOptions
from ocf.cluster.protocol import EventType
from ocf.objects import Manifest
from tests.support import eventually

__all__ = ["Change", "Recorder", "in_order"]


@dataclass(frozen=True, slots=True)
class Change:
    """One stored version of an object.

    Args:
        object: The object; of one that was deleted, its last version, with the resource version of the deletion.
        deleted: Whether it was deleted.
    """

    object: Manifest
    deleted: bool = False

    @property
    def version(self) -> int:
        """The resource version, which counts the writes of all kinds."""
        return int(self.object["metadata"]["resourceVersion"])

    @property
    def id(self) -> tuple[str, str]:
        """Kind and uid of the object."""
        return str(self.object["kind"]), str(self.object["metadata"]["uid"])


@dataclass
class Recorder:
    """Watches kinds.

    Args:
        cluster: The cluster.
        kinds: API version and kind of each.
        namespace: The namespace; empty for all.
        changes: All changes so far, ordered for each kind only.
    """

    cluster: Cluster
    kinds: Sequence[tuple[str, str]]
    namespace: str = ""
    changes: list[Change] = field(default_factory=list)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @asynccontextmanager
    async def recording(self) -> AsyncIterator[None]:
        """Record for the length of a block."""
        for kind in self.kinds:
            listed = await self.cluster.list(*kind, ListOptions(namespace=self.namespace))
            self.changes += [Change(each) for each in listed.items]
            self._tasks.append(asyncio.create_task(self._follow(kind, listed.resource_version)))
        try:
            yield
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _follow(self, kind: tuple[str, str], version: str) -> None:
        while True:  # the server ends a watch after some minutes
            options = WatchOptions(resource_version=version, namespace=self.namespace)
            async for event in self.cluster.watch(*kind, options):
                version = event.object["metadata"]["resourceVersion"]
                if event.type is not EventType.BOOKMARK:
                    self.changes.append(Change(event.object, event.type is EventType.DELETED))

    async def complete(self) -> None:
        """Wait until everything that is stored now is recorded."""
        await eventually(self.is_complete)

    async def is_complete(self) -> bool:
        """Return whether everything that is stored now was recorded."""
        for task in self._tasks:
            if task.done():
                task.result()
        stored = [
            each
            for kind in self.kinds
            for each in (await self.cluster.list(*kind, ListOptions(namespace=self.namespace))).items
        ]
        last = {change.id: change for change in self.changes}
        known = {_version(change.object) for change in last.values() if not change.deleted}
        return known == {_version(each) for each in stored}


def in_order(changes: Iterable[Change]) -> list[Change]:
    """Return changes in the order in which the API server stored them."""
    return sorted(changes, key=lambda each: each.version)


def _version(manifest: Manifest) -> tuple[str, str]:
    return manifest["metadata"]["uid"], manifest["metadata"]["resourceVersion"]
