"""A cluster for a rehearsal: every write is only asked what it would do, and nothing is stored.

A rehearsal is a real pass over a real cluster. Guards, data, hand-overs, suspension and clean-up run as they always
do, so what it finds is what the next pass will do, not what a second implementation thinks it would. Reads go through;
an object that was written in the rehearsal is read back as its write would have left it. The status of the owner is
kept here: nobody asks what writing it would do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ocf.cluster import DEFAULT_DELETE_OPTIONS, ApplyCache, InterceptingCluster, Preconditions, Subresource
from ocf.errors import ConflictError, NotFoundError
from ocf.objects import Manifest, ObjectKey

if TYPE_CHECKING:
    from ocf.cluster import Cluster, DeleteOptions, PatchOptions

__all__ = ["DryRunCluster", "PlannedWrite"]


@dataclass(slots=True)
class PlannedWrite:
    """What a rehearsal did to one object.

    Args:
        key: The object.
        before: The live object; None if there is none.
        after: As the writes would leave it; None if it would be deleted.
        released: Whether it was let go of.
        declared: What each field manager applied last.
    """

    key: ObjectKey
    before: Manifest | None
    after: Manifest | None = None
    released: bool = False
    declared: dict[str, Manifest] = field(default_factory=dict)


class DryRunCluster(InterceptingCluster):
    """A cluster on which nothing changes.

    Args:
        cluster: The real one.
        seen: Called with each object that is looked at, for a display of progress.

    Attributes:
        written: What was written since `start`, by object, in order.
        conflicts: What an apply ran into that was not forced: the object, and the error.
    """

    def __init__(self, cluster: Cluster, *, seen: Callable[[ObjectKey], None] | None = None) -> None:
        # What is only tried must not be remembered as done.
        super().__init__(cluster, apply_cache=ApplyCache())
        self._seen = seen
        self._live: dict[ObjectKey, Manifest | None] = {}
        self._past: dict[ObjectKey, PlannedWrite] = {}
        self.written: dict[ObjectKey, PlannedWrite] = {}
        self.conflicts: list[tuple[ObjectKey, ConflictError]] = []

    def start(self) -> None:
        """Begin with another component: what is reported is its own, what was done before it stays done."""
        self._past |= self.written
        self.written = {}
        self.conflicts = []

    def before(self, key: ObjectKey) -> Manifest | None:
        """Return an object as it was read; None if it does not exist, or was not looked at."""
        return self._live.get(key)

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        """Read one object, as it would be by now."""
        if self._seen is not None:
            self._seen(key)
        if subresource is not None:
            return await self._inner.get(key, subresource=subresource)
        written = self.written.get(key) or self._past.get(key)
        found = written.after if written is not None else await self._look(key)
        if found is None:
            raise NotFoundError(f"{key} not found", code=404, reason="NotFound")
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
        """Ask what an apply would do."""
        del dry_run
        key = ObjectKey.of(manifest)
        written = await self._about(key)
        try:
            answer = await self._inner.apply(
                manifest, field_manager=field_manager, force=force, subresource=subresource, dry_run=True
            )
        except ConflictError as error:
            self.conflicts.append((key, error))
            raise
        written.declared[field_manager] = manifest
        # The server did not keep what another manager of ours applied before, so it could not take it into account.
        for manager, earlier in written.declared.items():
            if manager != field_manager:
                answer = _merged(answer, earlier, manifest)
        return self._after(written, answer)

    async def create(self, manifest: Manifest, *, field_manager: str, dry_run: bool = False) -> Manifest:
        """Ask what a create would do."""
        del dry_run
        written = await self._about(ObjectKey.of(manifest))
        return self._after(written, await self._inner.create(manifest, field_manager=field_manager, dry_run=True))

    async def update(
        self, manifest: Manifest, *, field_manager: str, subresource: Subresource | None = None, dry_run: bool = False
    ) -> Manifest:
        """Ask what an update would do; a status is taken as it is."""
        del dry_run
        if subresource is Subresource.STATUS:
            return manifest
        written = await self._about(ObjectKey.of(manifest))
        answer = await self._inner.update(manifest, field_manager=field_manager, subresource=subresource, dry_run=True)
        return self._after(written, answer) if subresource is None else answer

    async def patch(self, key: ObjectKey, patch: Any, options: PatchOptions) -> Manifest:
        """Ask what a patch would do."""
        written = await self._about(key)
        answer = await self._inner.patch(key, patch, replace(options, dry_run=True))
        if options.subresource is not None:
            return answer
        written.released = True
        return self._after(written, answer)

    async def delete(self, key: ObjectKey, options: DeleteOptions = DEFAULT_DELETE_OPTIONS) -> None:
        """Ask whether a delete would be accepted."""
        written = await self._about(key)
        # The version may be that of a write that never happened; the object is the same.
        asked = options.preconditions
        same = Preconditions(uid=asked.uid) if asked is not None else None
        await self._inner.delete(key, replace(options, preconditions=same, dry_run=True))
        written.after = None
        self.written[key] = written

    async def _look(self, key: ObjectKey) -> Manifest | None:
        """Read a live object, and remember it as it was before."""
        try:
            found: Manifest | None = await self._inner.get(key)
        except NotFoundError:
            found = None
        self._live.setdefault(key, found)
        return found

    async def _about(self, key: ObjectKey) -> PlannedWrite:
        if key in self.written:
            return self.written[key]
        past = self._past.get(key)
        if past is not None:
            return PlannedWrite(key, past.after, declared=dict(past.declared))
        before = self._live[key] if key in self._live else await self._look(key)
        return PlannedWrite(key, before)

    def _after(self, written: PlannedWrite, answer: Manifest) -> Manifest:
        # An object that does not exist yet has no version; whoever reads it back expects one.
        answer["metadata"].setdefault("resourceVersion", "")
        written.after = answer
        self.written[written.key] = written
        return answer


def _merged(answer: Any, earlier: Any, last: Any) -> Any:
    """Return an answer with the values that an earlier apply set and the last one leaves alone."""
    if not (isinstance(answer, dict) and isinstance(earlier, dict)):
        return earlier
    declared = last if isinstance(last, dict) else {}
    merged = dict(answer)
    for key, value in earlier.items():
        if key not in declared:
            merged[key] = value
        elif isinstance(value, dict):
            merged[key] = _merged(answer.get(key), value, declared[key])
    return merged
