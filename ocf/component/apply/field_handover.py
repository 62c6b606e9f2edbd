"""Handover of ignored fields: the replica count that an autoscaler sets is never set by us.

A real API server resets a field to its default when its only manager drops it (a Deployment's replicas to 1). So the
value is handed over first: a second field manager of ours, `<manager>/left`, applies the live value; then our own
apply drops the field, and the second manager keeps it until the autoscaler writes it.

A suspension forces the field (the replicas to 0), and saves the live value in an annotation of the same object in the
same write, so no crash can lose it. Resuming hands the saved value over and drops both. A value that was forced before
the field was ignored is not saved; then the rendered object has the value of the running form.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ocf.objects import PREFIX, Manifest, format_path, get_field, with_field
from ocf.objects.managed_fields import ManagedFields

__all__ = [
    "BEFORE_SUSPENSION",
    "DesiredStates",
    "Handover",
    "has_no_saved_value",
    "owned_ignored_fields",
    "plan_handover",
    "with_saved_values",
]

BEFORE_SUSPENSION: Final = f"{PREFIX}/before-suspension"
"""Annotation that holds the live values of ignored fields during a suspension, as JSON by field path."""

_ABSENT: Final = object()
_LOCKED_METADATA: Final = ("name", "namespace", "resourceVersion")


class DesiredStates(NamedTuple):
    """The desired object including its ignored fields; empty if it is not known.

    Attributes:
        running: The running form.
        suspended: The suspended form.
    """

    running: Manifest
    suspended: Manifest

    def value(self, live: Manifest, path: Sequence[str]) -> Any:
        """Return the live value of a field; if a suspension forced it, the value of the running form."""
        value = get_field(live, path)
        return get_field(self.running, path) if value == get_field(self.suspended, path, _ABSENT) else value


_UNKNOWN: Final = DesiredStates({}, {})


@dataclass(frozen=True, slots=True)
class Handover:
    """What the second field manager applies before our apply drops the fields.

    Args:
        manifest: The fields, with the `resourceVersion` that was read, so that no newer value is overwritten.
        force: Whether the apply is forced, because it replaces a value of our own at the end of a suspension.
        paths: The fields as text.
    """

    manifest: Manifest
    force: bool
    paths: tuple[str, ...]


def owned_ignored_fields(
    live: Manifest, manager: str, ignore_fields: Collection[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """Return the ignored fields that we own.

    Args:
        live: The live object.
        manager: Our field manager.
        ignore_fields: The ignored fields.
    """
    managed = ManagedFields.of(live)
    return [path for path in ignore_fields if managed.owns(manager, path)]


def has_no_saved_value(live: Manifest | None, manager: str, ignore_fields: Collection[tuple[str, ...]]) -> bool:
    """Return whether we own an ignored field without a saved value.

    Args:
        live: The live object; None if it does not exist.
        manager: Our field manager.
        ignore_fields: The ignored fields.
    """
    if live is None:
        return False
    saved, managed = _saved_values(live), ManagedFields.of(live)
    return any(format_path(path) not in saved and managed.owns(manager, path) for path in ignore_fields)


def plan_handover(
    live: Manifest, manager: str, ignore_fields: Collection[tuple[str, ...]], states: DesiredStates = _UNKNOWN
) -> Handover | None:
    """Plan the handover of the ignored fields that we still own.

    Args:
        live: The live object.
        manager: Our field manager.
        ignore_fields: The ignored fields.
        states: The desired object, for fields without a saved value.

    Returns:
        What is applied first; None if we own no ignored field, or none with a value to hand over.
    """
    owned = owned_ignored_fields(live, manager, ignore_fields)
    if not owned:
        return None
    saved = _saved_values(live)
    metadata = {key: live["metadata"][key] for key in _LOCKED_METADATA if key in live["metadata"]}
    manifest: Manifest = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": metadata}
    paths: list[str] = []
    force = bool(saved)
    for path in owned:
        name = format_path(path)
        value = saved[name] if name in saved else states.value(live, path)
        if value is not None:
            manifest = with_field(manifest, path, value)
            paths.append(name)
            force = force or value != get_field(live, path)
    return Handover(manifest, force=force, paths=tuple(paths)) if paths else None


def with_saved_values(
    desired: Manifest,
    live: Manifest | None,
    manager: str,
    ignore_fields: Collection[tuple[str, ...]],
    states: DesiredStates = _UNKNOWN,
) -> Manifest:
    """Add to a suspended object the live values of the ignored fields that its suspension sets.

    A value that was saved earlier is kept as long as we own the field; after another writer has set the field, its new
    value is saved.

    Args:
        desired: The desired object, suspended; it is not changed.
        live: The live object; None if it does not exist.
        manager: Our field manager.
        ignore_fields: The ignored fields.
        states: The desired object, for fields without a saved value.

    Returns:
        The object with the annotation; the same object if the suspension sets no ignored field.
    """
    taken = [path for path in ignore_fields if get_field(desired, path, _ABSENT) is not _ABSENT]
    if not taken:
        return desired
    values = {format_path(path): _value_to_save(live, manager, path, states) for path in taken}
    annotation = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return with_field(desired, ("metadata", "annotations", BEFORE_SUSPENSION), annotation)


def _value_to_save(live: Manifest | None, manager: str, path: Sequence[str], states: DesiredStates) -> Any:
    if live is None:
        return None
    if not ManagedFields.of(live).owns(manager, path):
        return get_field(live, path)
    name = format_path(path)
    saved = _saved_values(live)
    return saved[name] if name in saved else states.value(live, path)


def _saved_values(live: Manifest) -> dict[str, Any]:
    """Read the annotation; an invalid one counts as absent."""
    text = get_field(live, ("metadata", "annotations", BEFORE_SUSPENSION))
    try:
        values = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}
