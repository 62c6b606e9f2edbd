"""Who owns which field: the bookkeeping behind `metadata.managedFields`, and server-side apply itself.

The rules are those of the structured merge that a real API server does
(https://kubernetes.io/docs/reference/using-api/server-side-apply/): a manager is a name, an operation, and a
subresource (for updates also a version). Writing a value through update or patch takes the field from everybody else;
applying another value than the owner's is a conflict unless forced; applying the same value shares the field; what an
apply names no longer is removed if nobody else owns it.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeAlias

from ocf.cluster.embedded.compare import Changes, compare, equal_json
from ocf.cluster.embedded.fieldset import (
    FieldSet,
    difference,
    intersection,
    path_text,
    paths,
    recursive_difference,
    union,
    with_named_fields,
)
from ocf.cluster.embedded.merge import merge, remove
from ocf.cluster.embedded.schema import StructType
from ocf.cluster.embedded.typed import field_set
from ocf.errors import ConflictError, StatusCause
from ocf.objects import Manifest

__all__ = ["APPLY", "UPDATE", "Entry", "Managed", "Manager", "applied", "read_entries", "updated", "write_entries"]

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


class Manager(NamedTuple):
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
    def of(cls, name: str, operation: str, api_version: str, subresource: str) -> "Manager":
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
class Entry:
    """What a manager owns.

    Args:
        fields: The fields.
        api_version: The version they are of.
        time: When the manager last changed something; empty if not recorded.
    """

    fields: FieldSet
    api_version: str
    time: str = ""


Managed: TypeAlias = dict[Manager, Entry]
"""Every manager of an object."""


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
        who = Manager.of(entry.get("manager", ""), operation, api_version, entry.get("subresource", ""))
        managed[who] = Entry(entry.get("fieldsV1") or {}, api_version, entry.get("time") or "")
    return managed


def write_entries(managed: Iterable[tuple[Manager, Entry]]) -> list[dict[str, Any]]:
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


def _write_entry(who: Manager, entry: Entry) -> dict[str, Any]:
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
    who: Manager,
    api_version: str,
    ignored: FieldSet,
    now: str,
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

    Returns:
        The managers after: whoever owned a changed field has lost it to the writer.
    """
    others, changes = _losses(live, new, kind, managed, None, force=True, ignored=ignored, api_version=api_version)
    mine = difference(union(changes.modified, changes.added), _NEVER_OWNED)
    if not mine:
        return others
    known = others.get(who)
    others[who] = Entry(union(mine, known.fields) if known else mine, api_version, now)
    return _without_ancients(others)


def applied(  # noqa: PLR0913 (the facts of one request)
    live: Manifest,
    config: Manifest,
    kind: StructType,
    managed: Managed,
    *,
    who: Manager,
    api_version: str,
    force: bool,
    ignored: FieldSet,
    now: str,
    empty: Manifest,
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

    Returns:
        The new object, not yet defaulted, or None if the apply changes nothing; and the managers after.

    Raises:
        ConflictError: If others own fields that would change.
    """
    if not managed:
        before = Manager.of(_BEFORE_FIRST_APPLY, UPDATE, api_version, who.subresource)
        managed = updated(empty, live, kind, {}, who=before, api_version=api_version, ignored=ignored, now=now)
    last = managed.get(who)
    fields = recursive_difference(field_set(config, kind), ignored)
    managed = {**managed, who: Entry(fields, api_version, last.time if last else "")}
    new = merge(live, config, kind)
    if last and last.api_version == api_version and last.fields != fields:
        new = _pruned(new, kind, managed, last, api_version)
    after, _ = _losses(live, new, kind, managed, who, force=force, ignored=ignored, api_version=api_version)
    own = after.get(who)
    if own:
        kept = difference(own.fields, _NEVER_OWNED)
        after[who] = replace(own, fields=kept)
        if not kept:
            del after[who]
    if new is live or equal_json(new, live):
        return None, after
    if who in after:
        after[who] = replace(after[who], time=now)
    return new, after


def _losses(  # noqa: PLR0913 (the facts of one request)
    live: Manifest,
    new: Manifest,
    kind: StructType,
    managed: Managed,
    who: Manager | None,
    *,
    force: bool,
    ignored: FieldSet,
    api_version: str,
) -> tuple[Managed, Changes]:
    """Take changed fields from everybody but `who`, or refuse to."""
    changes = compare(live, new, kind).without(ignored)
    touched = union(changes.modified, changes.added)
    conflicts: dict[Manager, FieldSet] = {}
    after: Managed = {}
    for manager, entry in managed.items():
        if manager == who:
            after[manager] = entry
        elif entry.api_version == api_version:
            lost = intersection(entry.fields, touched)
            if lost:
                conflicts[manager] = lost
            left = difference(difference(entry.fields, lost), changes.removed)
            if left:
                after[manager] = entry if left is entry.fields else replace(entry, fields=left)
    if conflicts and not force:
        raise _conflict(conflicts)
    return {manager: entry for manager, entry in after.items() if entry.fields}, changes


def _conflict(conflicts: Mapping[Manager, FieldSet]) -> ConflictError:
    order = sorted(conflicts, key=Manager.identity)
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


def _pruned(new: Manifest, kind: StructType, managed: Managed, last: Entry, api_version: str) -> Manifest:
    """Remove what the manager applied last time, does not apply now, and nobody owns."""
    owned: FieldSet = {}
    for entry in managed.values():
        if entry.api_version == api_version:
            owned = union(owned, entry.fields)
    before, owned = with_named_fields(last.fields, kind), with_named_fields(owned, kind)
    if not difference(before, owned):
        return new
    everything = with_named_fields(field_set(new, kind), kind)
    pruned = remove(new, before, kind)
    # A removed list item or map takes with it what others own below it, and that brings it back.
    gone = difference(everything, union(with_named_fields(field_set(pruned, kind), kind), owned))
    pruned = remove(new, gone, kind)
    # What the manager never owned must not go either, for example a list item that only updates have touched.
    gone = intersection(difference(everything, with_named_fields(field_set(pruned, kind), kind)), before)
    result: Manifest = remove(new, gone, kind)
    return result


def _without_ancients(managed: Managed) -> Managed:
    """Keep the list short: beyond ten updaters, the oldest of a version become one."""
    updaters = sorted(
        (who for who in managed if who.operation == UPDATE), key=lambda who: (managed[who].time, who.name, who)
    )
    surplus = len(updaters) - _MOST_UPDATERS
    first: dict[str, Manager] = {}
    for who in updaters:
        if surplus <= 0:
            break
        version = managed[who].api_version
        if version not in first:
            first[version] = who
            continue
        bucket = Manager.of(_ANCIENT, UPDATE, version, "")
        if bucket not in managed:
            managed[bucket] = managed.pop(first[version])
        entry = managed.pop(who)
        managed[bucket] = replace(entry, fields=union(entry.fields, managed[bucket].fields))
        surplus -= 1
    return managed
