"""What passes have seen, so that what they saw is no news to them.

A pass notes the version of each object that it reads by name, and of each that it writes. An event that tells a version
which the owner's last pass has seen needs no other pass; any other one does. So an operator is not woken by its own
writes, and is by everything else, whoever wrote it and whatever part of the object changed.

The same notes say which objects that nobody controls an owner depends on: those that its last pass has read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

from ocf.cluster import Cluster, InterceptingCluster, Request, Subresource, Verb
from ocf.errors import ConflictError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.owner_references import controller_of

__all__ = ["ObservationIndex", "ObservedVersions", "RecordingReads"]

_ABSENT: Final = ""
# No version is equal to it.
_UNKNOWN: Final = "?"


class ObservedVersions:
    """What one pass has seen.

    Args:
        owner: The owner of the pass.
    """

    __slots__ = ("asked", "loose", "overwritten", "owner", "versions")

    def __init__(self, owner: ObjectKey) -> None:
        self.owner: Final = owner
        self.versions: dict[ObjectKey, str] = {}
        self.loose: set[ObjectKey] = set()
        self.asked: set[ObjectKey] = set()
        """What the pass has asked for so far, answered or not."""
        self.overwritten: set[tuple[ObjectKey, str]] = set()
        """Versions that the pass has seen, and replaced by its own writes."""

    def note(self, key: ObjectKey, live: Manifest | None, *, written: bool = False) -> None:
        """Note an object as the cluster returned it.

        Of several reads the first counts: something may have been decided by it. A write counts in its place, for what
        was decided is in it.

        Args:
            key: The object.
            live: What was returned; None where it is not there.
            written: Whether this is the answer to a write.
        """
        version = _ABSENT if live is None else str(live["metadata"].get("resourceVersion") or "")
        known = self.versions.get(key)
        if known is None or (written and known != _UNKNOWN):
            self.versions[key] = version
            self.overwritten.add((key, known or _ABSENT))
        if key != self.owner and (live is None or not _is_controlled_by(live, self.owner)):
            self.loose.add(key)
        else:
            self.loose.discard(key)

    def invalidate(self, key: ObjectKey) -> None:
        """Note that somebody else was faster, so that whatever is told of an object is news.

        What is written after that is written over something that the pass has not seen.
        """
        self.versions[key] = _UNKNOWN

    def has_seen(self, key: ObjectKey, version: str) -> bool:
        """Tell whether a version of an object is no news.

        Only equal versions count. After a cluster was restored from a backup, news has older ones.
        """
        return version != _ABSENT and (self.versions.get(key) == version or (key, version) in self.overwritten)

    def end(self) -> None:
        """Forget what matters only while the pass is under way."""
        self.asked = set()
        self.overwritten = set()


class ObservationIndex:
    """What the last pass over each owner has seen."""

    def __init__(self) -> None:
        self._of: dict[ObjectKey, ObservedVersions] = {}
        self._dependents: dict[ObjectKey, set[ObjectKey]] = {}

    def __len__(self) -> int:
        return len(self._of)

    def replace(self, sight: ObservedVersions) -> None:
        """Put what a pass has seen in place of what the one before saw."""
        self.forget(sight.owner)
        self._of[sight.owner] = sight
        for key in sight.loose:
            self._dependents.setdefault(key, set()).add(sight.owner)

    def forget(self, owner: ObjectKey) -> None:
        """Forget an owner."""
        sight = self._of.pop(owner, None)
        for key in sight.loose if sight is not None else ():
            owners = self._dependents[key]
            owners.discard(owner)
            if not owners:
                del self._dependents[key]

    def has_seen(self, owner: ObjectKey, key: ObjectKey, version: str) -> bool:
        """Tell whether a version of an object is no news to the last pass over an owner."""
        sight = self._of.get(owner)
        return sight is not None and sight.has_seen(key, version)

    def dependents(self, key: ObjectKey) -> Iterator[ObjectKey]:
        """Yield the owners that an object concerns although they do not control it."""
        yield from self._dependents.get(key, ())


class RecordingReads(InterceptingCluster):
    """The cluster of one pass, which notes what the pass sees.

    Args:
        cluster: The cluster.
        sight: Where it is noted.
        follow: Is told the kind and the namespace of every request before it is sent.
    """

    def __init__(self, cluster: Cluster, sight: ObservedVersions, follow: Callable[[str, str, str], None]) -> None:
        super().__init__(cluster)
        self._sight = sight
        self._follow = follow

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        """Send a request, and note what it is answered with."""
        self._follow(request.api_version, request.kind, request.namespace)
        key = ObjectKey(request.api_version, request.kind, request.name, request.namespace)
        self._sight.asked.add(key)
        try:
            answer = await send()
        except NotFoundError:
            if request.verb is Verb.GET:
                self._sight.note(key, None)
            raise
        except ConflictError:
            self._sight.invalidate(key)
            raise
        whole = request.subresource is not Subresource.SCALE
        if isinstance(answer, dict) and request.name and whole and not request.dry_run:
            self._sight.note(key, answer, written=not request.verb.is_read)
        return answer


def _is_controlled_by(live: Manifest, owner: ObjectKey) -> bool:
    controller = controller_of(live)
    return controller is not None and (controller.kind, controller.name) == (owner.kind, owner.name)
