"""Managed fields of objects, and server-side apply.

The rules are those of the structured merge of a real API server
(https://kubernetes.io/docs/reference/using-api/server-side-apply/): a manager is a name, an operation, and a
subresource (for updates also a version). An update or patch that changes a field takes it from all other managers. An
apply of another value than the owner's is a conflict unless forced; an apply of the same value shares the field. A
field that an apply no longer contains is removed if no other manager owns it.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeAlias

from ocf.errors import ConflictError, StatusCause
from ocf.objects import Manifest
from ocf.objects.json_equality import equal_json
from ocf.schema.builtin import StructType
from ocf_server.managedfields.compare import Changes, compare, encoded_lists
from ocf_server.managedfields.fieldset import (
    FieldSet,
    difference,
    intersection,
    path_text,
    paths,
    recursive_difference,
    serialized,
    union,
    with_named_fields,
)
from ocf_server.managedfields.merge import merge, remove
from ocf_server.managedfields.typed import field_set

__all__ = [
    "APPLY",
    "UPDATE",
    "ConversionError",
    "InVersion",
    "Managed",
    "ManagerEntry",
    "ManagerIdentifier",
    "applied",
    "read_entries",
    "updated",
    "write_entries",
]

APPLY: Final = "Apply"
UPDATE: Final = "Update"

_BEFORE_FIRST_APPLY: Final = "before-first-apply"
_ANCIENT_CHANGES: Final = "ancient-changes"
# DefaultMaxUpdateManagers of `apimachinery/pkg/util/managedfields`: kubectl versions and controllers come and go.
_MAX_UPDATERS: Final = 10

# The stripSet of `stripmeta.go` there: what identifies the object, or what only the server writes.
_NEVER_OWNED: Final[FieldSet] = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {
        ".": {},
        "f:name": {},
        "f:namespace": {},
        "f:creationTimestamp": {},
        "f:selfLink": {},
        "f:uid": {},
        "f:clusterName": {},
        "f:generation": {},
        "f:managedFields": {},
        "f:resourceVersion": {},
    },
}


class ManagerIdentifier(NamedTuple):
    """Identity of a field manager.

    Args:
        operation: `Apply` or `Update`.
        api_version: Version that the manager writes; empty for an apply, which is the same manager in every version.
        subresource: Subresource that the manager writes; empty for the object itself.
    """

    name: str
    operation: str
    api_version: str = ""
    subresource: str = ""

    @classmethod
    def of(cls, name: str, operation: str, api_version: str, subresource: str) -> "ManagerIdentifier":
        """Return the identity of the field manager of a request."""
        # A plain str: the subresource may be an enum, and managed fields are JSON.
        return cls(name or "unknown", operation, "" if operation == APPLY else api_version, str(subresource))

    def identity(self) -> str:
        """Return the text by which a real API server identifies and sorts managers."""
        named = {"apiVersion": self.api_version, "subresource": self.subresource}
        parts = {
            "manager": self.name,
            "operation": self.operation,
            **{key: text for key, text in named.items() if text},
        }
        return json.dumps(parts, separators=(",", ":"))

    def __str__(self) -> str:
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


@dataclass(frozen=True, slots=True)
class ManagerEntry:
    """Fields that a manager owns.

    Args:
        time: Time of the last change by the manager; empty if not recorded.
    """

    fields: FieldSet
    api_version: str
    time: str = ""


Managed: TypeAlias = dict[ManagerIdentifier, ManagerEntry]
"""All managers of an object, with their entries."""

InVersion: TypeAlias = Callable[[Manifest, str], tuple[Manifest, StructType] | None]
"""Function that converts an object to another version and returns its type there; None for an unknown version.

It raises ConversionError if the object has fields that the other version does not declare.
"""


class ConversionError(Exception):
    """An object cannot be compared in a version that a manager writes; the text is that of a real API server."""


def _single_version(_manifest: Manifest, _api_version: str) -> None:
    """Return None: the kind has no other version."""


def read_entries(entries: list[Any] | None) -> Managed:
    """Read `metadata.managedFields`.

    Args:
        entries: Its value; None is read as empty.

    Raises:
        ValueError: If an entry is malformed.
    """
    managed: Managed = {}
    for entry in entries or ():
        if not isinstance(entry, dict):
            raise ValueError(f"a managedFields entry is not well formed: {entry!r}")  # noqa: TRY004 (wrong data of a client)
        operation, api_version = entry.get("operation", ""), entry.get("apiVersion", "")
        if operation not in (APPLY, UPDATE) or not api_version or entry.get("fieldsType") != "FieldsV1":
            raise ValueError(f"a managedFields entry is not well formed: {entry!r}")
        manager = ManagerIdentifier.of(entry.get("manager", ""), operation, api_version, entry.get("subresource", ""))
        managed[manager] = ManagerEntry(entry.get("fieldsV1") or {}, api_version, entry.get("time") or "")
    return managed


def write_entries(managed: Iterable[tuple[ManagerIdentifier, ManagerEntry]]) -> list[dict[str, Any]]:
    """Write `metadata.managedFields`.

    Args:
        managed: The managers with their entries.

    Returns:
        The value: applies before updates, both sorted by time, name, version and subresource.
    """
    order = sorted(
        managed,
        key=lambda pair: (pair[0].operation, pair[1].time, pair[0].name, pair[1].api_version, pair[0].subresource),
    )
    return [_write_entry(manager, entry) for manager, entry in order]


def _write_entry(manager: ManagerIdentifier, entry: ManagerEntry) -> dict[str, Any]:
    out: dict[str, Any] = {"manager": manager.name, "operation": manager.operation, "apiVersion": entry.api_version}
    if entry.time:
        out["time"] = entry.time
    out["fieldsType"] = "FieldsV1"
    out["fieldsV1"] = serialized(entry.fields)
    if manager.subresource:
        out["subresource"] = manager.subresource
    return out


def updated(  # noqa: PLR0913 (the facts of one request)
    live: Manifest,
    new: Manifest,
    kind: StructType,
    managed: Managed,
    *,
    manager: ManagerIdentifier,
    api_version: str,
    ignored: FieldSet,
    now: str,
    in_version: InVersion = _single_version,
) -> Managed:
    """Return the managers after a create, an update or a patch.

    Args:
        live: The object before, without managed fields; an empty object for a create.
        new: The object after, without managed fields.
        ignored: Fields that this request cannot write.
        in_version: Converts the objects to the versions that other managers write.

    Returns:
        The managers after; the writer owns all changed fields, and the other managers have lost them.

    Raises:
        ConversionError: If the objects cannot be compared in the version of another manager.
    """
    _require_convertible(live, managed, api_version, in_version)
    write = _Write(live, new, kind, api_version, ignored, in_version)
    changes = write.changes()
    # Only here: an apply compares decoded texts.
    changes.modified = union(changes.modified, recursive_difference(encoded_lists(live, new, kind), ignored))
    others = _without_changed_fields(write, managed, None, changes, force=True)
    changed = difference(changes.touched, _NEVER_OWNED)
    if not changed:
        return others
    # An update adds to what its manager owns; it gives up no field that it leaves alone.
    known = others.get(manager)
    others[manager] = ManagerEntry(union(changed, known.fields) if known else changed, api_version, now)
    return _with_limited_updaters(others)


def applied(  # noqa: PLR0913 (the facts of one request)
    live: Manifest,
    config: Manifest,
    kind: StructType,
    managed: Managed,
    *,
    manager: ManagerIdentifier,
    api_version: str,
    force: bool,
    ignored: FieldSet,
    now: str,
    empty: Manifest,
    in_version: InVersion = _single_version,
) -> tuple[Manifest | None, Managed]:
    """Apply a manifest.

    Args:
        live: The live object, without managed fields; an empty object if it does not exist.
        force: Take over fields that other managers own, instead of a conflict.
        ignored: Fields that this request cannot write.
        empty: The empty object of the kind.
        in_version: Converts the objects to the versions that other managers write.

    Returns:
        The new object, not yet defaulted, or None if the apply changes nothing; and the managers after.

    Raises:
        ConflictError: If the apply would change fields that other managers own, and is not forced.
        ConversionError: If the objects cannot be compared in the version of another manager.
    """
    _require_convertible(live, managed, api_version, in_version)
    if not managed:
        # An object without managers was written before server-side apply, or its managers were cleared; without this
        # owner, the first apply would remove what it does not contain.
        before = ManagerIdentifier.of(_BEFORE_FIRST_APPLY, UPDATE, api_version, manager.subresource)
        managed = updated(empty, live, kind, {}, manager=before, api_version=api_version, ignored=ignored, now=now)
    last = managed.get(manager)
    fields = recursive_difference(field_set(config, kind), ignored)
    managed = {**managed, manager: ManagerEntry(fields, api_version, last.time if last else "")}
    new = merge(live, config, kind)
    # The set of applied fields includes the fields that are never owned; stored entries do not.
    others = any(entry.api_version != api_version for entry in managed.values())
    if last and (others or last.api_version != api_version or last.fields != difference(fields, _NEVER_OWNED)):
        # Only where the applied set has changed, because pruning compares the whole object in each version.
        with _explained("failed to prune fields"):
            new = _pruned_in_version(new, kind, managed, last, api_version, in_version)
    write = _Write(live, new, kind, api_version, ignored, in_version)
    after = _without_changed_fields(write, managed, manager, write.changes(), force=force)
    own = after.get(manager)
    if own:
        # After the merge, as `stripmeta.go` wraps the merging manager.
        kept = difference(own.fields, _NEVER_OWNED)
        after[manager] = ManagerEntry(kept, own.api_version, own.time)
        if not kept:
            del after[manager]
    # The time of the entry stays as well: an apply that changes nothing must not write.
    if new is live or equal_json(new, live):
        return None, after
    if manager in after:
        after[manager] = ManagerEntry(after[manager].fields, after[manager].api_version, now)
    return new, after


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Name the failed step in the text of a ConversionError."""
    try:
        yield
    except ConversionError as error:
        raise ConversionError(f"{what}: {error}") from None


def _require_convertible(live: Manifest, managed: Managed, api_version: str, in_version: InVersion) -> None:
    """Raise ConversionError if the live object cannot be converted to the version of a manager."""
    for version in {entry.api_version for entry in managed.values()} - {api_version}:
        in_version(live, version)


@dataclass(slots=True)
class _Write:
    """An object before and after a write, for comparisons in every version that its managers write."""

    live: Manifest
    new: Manifest
    kind: StructType
    api_version: str
    ignored: FieldSet
    in_version: InVersion

    def changes(self) -> Changes:
        return compare(self.live, self.new, self.kind).without(self.ignored)

    def changes_in(self, api_version: str) -> Changes | None:
        with _explained("failed to convert old object"):
            before = self.in_version(self.live, api_version)
        with _explained("failed to convert new object"):
            after = self.in_version(self.new, api_version)
        if before is None or after is None:
            return None
        return compare(before[0], after[0], after[1]).without(self.ignored)


def _without_changed_fields(
    write: _Write, managed: Managed, applier: ManagerIdentifier | None, own: Changes, *, force: bool
) -> Managed:
    """Return all managers without the fields that a write changes, except the applier.

    Args:
        own: The changes in the version of the request.

    Raises:
        ConflictError: If another manager owns a changed field, and the write is not forced.
    """
    by_version: dict[str, tuple[Changes, FieldSet] | None] = {write.api_version: (own, own.touched)}
    conflicts: dict[ManagerIdentifier, FieldSet] = {}
    after: Managed = {}
    for manager, entry in managed.items():
        if manager == applier:
            after[manager] = entry
            continue
        if entry.api_version not in by_version:
            converted = write.changes_in(entry.api_version)
            by_version[entry.api_version] = None if converted is None else (converted, converted.touched)
        found = by_version[entry.api_version]
        if found is None:
            # The fields of a version that no longer exists cannot be compared: the entry is dropped.
            continue
        changes, touched = found
        lost = intersection(entry.fields, touched)
        if lost:
            conflicts[manager] = lost
        # A field that is gone has no owner either, but its removal is no conflict.
        left = difference(difference(entry.fields, lost), changes.removed)
        if left:
            after[manager] = entry if left is entry.fields else replace(entry, fields=left)
    if conflicts and not force:
        raise _conflict(conflicts)
    return {manager: entry for manager, entry in after.items() if entry.fields}


def _conflict(conflicts: Mapping[ManagerIdentifier, FieldSet]) -> ConflictError:
    order = sorted(conflicts, key=ManagerIdentifier.identity)
    found = [(manager, path_text(path)) for manager in order for path in paths(conflicts[manager])]
    causes = [StatusCause("FieldManagerConflict", f"conflict with {manager}", field) for manager, field in found]
    if len(found) == 1:
        message = f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}"
    else:
        lines = []
        for manager in order:
            lines.append(f"conflicts with {manager}:")
            lines.extend(f"- {field}" for owner, field in found if owner == manager)
        message = f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
    return ConflictError(message, code=409, reason="Conflict", causes=causes)


def _pruned_in_version(  # noqa: PLR0917 (the facts of one request)
    new: Manifest, kind: StructType, managed: Managed, last: ManagerEntry, api_version: str, in_version: InVersion
) -> Manifest:
    """Prune the object in the version of the last apply, which is the version of its fields."""
    if last.api_version == api_version:
        return _pruned(new, kind, managed, last, in_version)
    with _explained("failed to convert merged object to last applied version"):
        converted = in_version(new, last.api_version)
    if converted is None:
        return new
    pruned = in_version(_pruned(converted[0], converted[1], managed, last, in_version), api_version)
    return new if pruned is None else pruned[0]


def _pruned(new: Manifest, kind: StructType, managed: Managed, last: ManagerEntry, in_version: InVersion) -> Manifest:
    """Remove the fields of the last apply that the manager no longer applies and no manager owns in any version."""
    owned: dict[str, FieldSet] = {}
    for entry in managed.values():
        owned[entry.api_version] = union(owned.get(entry.api_version, {}), entry.fields)
    before, here = with_named_fields(last.fields, kind), owned.pop(last.api_version, {})
    if not owned and not difference(before, with_named_fields(here, kind)):
        return new
    pruned = _kept(new, remove(new, before, kind), kind, here)
    for api_version, fields in owned.items():
        with _explained("failed add back owned items"):
            pruned = _kept_in_version(new, pruned, api_version, fields, last.api_version, in_version)
    # Fields that the manager never owned stay, for example a list item that only updates have changed.
    gone = intersection(difference(_named(new, kind), _named(pruned, kind)), before)
    result: Manifest = remove(new, gone, kind)
    return result


def _named(manifest: Manifest, kind: StructType) -> FieldSet:
    return with_named_fields(field_set(manifest, kind), kind)


def _kept(new: Manifest, pruned: Manifest, kind: StructType, owned: FieldSet) -> Manifest:
    """Restore the owned fields: the removal of a list item or map also removes fields below it that have owners."""
    left = union(_named(pruned, kind), with_named_fields(owned, kind))
    result: Manifest = remove(new, difference(_named(new, kind), left), kind)
    return result


def _kept_in_version(  # noqa: PLR0917 (the facts of one request)
    new: Manifest, pruned: Manifest, api_version: str, owned: FieldSet, back: str, in_version: InVersion
) -> Manifest:
    """Restore the fields that are owned in another version; a version that no longer exists is ignored."""
    with _explained(f"failed to convert merged object at version {api_version}"):
        whole = in_version(new, api_version)
    with _explained(f"failed to convert pruned object at version {api_version}"):
        part = in_version(pruned, api_version)
    if whole is None or part is None:
        return pruned
    kept = in_version(_kept(whole[0], part[0], whole[1], owned), back)
    return pruned if kept is None else kept[0]


def _with_limited_updaters(managed: Managed) -> Managed:
    """Merge the oldest updaters of each version into one manager, so that at most ten updaters remain."""
    updaters = sorted(
        (manager for manager in managed if manager.operation == UPDATE),
        key=lambda manager: (managed[manager].time, manager.name, manager),
    )
    surplus = len(updaters) - _MAX_UPDATERS
    first: dict[str, ManagerIdentifier] = {}
    for manager in updaters:
        if surplus <= 0:
            break
        version = managed[manager].api_version
        if version not in first:
            first[version] = manager
            continue
        # The first of a version is only renamed, so a single one keeps its name until a second has to go.
        bucket = ManagerIdentifier.of(_ANCIENT_CHANGES, UPDATE, version, "")
        if bucket not in managed:
            managed[bucket] = managed.pop(first[version])
        entry = managed.pop(manager)
        managed[bucket] = replace(entry, fields=union(entry.fields, managed[bucket].fields))
        surplus -= 1
    return managed
