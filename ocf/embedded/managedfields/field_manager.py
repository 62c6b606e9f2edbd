"""Who owns which field: the bookkeeping behind `metadata.managedFields`, and server-side apply itself.

The rules are those of the structured merge that a real API server does
(https://kubernetes.io/docs/reference/using-api/server-side-apply/): a manager is a name, an operation, and a
subresource (for updates also a version). Writing a value through update or patch takes the field from everybody else;
applying another value than the owner's is a conflict unless forced; applying the same value shares the field; what an
apply names no longer is removed if nobody else owns it.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeAlias

from ocf.embedded.managedfields.compare import Changes, compare
from ocf.embedded.managedfields.fieldset import (
    FieldSet,
    difference,
    intersection,
    path_text,
    paths,
    recursive_difference,
    union,
    with_named_fields,
)
from ocf.embedded.managedfields.merge import merge, remove
from ocf.embedded.managedfields.typed import field_set
from ocf.errors import ConflictError, StatusCause
from ocf.objects import Manifest
from ocf.objects.json_equality import equal_json
from ocf.schema.builtin import StructType

__all__ = [
    "APPLY",
    "UPDATE",
    "FieldManager",
    "InVersion",
    "Managed",
    "ManagerEntry",
    "applied",
    "read_entries",
    "updated",
    "write_entries",
]

APPLY: Final = "Apply"
UPDATE: Final = "Update"

_BEFORE_FIRST_APPLY: Final = "before-first-apply"
_ANCIENT: Final = "ancient-changes"
_MOST_UPDATERS: Final = 10

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


class FieldManager(NamedTuple):
    """Whom an entry belongs to.

    Args:
        name: The field manager.
        operation: `Apply` or `Update`.
        api_version: Version the manager writes; empty for an apply, which is the same manager in every version.
        subresource: The subresource it writes through; empty for the object itself.
    """

    name: str
    operation: str
    api_version: str = ""
    subresource: str = ""

    @classmethod
    def of(cls, name: str, operation: str, api_version: str, subresource: str) -> "FieldManager":
        """Identify whoever sends a request."""
        # A plain text: an answer is JSON, and holds no enumeration.
        return cls(name or "unknown", operation, "" if operation == APPLY else api_version, str(subresource))

    def identity(self) -> str:
        """Return the text by which a server tells managers apart, and sorts them."""
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
    """What a manager owns.

    Args:
        fields: The fields.
        api_version: The version they are of.
        time: When the manager last changed something; empty if not recorded.
    """

    fields: FieldSet
    api_version: str
    time: str = ""


Managed: TypeAlias = dict[FieldManager, ManagerEntry]
"""Every manager of an object."""

InVersion: TypeAlias = Callable[[Manifest, str], tuple[Manifest, StructType] | None]
"""Shows an object in another version, with its type there; None for a version that is not served any more."""


def _nowhere(_manifest: Manifest, _api_version: str) -> None:
    """Know no other version."""


def read_entries(entries: list[Any] | None) -> Managed:
    """Read `metadata.managedFields`.

    Args:
        entries: Its value; None is read as empty.

    Returns:
        The managers.

    Raises:
        ValueError: If an entry is not well formed.
    """
    managed: Managed = {}
    for entry in entries or ():
        if not isinstance(entry, dict):
            raise ValueError(f"a managedFields entry is not well formed: {entry!r}")  # noqa: TRY004 (it is a caller's data)
        operation, api_version = entry.get("operation", ""), entry.get("apiVersion", "")
        if operation not in (APPLY, UPDATE) or not api_version or entry.get("fieldsType") != "FieldsV1":
            raise ValueError(f"a managedFields entry is not well formed: {entry!r}")
        who = FieldManager.of(entry.get("manager", ""), operation, api_version, entry.get("subresource", ""))
        managed[who] = ManagerEntry(entry.get("fieldsV1") or {}, api_version, entry.get("time") or "")
    return managed


def write_entries(managed: Iterable[tuple[FieldManager, ManagerEntry]]) -> list[dict[str, Any]]:
    """Write `metadata.managedFields`.

    Args:
        managed: The managers with what they own.

    Returns:
        Its value: applies before updates, each by time, name, version and subresource.
    """
    order = sorted(
        managed,
        key=lambda pair: (pair[0].operation, pair[1].time, pair[0].name, pair[1].api_version, pair[0].subresource),
    )
    return [_write_entry(who, entry) for who, entry in order]


def _write_entry(who: FieldManager, entry: ManagerEntry) -> dict[str, Any]:
    out: dict[str, Any] = {"manager": who.name, "operation": who.operation, "apiVersion": entry.api_version}
    if entry.time:
        out["time"] = entry.time
    out["fieldsType"] = "FieldsV1"
    out["fieldsV1"] = entry.fields
    if who.subresource:
        out["subresource"] = who.subresource
    return out


def updated(  # noqa: PLR0913 (the facts of one request)
    live: Manifest,
    new: Manifest,
    kind: StructType,
    managed: Managed,
    *,
    who: FieldManager,
    api_version: str,
    ignored: FieldSet,
    now: str,
    in_version: InVersion = _nowhere,
) -> Managed:
    """Record a create, an update or a patch.

    Args:
        live: The object before; an empty one for a create. Without managed fields.
        new: The object after. Without managed fields.
        kind: Their type.
        managed: The managers before.
        who: Who writes.
        api_version: The version of the objects.
        ignored: Fields that this request cannot write.
        now: The time to record.
        in_version: Shows the objects in the versions that other managers write.

    Returns:
        The managers after: whoever owned a changed field has lost it to the writer.
    """
    step = _Step(live, new, kind, api_version, ignored, in_version)
    others, changes = _losses(step, managed, None, force=True)
    mine = difference(changes.touched, _NEVER_OWNED)
    if not mine:
        return others
    known = others.get(who)
    others[who] = ManagerEntry(union(mine, known.fields) if known else mine, api_version, now)
    return _without_ancients(others)


def applied(  # noqa: PLR0913 (the facts of one request)
    live: Manifest,
    config: Manifest,
    kind: StructType,
    managed: Managed,
    *,
    who: FieldManager,
    api_version: str,
    force: bool,
    ignored: FieldSet,
    now: str,
    empty: Manifest,
    in_version: InVersion = _nowhere,
) -> tuple[Manifest | None, Managed]:
    """Apply a manifest.

    Args:
        live: The live object, without managed fields; an empty one if there is none.
        config: The applied manifest.
        kind: Their type.
        managed: The managers before.
        who: Who applies.
        api_version: The version of the objects.
        force: Take fields from their owners instead of failing.
        ignored: Fields that this request cannot write.
        now: The time to record.
        empty: What an object of the kind is before anything is written.
        in_version: Shows the objects in the versions that other managers write.

    Returns:
        The new object, not yet defaulted, or None if the apply changes nothing; and the managers after.

    Raises:
        ConflictError: If others own fields that would change.
    """
    if not managed:
        before = FieldManager.of(_BEFORE_FIRST_APPLY, UPDATE, api_version, who.subresource)
        managed = updated(empty, live, kind, {}, who=before, api_version=api_version, ignored=ignored, now=now)
    last = managed.get(who)
    fields = recursive_difference(field_set(config, kind), ignored)
    managed = {**managed, who: ManagerEntry(fields, api_version, last.time if last else "")}
    new = merge(live, config, kind)
    # What nobody owns is in the applied set, and not in the stored one.
    if last and (last.api_version != api_version or last.fields != difference(fields, _NEVER_OWNED)):
        new = _pruned_in_version(new, kind, managed, last, api_version, in_version)
    after, _ = _losses(_Step(live, new, kind, api_version, ignored, in_version), managed, who, force=force)
    own = after.get(who)
    if own:
        kept = difference(own.fields, _NEVER_OWNED)
        after[who] = ManagerEntry(kept, own.api_version, own.time)
        if not kept:
            del after[who]
    if new is live or equal_json(new, live):
        return None, after
    if who in after:
        after[who] = ManagerEntry(after[who].fields, after[who].api_version, now)
    return new, after


@dataclass(slots=True)
class _Step:
    """An object before and after a write, to be compared in every version that its managers write."""

    live: Manifest
    new: Manifest
    kind: StructType
    api_version: str
    ignored: FieldSet
    in_version: InVersion

    def changes(self) -> Changes:
        return compare(self.live, self.new, self.kind).without(self.ignored)

    def changes_in(self, api_version: str) -> Changes | None:
        before, after = self.in_version(self.live, api_version), self.in_version(self.new, api_version)
        if before is None or after is None:
            return None
        return compare(before[0], after[0], after[1]).without(self.ignored)


def _losses(step: _Step, managed: Managed, who: FieldManager | None, *, force: bool) -> tuple[Managed, Changes]:
    """Take changed fields from everybody but `who`, or refuse to."""
    own = step.changes()
    by_version: dict[str, tuple[Changes, FieldSet] | None] = {step.api_version: (own, own.touched)}
    conflicts: dict[FieldManager, FieldSet] = {}
    after: Managed = {}
    for manager, entry in managed.items():
        if manager == who:
            after[manager] = entry
            continue
        if entry.api_version not in by_version:
            there = step.changes_in(entry.api_version)
            by_version[entry.api_version] = None if there is None else (there, there.touched)
        found = by_version[entry.api_version]
        if found is None:
            # What a manager owns in a version that is gone cannot be said any more.
            continue
        changes, touched = found
        lost = intersection(entry.fields, touched)
        if lost:
            conflicts[manager] = lost
        left = difference(difference(entry.fields, lost), changes.removed)
        if left:
            after[manager] = entry if left is entry.fields else replace(entry, fields=left)
    if conflicts and not force:
        raise _conflict(conflicts)
    return {manager: entry for manager, entry in after.items() if entry.fields}, own


def _conflict(conflicts: Mapping[FieldManager, FieldSet]) -> ConflictError:
    order = sorted(conflicts, key=FieldManager.identity)
    found = [(who, path_text(path)) for who in order for path in paths(conflicts[who])]
    causes = [StatusCause("FieldManagerConflict", f"conflict with {who}", field) for who, field in found]
    if len(found) == 1:
        message = f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}"
    else:
        lines = []
        for who in order:
            lines.append(f"conflicts with {who}:")
            lines.extend(f"- {field}" for owner, field in found if owner == who)
        message = f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
    return ConflictError(message, code=409, reason="Conflict", causes=causes)


def _pruned_in_version(  # noqa: PLR0917 (the facts of one request)
    new: Manifest, kind: StructType, managed: Managed, last: ManagerEntry, api_version: str, in_version: InVersion
) -> Manifest:
    """Prune in the version of the last apply: its fields are of that version."""
    if last.api_version == api_version:
        return _pruned(new, kind, managed, last, in_version)
    then = in_version(new, last.api_version)
    if then is None:
        return new
    now = in_version(_pruned(then[0], then[1], managed, last, in_version), api_version)
    return new if now is None else now[0]


def _pruned(new: Manifest, kind: StructType, managed: Managed, last: ManagerEntry, in_version: InVersion) -> Manifest:
    """Remove what the manager applied last time, does not apply now, and nobody owns in any version."""
    owned: dict[str, FieldSet] = {}
    for entry in managed.values():
        owned[entry.api_version] = union(owned.get(entry.api_version, {}), entry.fields)
    before, here = with_named_fields(last.fields, kind), owned.pop(last.api_version, {})
    if not difference(before, with_named_fields(here, kind)):
        return new
    pruned = _kept(new, remove(new, before, kind), kind, here)
    for api_version, fields in owned.items():
        pruned = _kept_in_version(new, pruned, api_version, fields, last.api_version, in_version)
    # What the manager never owned must not go either, for example a list item that only updates have touched.
    gone = intersection(difference(_named(new, kind), _named(pruned, kind)), before)
    result: Manifest = remove(new, gone, kind)
    return result


def _named(manifest: Manifest, kind: StructType) -> FieldSet:
    return with_named_fields(field_set(manifest, kind), kind)


def _kept(new: Manifest, pruned: Manifest, kind: StructType, owned: FieldSet) -> Manifest:
    """Bring back what somebody owns: a removed list item or map takes with it what others own below it."""
    left = union(_named(pruned, kind), with_named_fields(owned, kind))
    result: Manifest = remove(new, difference(_named(new, kind), left), kind)
    return result


def _kept_in_version(  # noqa: PLR0917 (the facts of one request)
    new: Manifest, pruned: Manifest, api_version: str, owned: FieldSet, back: str, in_version: InVersion
) -> Manifest:
    """Bring back what somebody owns in another version; nothing of a version that is not served any more."""
    whole, part = in_version(new, api_version), in_version(pruned, api_version)
    if whole is None or part is None:
        return pruned
    kept = in_version(_kept(whole[0], part[0], whole[1], owned), back)
    return pruned if kept is None else kept[0]


def _without_ancients(managed: Managed) -> Managed:
    """Keep the list short: beyond ten updaters, the oldest of a version become one."""
    updaters = sorted(
        (who for who in managed if who.operation == UPDATE), key=lambda who: (managed[who].time, who.name, who)
    )
    surplus = len(updaters) - _MOST_UPDATERS
    first: dict[str, FieldManager] = {}
    for who in updaters:
        if surplus <= 0:
            break
        version = managed[who].api_version
        if version not in first:
            first[version] = who
            continue
        bucket = FieldManager.of(_ANCIENT, UPDATE, version, "")
        if bucket not in managed:
            managed[bucket] = managed.pop(first[version])
        entry = managed.pop(who)
        managed[bucket] = replace(entry, fields=union(entry.fields, managed[bucket].fields))
        surplus -= 1
    return managed
