"""Values that a suspension replaces, saved in an annotation of the same object by the write that replaces them.

A suspension sets fields that the running form does not declare, usually the replica count. Their values must survive,
set by an autoscaler or by a user, so the apply that suspends the object also saves them: no crash can come in between.
A saved value is kept while we own the field. After another writer has set the field during the suspension, the next
apply saves the newer value.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any, Final, NoReturn

from ocf.objects import PREFIX, Manifest, get_field, with_field
from ocf.objects.managed_fields import ManagedFields, union
from ocf.objects.owned_paths import ABSENT, OwnedPath, is_below, path_label, undeclared_fields, value_at

__all__ = ["BEFORE_SUSPENSION", "saved_values", "with_saved_values"]

BEFORE_SUSPENSION: Final = f"{PREFIX}/before-suspension"
"""Annotation that holds, as JSON by field path, the values that a suspension replaced."""


def saved_values(live: Manifest | None) -> dict[str, Any]:
    """Read the annotation; an invalid one counts as absent.

    Args:
        live: The live object; None if it does not exist.
    """
    text = get_field(live, ("metadata", "annotations", BEFORE_SUSPENSION))
    try:
        values = json.loads(text, parse_constant=_reject) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def with_saved_values(
    suspended: Manifest,
    running: Manifest,
    live: Manifest | None,
    manager: str,
    ignored: Collection[tuple[OwnedPath, Any]] = (),
) -> Manifest:
    """Add to a suspended object the live values of the fields that only its suspension sets.

    Args:
        suspended: The desired object, suspended; it is not changed.
        running: The desired object as it is applied while it is not suspended.
        live: The live object; None if it does not exist.
        manager: Our field manager.
        ignored: Ignored fields that the suspension sets, each with its value in case that we own it and no value is
            saved. They are always listed, null for a field that was not set.

    Returns:
        The object with the annotation; the same object if there is nothing to save.
    """
    saved, managed = saved_values(live), ManagedFields.of(live)
    own = managed.owned_by(manager) or {}
    values = {path_label(path): _value(live, own, saved, path, fallback) for path, fallback in ignored}
    for path in _set_by_suspension(suspended, running, managed, [path for path, _ in ignored]):
        value = _value(live, own, saved, path)
        if value is not None:
            values[path_label(path)] = value
    if not values:
        return suspended
    annotation = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return with_field(suspended, ("metadata", "annotations", BEFORE_SUSPENSION), annotation)


def _set_by_suspension(
    suspended: Manifest, running: Manifest, managed: ManagedFields, ignored: Collection[OwnedPath]
) -> Iterator[OwnedPath]:
    fields = union(*(entry.fields for entry in managed.entries))
    for path in undeclared_fields(suspended, running, fields or None):
        if not is_below(path, ignored):
            yield path


def _value(live: Manifest | None, own: Manifest, saved: dict[str, Any], path: OwnedPath, fallback: Any = None) -> Any:
    """Return the value to save: while we own the field, its live value is the one that the suspension has set."""
    if get_field(own, path) is not None:
        return saved.get(path_label(path), fallback)
    value = value_at(live, path)
    return None if value is ABSENT else value


def _reject(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
