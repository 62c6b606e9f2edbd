"""What an apply cannot remove, because another field manager owns it, too: reported, with what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ocf.component.apply.rejected_fields import field_steps, places
from ocf.component.apply.server_defaults import contradicted_fields
from ocf.component.model.ownership import SECOND
from ocf.errors import ApiError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.field_errors import ErrorType
from ocf.objects.managed_fields import ManagedFields, ManagedFieldsEntry, fields_path, union
from ocf.objects.owned_paths import ABSENT, OwnedPath, dropped_fields, is_below, path_label, value_at
from ocf.objects.paths import get_field

if TYPE_CHECKING:
    from ocf.component.context import ReconcileContext

__all__ = ["leftover_problem", "record_kept"]

_REMEDY: Final = "if that is a former writer, name it with with_former_managers"
_REMOVE: Final = f"remove it by hand; or, {_REMEDY}"


def leftover_problem(error: ApiError, desired: Manifest, live: Manifest, manager: str) -> str:
    """Return what to do if a rejection is about fields of other field managers that the component does not declare.

    An apply removes only what no other manager owns. Of a container that the component drops, one without an image is
    left. And what a user has set in place of a declared field, such as another handler of a probe, stays beside it.

    Args:
        manager: Our field manager.

    Returns:
        Sentences that name the fields and the managers; empty for any other rejection.
    """
    managed = ManagedFields.of(live)
    owned = union(*(entry.fields for entry in managed.entries))
    entries = [
        place
        for cause in error.causes
        if cause.reason == ErrorType.REQUIRED
        for place in places(live, owned, field_steps(cause.field)[:-1])
        if place and place[-1].startswith("k:") and value_at(desired, place) is ABSENT
    ]
    found = (
        _others_problem(entries, managed, manager, "belongs in part to", _REMEDY),
        _others_problem(contradicted_fields(error, desired, live), managed, manager, "belongs to", _REMOVE),
    )
    return "; ".join(filter(None, found))


def _others_problem(
    candidates: Sequence[OwnedPath], managed: ManagedFields, manager: str, belongs: str, remedy: str
) -> str:
    """Return a sentence about those of some fields that other field managers own; empty if there are none."""
    fields, managers = _held(candidates, [entry for entry in managed.entries if entry.manager.name != manager])
    return f"{fields} is not declared, and {belongs} {managers}: {remedy}" if fields else ""


def _held(candidates: Iterable[OwnedPath], others: Sequence[ManagedFieldsEntry]) -> tuple[str, str]:
    """Return those of some fields that others own, and the names of these, as messages list them; empty for none."""
    fields: dict[str, None] = {}
    managers: dict[str, None] = {}
    for place in candidates:
        holders = [f'"{entry.manager.name}"' for entry in others if get_field(entry.fields, place) is not None]
        if holders:
            fields[path_label(place)] = None
            managers |= dict.fromkeys(holders)
    return ", ".join(fields), ", ".join(managers)


def record_kept(
    context: ReconcileContext,
    component: str,
    objects: tuple[Manifest, Manifest, Manifest],
    *,
    left: Collection[tuple[str, ...]],
) -> None:
    """Record an event if fields that an apply has dropped stay, because another manager owns them.

    Args:
        objects: The object before the apply, as it was applied, and after it.
        left: Fields that are left to other writers on purpose.
    """
    (before, desired, answer), owner = objects, context.owned_by
    ours = owner.field_manager(component), owner.field_manager(component, SECOND)
    dropped = dropped_fields(ManagedFields.of(before).owned_by(ours[0]) or {}, desired)
    others = [
        entry
        for entry in ManagedFields.of(answer).entries
        if not entry.manager.subresource and entry.manager.name not in ours
    ]
    places = [fields_path(path) for path in left]
    kept = (path for path in dropped if not is_below(path, places) and value_at(answer, path) is not ABSENT)
    fields, managers = _held(kept, others)
    if fields:
        key = ObjectKey.of(answer)
        why = f"no longer declared, because {managers} has set it, too: {_REMEDY}"
        note = f"{owner.named(key)} keeps {fields}, {why}"
        context.recorder.happened(owner.event(key, "FieldsKept", note, action="Apply"))
