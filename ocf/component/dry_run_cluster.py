"""Cluster that turns every write into a dry run, for the diff of a component.

The diff runs a real reconcile on it. Guards, data, handovers, suspension and pruning run as usual, so the diff is what
the next reconcile will do, not the result of a second implementation. Reads are passed on; an object that was written
in the dry run is read back as its write would have left it. The status of the owner is not sent at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ocf.cluster import (
    ApplyCache,
    InterceptingCluster,
    ListOptions,
    ObjectList,
    PatchOptions,
    PatchType,
    Subresource,
)
from ocf.cluster.packed import PackedList, list_packed
from ocf.cluster.protocol import DEFAULT_DELETE_OPTIONS, DEFAULT_LIST_OPTIONS, Preconditions
from ocf.component.model.former_managers import taken_labels
from ocf.errors import ConflictError, InvalidError, NoKindMatchError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.managed_fields import ManagedFields, union
from ocf.objects.manifest import split_api_version
from ocf.objects.owned_paths import (
    ABSENT,
    OwnedPath,
    dropped_fields,
    owned_fields,
    value_at,
    with_value_at,
    without_value_at,
)
from ocf.objects.paths import get_field, with_field
from ocf.schema.builtin import builtin_resource

if TYPE_CHECKING:
    from ocf.cluster import Cluster, DeleteOptions

__all__ = ["DryRunCluster", "PlannedWrite"]


@dataclass(slots=True)
class PlannedWrite:
    """Dry-run writes of one object.

    Args:
        key: The object.
        before: The live object; None if it does not exist.
        after: The object after the writes; None if it would be deleted.
        released: Whether it was orphaned.
        taken_over: The object after the ownership of fields was changed, by a takeover or because they are defaults
            that contradict a new value; None if it was not.
        declared: The last applied manifest of each field manager.
    """

    key: ObjectKey
    before: Manifest | None
    after: Manifest | None = None
    released: bool = False
    taken_over: Manifest | None = None
    declared: dict[str, Manifest] = field(default_factory=dict)


class DryRunCluster(InterceptingCluster):
    """A cluster whose writes are dry runs.

    Args:
        cluster: The real cluster.
        seen: Called with each object that is read, for a progress display.

    Attributes:
        written: Writes since `start`, by object, in order.
        conflicts: Conflicts of applies that were not forced: the object, and the error.
    """

    def __init__(self, cluster: Cluster, *, seen: Callable[[ObjectKey], None] | None = None) -> None:
        # A dry run must not be remembered as a write.
        super().__init__(cluster, apply_cache=ApplyCache())
        self._seen = seen
        self._live: dict[ObjectKey, Manifest | None] = {}
        self._past: dict[ObjectKey, PlannedWrite] = {}
        self.written: dict[ObjectKey, PlannedWrite] = {}
        self.conflicts: list[tuple[ObjectKey, ConflictError]] = []

    def start(self) -> None:
        """Start with another component: `written` and `conflicts` are its own; it sees the writes before it."""
        self._past |= self.written
        self.written = {}
        self.conflicts = []

    def before(self, key: ObjectKey) -> Manifest | None:
        """Return an object as it was read; None if it does not exist, or was not read."""
        return self._live.get(key)

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        """Read one object, as the writes so far would have left it."""
        if self._seen is not None:
            self._seen(key)
        if subresource is not None:
            return await self._inner.get(key, subresource=subresource)
        written = self.written.get(key) or self._past.get(key)
        found = written.after if written is not None else await self._read(key)
        if found is None:
            raise NotFoundError(f"{key} not found", code=404, reason="NotFound")
        return found

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        """Read the objects of a kind, without those that the writes so far would have deleted."""
        found = await self._inner.list(api_version, kind, options)
        gone = self._gone
        return replace(found, items=tuple(live for live in found.items if ObjectKey.of(live) not in gone))

    async def list_packed(self, api_version: str, kind: str, namespace: str = "") -> PackedList | None:
        """Read the objects of a kind as a cache holds them, without those that the writes so far would have deleted."""
        found = await list_packed(self._inner, api_version, kind, namespace)
        gone = {(key.namespace, key.name) for key in self._gone if (key.api_version, key.kind) == (api_version, kind)}
        return {name: one for name, one in found.items() if name not in gone} if found is not None else None

    @property
    def _gone(self) -> set[ObjectKey]:
        return {each.key for each in (*self._past.values(), *self.written.values()) if each.after is None}

    async def apply(
        self,
        manifest: Manifest,
        *,
        field_manager: str,
        force: bool = False,
        subresource: Subresource | None = None,
        dry_run: bool = False,
    ) -> Manifest:
        """Apply as a dry run."""
        del dry_run
        key = ObjectKey.of(manifest)
        written = await self._planned(key)
        try:
            answer = await self._inner.apply(
                manifest, field_manager=field_manager, force=force, subresource=subresource, dry_run=True
            )
        except ConflictError as error:
            self.conflicts.append((key, error))
            raise
        except InvalidError:
            if written.taken_over is None or subresource is not None:
                raise
            # The server did not store the change of the ownership, so the apply does not drop what is invalid now.
            answer = await self._without_ownership(written.taken_over, manifest, field_manager)
        if written.taken_over is not None:
            kept = _with_given_up(answer, written, manifest, field_manager)
            pruned = _without_dropped(kept, written.taken_over, manifest, field_manager)
            answer = await self._defaulted(pruned, written.before, field_manager)
        written.declared[field_manager] = manifest
        # The server did not store what another manager of ours applied before, so its answer does not include it.
        for manager, earlier in written.declared.items():
            if manager != field_manager:
                answer = _merged(answer, earlier, manifest)
        return self._after(written, answer)

    async def _defaulted(self, pruned: Manifest, before: Manifest | None, field_manager: str) -> Manifest:
        """Return an object with the defaults that the server sets where fields were dropped."""
        if before is None:
            return pruned
        kept = {name: value for name, value in pruned["metadata"].items() if name != "managedFields"}
        sent = {**pruned, "metadata": {**kept, "resourceVersion": before["metadata"].get("resourceVersion")}}
        answer = await self._inner.update(sent, field_manager=field_manager, dry_run=True)
        managed = pruned["metadata"].get("managedFields")
        return {**answer, "metadata": {**answer["metadata"], "managedFields": managed}}

    async def _without_ownership(self, owned: Manifest, manifest: Manifest, field_manager: str) -> Manifest:
        """Return an object as an apply would leave it that drops what its manager owns and does not declare."""
        managed = ManagedFields.of(owned)
        patch = manifest
        for path in dropped_fields(managed.owned_by(field_manager) or {}, manifest):
            entries = (path[:at] for at, step in enumerate(path, 1) if not step.startswith("f:"))
            # Entries of lists are removed from the answer instead.
            if all(value_at(manifest, entry) is not ABSENT for entry in entries):
                patch = with_value_at(patch, path, None)
        key = ObjectKey.of(manifest)
        builtin = builtin_resource(*split_api_version(key.api_version), key.kind)
        kind = PatchType.MERGE if builtin is None else PatchType.STRATEGIC_MERGE
        options = PatchOptions(patch_type=kind, field_manager=field_manager, dry_run=True)
        answer = await self._inner.patch(key, patch, options)
        return {**answer, "metadata": {**answer["metadata"], "managedFields": managed.manifests}}

    async def create(
        self,
        manifest: Manifest,
        *,
        field_manager: str,
        subresource: Subresource | None = None,
        dry_run: bool = False,
        strict: bool = False,
    ) -> Manifest:
        """Create as a dry run; what is only a question anyway is not a planned write."""
        if subresource is not None or dry_run:
            return await self._inner.create(
                manifest, field_manager=field_manager, subresource=subresource, dry_run=True, strict=strict
            )
        written = await self._planned(ObjectKey.of(manifest))
        made = await self._inner.create(manifest, field_manager=field_manager, dry_run=True, strict=strict)
        return self._after(written, made)

    async def update(
        self, manifest: Manifest, *, field_manager: str, subresource: Subresource | None = None, dry_run: bool = False
    ) -> Manifest:
        """Update as a dry run; an update of a status is not sent."""
        del dry_run
        if subresource is Subresource.STATUS:
            return manifest
        written = await self._planned(ObjectKey.of(manifest))
        answer = await self._inner.update(manifest, field_manager=field_manager, subresource=subresource, dry_run=True)
        return self._after(written, answer) if subresource is None else answer

    async def patch(self, key: ObjectKey, patch: Any, options: PatchOptions) -> Manifest:
        """Patch as a dry run."""
        if options.dry_run:
            return await self._inner.patch(key, patch, options)
        written = await self._planned(key)
        answer = await self._inner.patch(key, patch, replace(options, dry_run=True))
        if options.subresource is not None:
            return answer
        metadata = patch.get("metadata", {})
        if "managedFields" in metadata:
            written.taken_over = answer
        elif "ownerReferences" in metadata:
            written.released = True
        return self._after(written, answer)

    async def delete(self, key: ObjectKey, options: DeleteOptions = DEFAULT_DELETE_OPTIONS) -> None:
        """Delete as a dry run."""
        written = await self._planned(key)
        # The version may be that of a dry run, so only the uid is checked.
        given = options.preconditions
        same = Preconditions(uid=given.uid) if given is not None else None
        await self._inner.delete(key, replace(options, preconditions=same, dry_run=True))
        written.after = None
        self.written[key] = written

    async def _read(self, key: ObjectKey) -> Manifest | None:
        """Read a live object, and remember it."""
        try:
            found: Manifest | None = await self._inner.get(key)
        except NoKindMatchError:
            raise
        except NotFoundError:
            found = None
        self._live.setdefault(key, found)
        return found

    async def _planned(self, key: ObjectKey) -> PlannedWrite:
        if key in self.written:
            return self.written[key]
        past = self._past.get(key)
        if past is not None:
            return PlannedWrite(key, past.after, declared=dict(past.declared))
        before = self._live[key] if key in self._live else await self._read(key)
        return PlannedWrite(key, before)

    def _after(self, written: PlannedWrite, answer: Manifest) -> Manifest:
        # A dry-run create returns no version, but readers expect one.
        answer["metadata"].setdefault("resourceVersion", "")
        written.after = answer
        self.written[written.key] = written
        return answer


def _with_given_up(answer: Manifest, written: PlannedWrite, manifest: Manifest, field_manager: str) -> Manifest:
    """Return an answer with the values of the fields that a manager has given up, and that its apply does not drop.

    Args:
        manifest: What was applied.
    """
    owned = ManagedFields.of(written.taken_over).owned_by(field_manager) or {}
    for path in owned_fields(ManagedFields.of(written.before).owned_by(field_manager) or {}):
        value = value_at(written.taken_over, path)
        if get_field(owned, path) is None and value is not ABSENT and value_at(manifest, path) is ABSENT:
            answer = with_value_at(answer, path, value)
    return answer


def _without_dropped(answer: Manifest, taken_over: Manifest, manifest: Manifest, field_manager: str) -> Manifest:
    """Return an answer as it would be if the server had stored the takeover.

    Args:
        answer: The answer to an apply; the fields of the other component are in it, and still its own.
        taken_over: The object after the takeover.
        manifest: What was applied.
        field_manager: The manager that applied it.
    """
    managed, after = ManagedFields.of(taken_over), ManagedFields.of(answer)
    others = union(*(entry.fields for entry in managed.entries if entry.manager.name != field_manager))
    for path in dropped_fields(managed.owned_by(field_manager) or {}, manifest):
        answer = answer if get_field(others, path) is not None else _without(answer, path)
    for label, value in taken_labels(taken_over).items():
        answer = with_field(answer, ("metadata", "labels", label), value)
    known = {entry.manager for entry in managed.entries}
    entries = [
        entry.manifest for entry in after.entries if entry.manager in known or entry.manager.name == field_manager
    ]
    return {**answer, "metadata": {**answer["metadata"], "managedFields": entries}}


def _without(manifest: Manifest, path: OwnedPath) -> Manifest:
    """Return an object without the value at a place, and without the parents that are empty then."""
    manifest = without_value_at(manifest, path)
    return manifest if len(path) == 1 or value_at(manifest, path[:-1]) else _without(manifest, path[:-1])


def _merged(answer: Any, earlier: Any, last: Any) -> Any:
    """Return an answer with the values that an earlier apply set and the last one does not."""
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
