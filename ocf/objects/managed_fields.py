"""Field ownership of an object: `metadata.managedFields` and its `fieldsV1`.

`fieldsV1` describes its own structure, so no schema is needed to read it: `f:` marks a field, `k:` an entry of a keyed
list, `v:` a value of a set, and `.` the object or the entry itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ocf.objects.manifest import Manifest
from ocf.objects.paths import FieldPath, get_field, with_field

__all__ = [
    "SELF",
    "FieldManager",
    "ManagedFields",
    "ManagedFieldsEntry",
    "as_applied",
    "entry_key",
    "excluding",
    "field_manager",
    "fields_path",
    "key_label",
    "read_key",
    "restricted",
    "union",
]

_APPLY: Final = "Apply"
# The API server's limit for the name of a field manager, in bytes.
_LONGEST_MANAGER: Final = 128
SELF: Final = "."
"""The key of `fieldsV1` for the object or the entry itself."""


def field_manager(*parts: str) -> str:
    """Return the name of a field manager.

    Args:
        parts: What identifies the writer, such as its operator, kind of the owner, name of the component, and uid of
            the owner.

    Returns:
        The parts joined by slashes. If that has more bytes than the API allows: the first part, if it has at most 63,
        and the SHA-256 of all of them in hex.

    Example:
        >>> field_manager("shops", "Shop", "web-interface", "c0ffee")
        'shops/Shop/web-interface/c0ffee'
        >>> long = field_manager("shops", "Shop", "x" * 200, "c0ffee")
        >>> long[:6], len(long), len(field_manager("ü" * 100))
        ('shops/', 70, 64)
    """
    name = "/".join(parts)
    if len(name.encode()) <= _LONGEST_MANAGER:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()
    return f"{parts[0]}/{digest}" if len(f"{parts[0]}/{digest}".encode()) <= _LONGEST_MANAGER else digest


class FieldManager(NamedTuple):
    """The identity of an entry: an object has at most one entry of each.

    Args:
        name: The name that the client sends as `fieldManager`.
        operation: `Apply` for server-side apply, `Update` for every other write.
        subresource: For example `status`; empty for the object itself.
    """

    name: str
    operation: str
    subresource: str


@dataclass(frozen=True, slots=True)
class ManagedFieldsEntry:
    """One entry of `managedFields`."""

    manifest: Manifest

    @property
    def manager(self) -> FieldManager:
        """The field manager; what the entry does not name is empty."""
        entry = self.manifest
        return FieldManager(
            str(entry.get("manager") or ""), str(entry.get("operation") or ""), str(entry.get("subresource") or "")
        )

    @property
    def time(self) -> str:
        """The time of the manager's last write, in RFC 3339 and UTC; empty if the entry does not name it."""
        return str(self.manifest.get("time") or "")

    @property
    def fields(self) -> Manifest:
        """The `fieldsV1`."""
        fields: Manifest = self.manifest.get("fieldsV1") or {}
        return fields

    def owns(self, path: Sequence[str]) -> bool:
        """Return whether the entry lists a field."""
        return get_field(self.fields, fields_path(path)) is not None


@dataclass(frozen=True, slots=True)
class ManagedFields:
    """The field managers of an object.

    Args:
        manifests: The entries as the API server wrote them, in the order of the object.

    Example:
        >>> live = {"metadata": {"managedFields": [
        ...     {"manager": "us", "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]}}
        >>> managed = ManagedFields.of(live)
        >>> managed.owned_by("us"), managed.owned_by("kubectl")
        ({'f:spec': {'f:replicas': {}}}, None)
        >>> managed.owns("us", ("spec", "replicas")), managed.owns("us", ("spec", "paused"))
        (True, False)
    """

    manifests: Sequence[Manifest]

    @classmethod
    def of(cls, live: Manifest | None) -> ManagedFields:
        """Return the field managers of an object; none for an object that does not exist."""
        return cls(get_field(live, ("metadata", "managedFields")) or ())

    @property
    def entries(self) -> tuple[ManagedFieldsEntry, ...]:
        """The entries, in the order of the object."""
        return tuple(map(ManagedFieldsEntry, self.manifests))

    @property
    def appliers(self) -> tuple[str, ...]:
        """The names of the managers that have applied the object, in its order; those of subresources are left out."""
        return tuple(str(entry.get("manager") or "") for entry in self.manifests if is_apply(entry))

    def owned_by(self, manager: str) -> Manifest | None:
        """Return the `fieldsV1` of a manager's server-side apply; None if it never applied the object."""
        # Every comparison of an object starts here, so the entries of the other managers are not wrapped.
        for entry in self.manifests:
            if entry.get("manager") == manager and is_apply(entry):
                return ManagedFieldsEntry(entry).fields
        return None

    def owns(self, manager: str, path: Sequence[str]) -> bool:
        """Return whether a manager owns a field by server-side apply."""
        return get_field(self.owned_by(manager), fields_path(path)) is not None

    def owners_of(self, path: Sequence[str]) -> Iterator[FieldManager]:
        """Yield the managers that own a field, in the order of the object."""
        return (entry.manager for entry in self.entries if entry.owns(path))

    def paths(self) -> dict[FieldManager, frozenset[str]]:
        """Return the innermost fields of each manager, for example `spec.template.spec.containers[name=app].image`."""
        return {entry.manager: frozenset(_leaves(entry.fields, "")) for entry in self.entries}


def is_apply(entry: Manifest) -> bool:
    """Return whether an entry is that of a server-side apply of the object itself."""
    return entry.get("operation") == _APPLY and not entry.get("subresource")


def fields_path(path: Sequence[str]) -> tuple[str, ...]:
    """Return where `fieldsV1` lists a field.

    Example:
        >>> fields_path(("spec", "replicas"))
        ('f:spec', 'f:replicas')
    """
    return tuple(f"f:{key}" for key in path)


def union(*fields: Manifest) -> Manifest:
    """Return a `fieldsV1` that lists the fields of several.

    Args:
        fields: The `fieldsV1`; they are not changed.

    Example:
        >>> union({"f:spec": {"f:replicas": {}}}, {"f:spec": {"f:paused": {}}})
        {'f:spec': {'f:replicas': {}, 'f:paused': {}}}
    """
    whole: Manifest = {}
    for one in fields:
        for name, inner in one.items():
            whole[name] = union(whole[name], inner) if name in whole else inner
    return whole


def restricted(fields: Manifest, paths: Collection[FieldPath]) -> Manifest:
    """Return a `fieldsV1` that lists no other fields than these.

    Args:
        paths: The places to keep, as `fields_path` returns them.

    Example:
        >>> restricted({"f:spec": {"f:replicas": {}, "f:paused": {}}}, [fields_path(("spec", "replicas"))])
        {'f:spec': {'f:replicas': {}}}
    """
    kept: Manifest = {}
    for path in paths:
        owned = get_field(fields, path)
        if owned is not None:
            kept = with_field(kept, [str(key) for key in path], owned)
    return kept


def as_applied(fields: Manifest, *, is_entry: bool = False) -> Manifest:
    """Return the fields of an update as an apply records them: of maps it owns the keys, of lists also the entries.

    Args:
        is_entry: Whether they are those of an entry of a list.

    Example:
        >>> as_applied({"f:data": {".": {}, "f:a": {}}, "f:list": {".": {}, 'k:{"name":"b"}': {".": {}, "f:name": {}}}})
        {'f:data': {'f:a': {}}, 'f:list': {'k:{"name":"b"}': {'.': {}, 'f:name': {}}}}
    """
    return {
        name: as_applied(inner, is_entry=name.startswith("k:"))
        for name, inner in fields.items()
        if name != SELF or is_entry
    }


def excluding(fields: Manifest, path: Sequence[str]) -> Manifest:
    """Return a `fieldsV1` without a place, and without the parents of which nothing is left.

    Args:
        path: The place, as `fields_path` returns it; one that is not listed changes nothing.

    Example:
        >>> excluding({"f:data": {".": {}, "f:a": {}}, "f:type": {}}, ("f:data", "f:a"))
        {'f:type': {}}
    """
    name, *rest = path
    if name not in fields:
        return fields
    less = {key: inner for key, inner in fields.items() if key != name}
    inner = excluding(fields[name], rest) if rest else {}
    # A leaf above the place is the whole of an atomic value, of which no part can be given up.
    return {**less, name: inner} if inner.keys() - {SELF} or (rest and not fields[name]) else less


@lru_cache(maxsize=4096)
def read_key(name: str) -> Any:
    """Return the JSON value that follows `k:` or `v:` in a `fieldsV1`; the caller does not change it.

    Args:
        name: For example `k:{"name":"app"}`.

    Example:
        >>> read_key('k:{"name":"app"}'), read_key('v:"a"')
        ({'name': 'app'}, 'a')
    """
    return json.loads(name[2:])


def entry_key(key: Mapping[str, Any]) -> str:
    """Return the name that a `fieldsV1` has for an entry of a keyed list.

    Example:
        >>> entry_key({"protocol": "TCP", "containerPort": 80})
        'k:{"containerPort":80,"protocol":"TCP"}'
    """
    return f"k:{json.dumps(key, sort_keys=True, separators=(',', ':'))}"


def key_label(key: Any) -> str:
    """Return a name for an entry of a list, in the form that `entry_labels` uses.

    Example:
        >>> key_label({"containerPort": 80, "protocol": "TCP"}), key_label("a")
        ('containerPort=80,protocol=TCP', 'a')
    """
    return ",".join(f"{name}={value}" for name, value in key.items()) if isinstance(key, dict) else str(key)


def _leaves(fields: Manifest, path: str) -> Iterator[str]:
    """Yield the innermost fields."""
    for name, inner in fields.items():
        if name == SELF:
            continue
        place = (
            f"{path}.{name[2:]}".removeprefix(".") if name.startswith("f:") else f"{path}[{key_label(read_key(name))}]"
        )
        deeper = list(_leaves(inner, place))
        yield from deeper or [place]
