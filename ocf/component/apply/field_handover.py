"""Fields left to others: the count that an autoscaler sets is never set by us.

Not sending a field is easy; the hard part is letting go of one without a jump. On a real API server a field that only
we own goes back to its default when we drop it (a Deployment's count to 1). So the value is handed over first: a
second field manager of ours, `<manager>/left`, applies the live value, and then our own apply drops the field, which
the second manager keeps alive until the autoscaler writes it.

Suspending forces the field (the count to 0) and remembers the live value in an annotation of the same object, in the
same write, so that no crash can lose it. Resuming hands that value over and drops both. A value that was forced before
the field was left to anybody is remembered nowhere; then the desired object says what it is awake.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ocf.objects import PREFIX, Manifest, format_path, get_field, with_field
from ocf.objects.managed_fields import ManagedFields

__all__ = ["BEFORE_SUSPENSION", "DesiredStates", "Handover", "has_no_saved_value", "plan_handover", "with_saved_values"]

BEFORE_SUSPENSION: Final = f"{PREFIX}/before-suspension"
"""The annotation that holds, while suspended, the live values of the fields left to others, as JSON by field path."""

_ABSENT: Final = object()
_LOCKED_METADATA: Final = ("name", "namespace", "resourceVersion")


class DesiredStates(NamedTuple):
    """The desired object with all its fields, those left to others included; empty where it is not known.

    Attributes:
        awake: As it is most of the time.
        asleep: Suspended.
    """

    running: Manifest
    suspended: Manifest

    def value(self, live: Manifest, path: Sequence[str]) -> Any:
        """Return the value of a field of ours; where a suspension forced it, the one it has awake."""
        value = get_field(live, path)
        return get_field(self.running, path) if value == get_field(self.suspended, path, _ABSENT) else value


_UNKNOWN: Final = DesiredStates({}, {})


@dataclass(frozen=True, slots=True)
class Handover:
    """What the second field manager applies before our apply drops the fields.

    Args:
        manifest: The fields, with the `resourceVersion` that was read, so that no newer value is ever overwritten.
        force: Whether a value of our own is replaced, which is so when a suspension ends.
        paths: The fields, for people.
    """

    manifest: Manifest
    force: bool
    paths: tuple[str, ...]


def has_no_saved_value(live: Manifest | None, manager: str, ignore_fields: Collection[tuple[str, ...]]) -> bool:
    """Tell whether we own a field that is left to others, and the object does not say what it was before.

    Args:
        live: The live object; None while there is none.
        manager: Our field manager.
        ignore_fields: The fields left to others.
    """
    if live is None:
        return False
    remembered, managed = _remembered(live), ManagedFields.of(live)
    return any(format_path(path) not in remembered and managed.owns(manager, path) for path in ignore_fields)


def plan_handover(
    live: Manifest, manager: str, ignore_fields: Collection[tuple[str, ...]], forms: DesiredStates = _UNKNOWN
) -> Handover | None:
    """Plan how to let go of the fields that we still own.

    Args:
        live: The live object.
        manager: Our field manager.
        ignore_fields: The fields left to others.
        forms: The desired object, for what is unremembered.

    Returns:
        What has to be applied first; None where nothing of ours is left, or where the default is all that can be
        given back.
    """
    managed = ManagedFields.of(live)
    ours = [path for path in ignore_fields if managed.owns(manager, path)]
    if not ours:
        return None
    remembered = _remembered(live)
    metadata = {key: live["metadata"][key] for key in _LOCKED_METADATA if key in live["metadata"]}
    manifest: Manifest = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": metadata}
    paths: list[str] = []
    force = bool(remembered)
    for path in ours:
        name = format_path(path)
        value = remembered[name] if name in remembered else forms.value(live, path)
        if value is not None:
            manifest = with_field(manifest, path, value)
            paths.append(name)
            force = force or value != get_field(live, path)
    return Handover(manifest, force=force, paths=tuple(paths)) if paths else None


def with_saved_values(
    wanted: Manifest,
    live: Manifest | None,
    manager: str,
    ignore_fields: Collection[tuple[str, ...]],
    forms: DesiredStates = _UNKNOWN,
) -> Manifest:
    """Add to a suspended object the live values of the fields that its suspension takes from others.

    What was remembered before stays as long as the field is ours; once somebody else has set it, its new value counts.

    Args:
        wanted: The desired object, suspended; left as it is.
        live: The live object; None while there is none, and so nothing to remember.
        manager: Our field manager.
        ignore_fields: The fields left to others.
        forms: The desired object, for what is unremembered.

    Returns:
        The object with the annotation; the same object where the suspension takes nothing.
    """
    taken = [path for path in ignore_fields if get_field(wanted, path, _ABSENT) is not _ABSENT]
    if not taken:
        return wanted
    values = {format_path(path): _to_remember(live, manager, path, forms) for path in taken}
    annotation = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return with_field(wanted, ("metadata", "annotations", BEFORE_SUSPENSION), annotation)


def _to_remember(live: Manifest | None, manager: str, path: Sequence[str], forms: DesiredStates) -> Any:
    if live is None:
        return None
    if not ManagedFields.of(live).owns(manager, path):
        return get_field(live, path)
    name = format_path(path)
    remembered = _remembered(live)
    return remembered[name] if name in remembered else forms.value(live, path)


def _remembered(live: Manifest) -> dict[str, Any]:
    """Read the annotation; one that somebody has spoilt counts as absent."""
    text = get_field(live, ("metadata", "annotations", BEFORE_SUSPENSION))
    try:
        values = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}
