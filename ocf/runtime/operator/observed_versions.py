"""Object versions that reconciles have observed.

A reconcile records the version of each object that it reads by name, and of each that it writes. An event whose version
the owner's last reconcile has observed triggers no reconcile; any other event does. So an operator's own writes trigger
nothing, and every other change does, independent of its author and of the changed fields.

The same records show which objects an owner depends on without controlling them: those that its last reconcile read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

from ocf.cluster import Cluster, InterceptingCluster, Request, Subresource
from ocf.cluster.interceptor import key_of, requested_key
from ocf.errors import ConflictError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.owner_references import controller_of

__all__ = ["ObservationIndex", "ObservedVersions", "RecordingReads"]

_ABSENT: Final = ""
# No version is equal to it.
_UNKNOWN: Final = "?"


class ObservedVersions:
    """Versions that one reconcile has observed.

    Args:
        owner: The owner that is reconciled.
    """

    __slots__ = ("owner", "requested", "superseded", "uncontrolled", "versions")

    def __init__(self, owner: ObjectKey) -> None:
        self.owner: Final = owner
        self.versions: dict[ObjectKey, str] = {}
        self.uncontrolled: set[ObjectKey] = set()
        self.requested: set[ObjectKey] = set()
        """Objects that the reconcile has requested so far, answered or not."""
        self.superseded: set[tuple[ObjectKey, str]] = set()
        """Versions that the reconcile has observed and then replaced by its own writes."""

    def record(self, key: ObjectKey, live: Manifest | None, *, written: bool = False) -> None:
        """Record an object as the cluster returned it.

        The first of several reads counts, because a decision may depend on it. A write replaces it, because the
        written object contains that decision.

        Args:
            key: The object.
            live: The returned object; None if it does not exist.
            written: Whether it is the response to a write.
        """
        version = _ABSENT if live is None else str(live["metadata"].get("resourceVersion") or "")
        known = self.versions.get(key)
        if known is None or (written and known != _UNKNOWN):
            self.versions[key] = version
            self.superseded.add((key, known or _ABSENT))
        if key != self.owner and (live is None or not _is_controlled_by(live, self.owner)):
            self.uncontrolled.add(key)
        else:
            self.uncontrolled.discard(key)

    def invalidate(self, key: ObjectKey) -> None:
        """Record a write conflict: treat every later event for this object as not observed.

        A later write of this reconcile replaces a version that it has not observed.
        """
        self.versions[key] = _UNKNOWN

    def has_seen(self, key: ObjectKey, version: str) -> bool:
        """Return whether the reconcile has observed a version of an object.

        Only equal versions count: after a restore from a backup, new changes have lower versions.
        """
        return version != _ABSENT and (self.versions.get(key) == version or (key, version) in self.superseded)

    def end(self) -> None:
        """Drop the records that matter only while the reconcile runs."""
        self.requested = set()
        self.superseded = set()


class ObservationIndex:
    """Versions that the last reconcile of each owner has observed."""

    def __init__(self) -> None:
        self._of: dict[ObjectKey, ObservedVersions] = {}
        self._dependents: dict[ObjectKey, set[ObjectKey]] = {}

    def __len__(self) -> int:
        return len(self._of)

    def replace(self, observed: ObservedVersions) -> None:
        """Replace the records of an owner's previous reconcile."""
        self.forget(observed.owner)
        self._of[observed.owner] = observed
        for key in observed.uncontrolled:
            self._dependents.setdefault(key, set()).add(observed.owner)

    def forget(self, owner: ObjectKey) -> None:
        """Drop the records of an owner."""
        observed = self._of.pop(owner, None)
        for key in observed.uncontrolled if observed is not None else ():
            owners = self._dependents[key]
            owners.discard(owner)
            if not owners:
                del self._dependents[key]

    def has_seen(self, owner: ObjectKey, key: ObjectKey, version: str) -> bool:
        """Return whether the last reconcile of an owner has observed a version of an object."""
        observed = self._of.get(owner)
        return observed is not None and observed.has_seen(key, version)

    def dependents(self, key: ObjectKey) -> Iterator[ObjectKey]:
        """Yield the owners whose last reconcile read an object that they do not control."""
        yield from self._dependents.get(key, ())


class RecordingReads(InterceptingCluster):
    """The cluster of one reconcile; records the versions of all objects that the reconcile reads and writes.

    Args:
        cluster: The cluster.
        observed: The records.
        follow: Called with API version, kind and namespace of every request before it is sent.
    """

    def __init__(self, cluster: Cluster, observed: ObservedVersions, follow: Callable[[str, str, str], None]) -> None:
        super().__init__(cluster)
        self._observed = observed
        self._follow = follow

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        """Read one object, or its Scale."""
        # Reads and applies are nearly all requests of a reconcile, so they are not described as a `Request` first.
        sent = self._inner.get(key, subresource=subresource)
        found: Manifest = await self._recorded(key, sent, subresource, is_read=True)
        return found

    async def apply(
        self,
        manifest: Manifest,
        *,
        field_manager: str,
        force: bool = False,
        subresource: Subresource | None = None,
        dry_run: bool = False,
    ) -> Manifest:
        """Create or change an object by server-side apply."""
        sent = self._inner.apply(
            manifest, field_manager=field_manager, force=force, subresource=subresource, dry_run=dry_run
        )
        stored: Manifest = await self._recorded(requested_key(manifest), sent, subresource, dry_run=dry_run)
        return stored

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        """Send a request, and record the returned object."""
        is_read, dry_run = request.verb.is_read, request.dry_run
        return await self._recorded(key_of(request), send(), request.subresource, is_read=is_read, dry_run=dry_run)

    async def _recorded(
        self,
        key: ObjectKey,
        sent: Awaitable[Any],
        subresource: Subresource | None,
        *,
        is_read: bool = False,
        dry_run: bool = False,
    ) -> Any:
        """Wait for the answer to a request, and record it; the name in the key is empty for a list or a watch."""
        self._follow(key.api_version, key.kind, key.namespace)
        self._observed.requested.add(key)
        try:
            answer = await sent
        except NotFoundError:
            if is_read and key.name:
                self._observed.record(key, None)
            raise
        except ConflictError:
            self._observed.invalidate(key)
            raise
        whole = subresource is None or subresource.shows_object
        if isinstance(answer, dict) and key.name and whole and not dry_run:
            self._observed.record(key, answer, written=not is_read)
        return answer


def _is_controlled_by(live: Manifest, owner: ObjectKey) -> bool:
    controller = controller_of(live)
    return controller is not None and (controller.kind, controller.name) == (owner.kind, owner.name)
