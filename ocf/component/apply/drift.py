"""Drift: what an apply would change.

An apply is skipped if and only if it would change nothing. The live object has the information: its `managedFields`
entry for our field manager lists the fields that we applied last, without those that another manager has changed since.
So the desired object is compared with that entry and with the live values. `fieldsV1` describes its own structure
(`ocf.objects.managed_fields`), so no schema is needed.

Values of built-in kinds are compared as the server stores them: with what its admission plugins add
(`ocf.schema.admission`), with its defaults, and quantities as quantities (`ocf.schema.stored_values`). Values of custom
kinds are compared as JSON. A value that the server is known to store differently from how it is sent
(`ocf.cluster.ApplyCache`) equals the stored one.
"""

from __future__ import annotations

import marshal
from hashlib import blake2b
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from ocf.component.model.ownership import uid_of, version_of
from ocf.component.status.results import Drift
from ocf.concepts import ApplyOperation
from ocf.concepts.recorder import Why
from ocf.objects import Manifest
from ocf.objects.json_equality import equal_json
from ocf.objects.managed_fields import ManagedFields, key_label, read_key
from ocf.objects.manifest import split_api_version
from ocf.objects.paths import FieldPath, format_path
from ocf.schema.admission import admitted
from ocf.schema.builtin import ANYTHING, ListType, MapType, StructType, Type, builtin_resource, custom_object
from ocf.schema.stored_values import is_dropped, is_empty_part, is_stored_as, type_at

if TYPE_CHECKING:
    from ocf.cluster import ApplyCache
    from ocf.cluster.apply_cache import Rewrites
    from ocf.objects import ObjectKey

__all__ = ["Comparison", "applied_operation", "digest", "find_drift", "is_stored_as_sent"]

# Identifying fields, which the API server never lists in managedFields.
_IDENTITY_FIELDS: Final = frozenset({"apiVersion", "kind"})
_IDENTITY_METADATA: Final = frozenset({"name", "namespace"})
_ABSENT: Final = object()
_SET_BY_SERVER: Final = frozenset({"generation", "managedFields", "resourceVersion"})
_NO_CONTENT: Final = frozenset({"apiVersion", "kind", "metadata", "status"})


def find_drift(
    desired: Manifest,
    live: Manifest,
    *,
    manager: str,
    rewrites: Rewrites,
    kind: Type = ANYTHING,
) -> list[Drift]:
    """Find what an apply would change.

    Args:
        desired: The object to apply.
        live: The live object.
        manager: Our field manager.
        rewrites: Values that the server is known to store differently from how they are sent.
        kind: The type of the object, for its defaults and quantities; by default nothing is known of it.

    Returns:
        One difference per field; empty if the apply can be skipped.
    """
    fields = ManagedFields.of(live).owned_by(manager)
    declared = _declared(admitted(desired, live))
    if fields is None:
        # The server keeps no entry for a manager that owns nothing.
        return [Drift("", Why.NOT_OWNED)] if declared else []
    comparison = _Comparison(rewrites, kind)
    comparison.compare(declared, live, fields, ())
    return comparison.found


def is_stored_as_sent(sent: Any, stored: Any, kind: Type) -> bool:
    """Return whether the answer to an apply has every value as it was sent.

    It costs a fraction of `find_drift`, because it does not look at the ownership of fields: the API server has just
    recorded that of an apply. So only what was sent and the answer to it can be compared.

    Args:
        sent: The applied object, or a part of it.
        stored: The same of the answer.
        kind: Its type, `custom_object` for an object of a custom kind. Of a part without a type it is not known what
            the server may add without a change of the value.

    Returns:
        True if every value is stored as it was sent. False if one is not, or if this function cannot tell: only
        `find_drift` knows, for example, that the quantities `0.5` and `500m` are equal.

    Example:
        >>> from ocf.schema.builtin import struct
        >>> container = struct("core.v1.Container")
        >>> is_stored_as_sent({"image": "web"}, {"image": "web", "imagePullPolicy": "Always"}, container)
        True
        >>> is_stored_as_sent({"image": "web"}, {"image": "mirror/web"}, container)
        False
    """
    if isinstance(kind, StructType | MapType):
        if kind.atomic or not (isinstance(sent, dict) and isinstance(stored, dict)):
            return False
        for name, value in sent.items():
            # The server checks types, so it does not store 1 for True.
            found = stored.get(name, _ABSENT)
            if value != found and not is_stored_as_sent(value, found, type_at(kind, (name,))):
                return False
        return True
    if isinstance(kind, ListType) and kind.keys and isinstance(sent, list) and isinstance(stored, list):
        return len(sent) == len(stored) and all(map(is_stored_as_sent, sent, stored, repeat(kind.item)))
    return False


def _declared(desired: Manifest) -> Manifest:
    metadata = {key: value for key, value in desired["metadata"].items() if key not in _IDENTITY_METADATA}
    declared = {key: value for key, value in desired.items() if key not in _IDENTITY_FIELDS and key != "metadata"}
    return declared | {"metadata": metadata} if metadata else declared


class _Comparison:
    """Compares the desired object, the live object and the owned fields, level by level."""

    def __init__(self, rewrites: Rewrites, kind: Type) -> None:
        self._rewrites = rewrites
        self._kind = kind
        self.found: list[Drift] = []

    def compare(self, desired: Any, live: Any, fields: Manifest, path: FieldPath) -> None:
        structure = _structure(fields)
        if structure == "f:" and isinstance(desired, dict):
            self._map(desired, live, fields, path)
        elif structure == "k:" and isinstance(desired, list):
            self._keyed_list(desired, live, fields, path)
        elif structure == "v:" and isinstance(desired, list):
            self._set(desired, live, fields, path)
        elif not equal_json(desired, live):
            # Only of a value that differs, the type matters.
            kind = type_at(self._kind, path)
            if not (is_stored_as(desired, live, kind) or is_empty_part(desired, live, kind)):
                self._report(path, Why.CHANGED, desired, live)

    def _map(self, desired: Manifest, live: Any, fields: Manifest, path: FieldPath) -> None:
        known = live if isinstance(live, dict) else {}
        undeclared = len(fields) - len(desired) - ("." in fields)
        for key, value in desired.items():
            owned, stored = fields.get("f:" + key), known.get(key, _ABSENT)
            if owned is None:
                undeclared += 1
            if owned is not None and stored is not _ABSENT:
                if owned or not equal_json(value, stored):
                    self.compare(value, stored, owned, (*path, key))
            elif stored is not _ABSENT or not is_dropped(value, type_at(self._kind, path), key):
                self._report((*path, key), Why.NOT_OWNED, value, None if stored is _ABSENT else stored)
        if not undeclared:
            return
        for field in fields:
            if field[2:] not in desired and field != ".":
                self._report((*path, field[2:]), Why.NO_LONGER_DECLARED)

    def _keyed_list(self, desired: list[Any], live: Any, fields: Manifest, path: FieldPath) -> None:
        unmatched = {field: read_key(field) for field in fields if field != "."}
        positions: list[int] = []
        for position, item in enumerate(desired):
            field = _matching(item, unmatched)
            found_at = _index_of(unmatched[field], live) if field is not None else None
            if field is None or found_at is None:
                self._report((*path, position), Why.NOT_OWNED, item)
                continue
            del unmatched[field]
            positions.append(found_at)
            self.compare(item, live[found_at], fields[field], (*path, position))
        for key in unmatched.values():
            self._report((*path, key_label(key)), Why.NO_LONGER_DECLARED)
        if positions != sorted(positions):
            self._report(path, Why.REORDERED, list(range(len(positions))), positions)

    def _set(self, desired: list[Any], live: Any, fields: Manifest, path: FieldPath) -> None:
        owned = [read_key(field) for field in fields if field != "."]
        for value in desired:
            if value not in owned or value not in (live or []):
                self._report((*path, str(value)), Why.NOT_OWNED, value)
        for value in owned:
            if value not in desired:
                self._report((*path, str(value)), Why.NO_LONGER_DECLARED)

    def _report(self, path: FieldPath, why: Why, sent: Any = None, stored: Any = None) -> None:
        """Add a difference, unless it is a known rewrite of the server."""
        name = format_path(path)
        if self._rewrites.get(name) != (sent, stored):
            self.found.append(Drift(name, why, sent, stored))


def _structure(fields: Manifest) -> str:
    """Return the kind of the keys in a part of `fieldsV1`: `f:`, `k:` or `v:`; empty at a leaf."""
    for field in fields:
        if field != ".":
            return field[:2]
    return ""


def _matching(item: Any, candidates: dict[str, Any]) -> str | None:
    """Find the owned entry of a desired item: its keys are equal, or omitted because the server defaults them."""
    if not isinstance(item, dict):
        return None
    found, most = None, -1
    for field, key in candidates.items():
        # Prefer the entry with which the item shares the most keys.
        shared = [name for name in key if name in item]
        if len(shared) > most and all(item[name] == key[name] for name in shared):
            found, most = field, len(shared)
    return found


def _index_of(key: Manifest, live: Any) -> int | None:
    for found_at, item in enumerate(live or []):
        if isinstance(item, dict) and key.items() <= item.items():
            return found_at
    return None


def applied_operation(before: Manifest | None, after: Manifest) -> ApplyOperation:
    """Return what an apply did; changes of the status and of server-set metadata do not count."""
    if before is None:
        return ApplyOperation.CREATED
    return ApplyOperation.NONE if _content(before) == _content(after) else ApplyOperation.UPDATED


def _content(manifest: Manifest) -> tuple[Any, Any]:
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in _SET_BY_SERVER}
    return metadata, {key: value for key, value in manifest.items() if key not in _NO_CONTENT}


class Comparison:
    """Compares desired states of one object with its live state, by what one field manager owns."""

    def __init__(self, cache: ApplyCache, key: ObjectKey, manager: str) -> None:
        self._cache = cache
        self._key = key
        self._manager = manager

    def is_in_sync(self, live: Manifest, intent: bytes) -> bool:
        """Return whether an object was in sync with a desired state in this version."""
        return bool(intent) and self._cache.is_in_sync(uid_of(live), self._manager, version_of(live), intent)

    def mark_in_sync(self, live: Manifest, intent: bytes) -> None:
        """Remember that an object is in sync with a desired state in this version."""
        uid, version = uid_of(live), version_of(live)
        if intent and uid and version:
            self._cache.mark_in_sync(uid, self._manager, version, intent)

    def drift(self, desired: Manifest, live: Manifest) -> list[Drift]:
        """Return what an apply would change, by what is known of how the API server stores values."""
        rewrites = self._cache.rewrites(uid_of(live), self._manager)
        return find_drift(desired, live, manager=self._manager, rewrites=rewrites, kind=self._kind)

    def remember(self, desired: Manifest, answer: Manifest, defaults: Rewrites, *, repeated: bool) -> None:
        """Remember the values that the server stored differently from how they were sent.

        Args:
            defaults: Defaults of fields that are cleared.
            repeated: Whether the same was applied before.
        """
        kind = self._kind
        rewrites: Rewrites = {}
        # If the same was applied before, the ownership of fields may be what differs, too.
        if repeated or not is_stored_as_sent(desired, answer, custom_object() if kind is ANYTHING else kind):
            found = find_drift(desired, answer, manager=self._manager, rewrites={}, kind=kind)
            rewrites = {drift.path: (drift.sent, drift.stored) for drift in found}
        self._cache.remember(uid_of(answer), self._manager, {**rewrites, **defaults})

    @property
    def _kind(self) -> Type:
        builtin = builtin_resource(*split_api_version(self._key.api_version), self._key.kind)
        return ANYTHING if builtin is None else builtin.type


def digest(*content: Any) -> bytes:
    """Return a digest of what an apply depends on beside the live object, such as the desired object.

    Empty if a resource of the user's own renders values that are not JSON.
    """
    try:
        # Version 2 has no object references, so equal manifests with equal key order give equal bytes.
        return blake2b(marshal.dumps(content, 2), digest_size=16).digest()
    except ValueError:
        return b""
