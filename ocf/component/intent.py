"""An intent: fields of the owner's status that are stored before something is done because of them.

Everything here is a function of values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from ocf.component.model.ownership import status_of
from ocf.component.status.status_changes import StatusChanges, fields_of
from ocf.errors import ConflictError, ReconcileError
from ocf.objects.paths import format_path

if TYPE_CHECKING:
    from ocf.component.model.ownership import Owner
    from ocf.component.status_write import WrittenStatus
    from ocf.errors import ApiError
    from ocf.objects import Manifest

__all__ = ["merged_intent", "require_same", "require_stored"]

_ABSENT: Final = object()
# How many fields a message names.
_NAMED: Final = 3


def merged_intent(changes: StatusChanges, live: Manifest) -> Manifest:
    """Merge an intent into a newer status, unless it was computed from fields that another writer has changed since.

    Raises:
        ConflictError: If it was. What is stored already, by a write whose response was lost, is not a conflict.
    """
    status = changes.rebased(live)
    before, found = fields_of(changes.stored), fields_of(live)
    if found not in (before, fields_of(status)):
        changed = [name for name in sorted({*before, *found}) if before.get(name) != found.get(name)]
        raise ConflictError(
            f"another writer has changed {_text([('status', name) for name in changed])} since the owner was read: "
            "the fields that were to be stored before the next step may be computed from old ones, and are not stored; "
            "the next reconcile reads the owner again",
            code=409,
            reason="Conflict",
        )
    return status


def require_stored(
    owner: Owner, changes: StatusChanges, written: WrittenStatus | None, refusal: ApiError | None
) -> None:
    """Raise an error if fields of the status are not stored as they were set.

    Raises:
        ReconcileError: If the owner is gone, or the API server has dropped or changed fields, or they wait.
        ApiError: If the API server has refused a part of the status.
    """
    if refusal is not None:
        raise refusal
    if written is None:
        raise ReconcileError(owner.operator, f"{owner.key} was deleted before its status was stored")
    lost = [*_lost(fields_of(changes.stored), fields_of(changes.status), status_of(written.stored), ("status",))]
    if not lost:
        return
    fields = _text(lost)
    if written.retry_after is not None:
        problem = f"{fields} of {owner.key} cannot be stored now, because another writer reverts it again and again"
        remedy = "let only one of them set it"
    else:
        problem = f"the API server does not store {fields} of {owner.key} as it was set"
        remedy = "add it to the schema of the status, in the CustomResourceDefinition"
    raise ReconcileError(owner.operator, f"{problem}, and the next step needs it: {remedy}")


def require_same(owner: Owner, field: str, wanted: Any, stored: Manifest) -> None:
    """Raise an error if a field of the stored status is not exactly what was set, as a later comparison expects it.

    Raises:
        ReconcileError: If the API server has dropped an empty value, or added a default.
    """
    if wanted is not None and not (field in stored and stored[field] == wanted):
        raise ReconcileError(
            owner.operator,
            f"the API server does not store {format_path(('status', field))} of {owner.key} exactly as it was set, so "
            "each reconcile would handle it again: add the field to the schema of the status, in the "
            "CustomResourceDefinition, without defaults in it",
        )


def _lost(before: Any, wanted: Any, stored: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the fields that are not stored as they are wanted.

    What the API server adds is stored beside them. An empty value that it leaves out is not lost, nor is one that it
    puts in the place of a removed value, as the default of the schema.
    """
    if isinstance(wanted, dict) and isinstance(stored, dict):
        known = before if isinstance(before, dict) else {}
        for key, value in wanted.items():
            if key in stored or value:
                yield from _lost(known.get(key), value, stored.get(key, _ABSENT), (*path, key))
        yield from ((*path, key) for key in (known.keys() - wanted.keys()) & stored.keys() if stored[key])
    elif wanted != stored:
        yield path


def _text(paths: list[tuple[str, ...]]) -> str:
    rest = [f"{len(paths) - _NAMED} more fields"] if len(paths) > _NAMED else []
    return " and ".join([*map(format_path, paths[:_NAMED]), *rest])
