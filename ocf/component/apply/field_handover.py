"""Handover of fields that we stop applying, and whose values must stay.

A real API server resets a field to its default when its only manager drops it (a Deployment's replicas to 1). So the
value is handed over first: a second field manager of ours, `<manager>/left`, applies it; then our own apply drops the
field, and the second manager keeps it until another writer sets it.

There are two such kinds of fields. An ignored field is never set by us, and handed over with its live value. A field
that a suspension has set, and that the running form does not declare, is handed over with the value that was saved
(`ocf.component.apply.saved_fields`). An ignored field that was forced before it was ignored has no saved value; then
the rendered object has the value of the running form.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ocf.objects import Manifest, get_field
from ocf.objects.managed_fields import ManagedFields
from ocf.objects.owned_paths import (
    ABSENT,
    OwnedPath,
    dropped_fields,
    is_below,
    owned_fields,
    path_label,
    value_at,
    with_value_at,
)

__all__ = ["DesiredStates", "Handover", "lacks_saved_value", "plan_handover"]

# With the uid, an object that was just deleted is not created again with these fields alone.
_LOCKED_METADATA: Final = ("name", "namespace", "uid", "resourceVersion")


class DesiredStates(NamedTuple):
    """The desired object including its ignored fields; empty if it is not known.

    Attributes:
        running: The running form.
        suspended: The suspended form.
    """

    running: Manifest
    suspended: Manifest

    def value(self, live: Manifest | None, path: OwnedPath) -> Any:
        """Return the live value of a field; if a suspension forced it, the value of the running form.

        Args:
            live: The live object.
            path: The field.

        Returns:
            The value; None if it is not set.
        """
        value = value_at(live, path)
        value = value_at(self.running, path) if value == value_at(self.suspended, path) else value
        return None if value is ABSENT else value


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


def lacks_saved_value(own: Manifest, saved: Mapping[str, Any], ignored: Collection[OwnedPath]) -> bool:
    """Return whether we own an ignored field without a saved value.

    Args:
        own: The `fieldsV1` of our last apply.
        saved: The saved values by field.
        ignored: The ignored fields.
    """
    return any(path_label(path) not in saved and get_field(own, path) is not None for path in ignored)


def plan_handover(
    live: Manifest,
    desired: Manifest,
    *,
    manager: str,
    second: str,
    ignored: Collection[OwnedPath] = (),
    saved: Mapping[str, Any],
    states: DesiredStates,
) -> Handover | None:
    """Plan the handover of the fields that our next apply drops and whose values must stay.

    Args:
        live: The live object.
        desired: The object that we apply next.
        manager: Our field manager.
        second: Our second field manager. What it owns already is applied again, so that it keeps that.
        ignored: The ignored fields.
        saved: The saved values by field.
        states: The desired object, for ignored fields without a saved value.

    Returns:
        What is applied first; None if there is no such field with a value.
    """
    managed = ManagedFields.of(live)
    own = managed.owned_by(manager)
    if own is None:
        return None
    values = {
        path: saved.get(path_label(path), states.value(live, path))
        for path in ignored
        if get_field(own, path) is not None
    }
    for path in dropped_fields(own, desired) if saved else ():
        if path_label(path) in saved and not is_below(path, ignored):
            values[path] = saved[path_label(path)]
    values = {path: value for path, value in values.items() if value is not None}
    if not values:
        return None
    metadata = {key: live["metadata"][key] for key in _LOCKED_METADATA if key in live["metadata"]}
    manifest: Manifest = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": metadata}
    kept = ((path, value_at(live, path)) for path in owned_fields(managed.owned_by(second) or {}))
    for path, value in (*kept, *values.items()):
        if value is not ABSENT:
            manifest = with_value_at(manifest, path, value)
    force = bool(saved) or any(value != value_at(live, path) for path, value in values.items())
    return Handover(manifest, force=force, paths=tuple(map(path_label, values)))
