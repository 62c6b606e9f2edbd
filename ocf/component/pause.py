"""Pause of an owner: while it is requested, nothing is written for the owner but the condition that says so.

An annotation of the owner requests it, or a field of its spec that the operator names. Everything here is a function of
values. A pause is per operator: each operator of an owner has its own annotation and its own condition, as it has its
own finalizers.

The value must be `true`, as for Crossplane and Strimzi. With any other value the owner is reconciled, which the
condition says: a user who wrote `yes` takes the owner for paused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ocf.component.model.ownership import Owner, is_ending
from ocf.component.owner_deletion import FinalizerNames
from ocf.component.owner_status import own_condition, owner_event
from ocf.component.status.status_changes import StatusChanges
from ocf.concepts import Event
from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.objects.conditions import ConditionStatus, find_condition
from ocf.objects.managed_fields import ManagedFields
from ocf.objects.manifest import PREFIX
from ocf.objects.paths import format_path, get_field, parse_path, without_field
from ocf.objects.timestamps import parse_time

__all__ = [
    "Pause",
    "find_pause",
    "invalid_pause",
    "pause_annotation",
    "pause_condition",
    "pause_path",
    "shown_pause",
    "without_pause",
]

_PAUSED: Final = "ReconciliationPaused"
_WAITING: Final = "DeletionPaused"
_RESUMED: Final = "ReconciliationResumed"
_INVALID: Final = "InvalidPauseValue"
# No pause is requested, which needs no explanation.
_OFF: Final = frozenset({"", "false"})
# An annotation may have 256 KiB.
_SHOWN: Final = 63


@dataclass(frozen=True, slots=True)
class Pause:
    """What pauses an owner.

    Args:
        source: The annotation or the field, with its value.
        remedy: How the pause is ended, as it follows "to".
        by: The field manager that has set it; empty if it is not known.
        since: When that manager wrote the owner last, which is when it was set or later; None if it is not known.
    """

    source: str
    remedy: str
    by: str = ""
    since: datetime | None = None

    def __str__(self) -> str:
        return f'{self.source}, set by "{self.by}"' if self.by else self.source


def pause_annotation(operator: str) -> str:
    """Return the annotation of an owner that pauses an operator for it.

    Example:
        >>> pause_annotation("shops")
        'shops.ocf.dev/paused'
    """
    return f"{operator}.{PREFIX}/paused"


def pause_condition(operator: str) -> str:
    """Return the type of the condition of an owner that is paused.

    Example:
        >>> pause_condition("shops")
        'shops/Paused'
    """
    return f"{operator}/Paused"


def pause_path(field: str) -> tuple[str, ...]:
    """Return the path of the field that pauses an owner; empty without one.

    Raises:
        ConfigError: If it is not a field of the spec.

    Example:
        >>> pause_path("spec.paused"), pause_path("")
        (('spec', 'paused'), ())
    """
    path = parse_path(field) if field else ()
    if path and (len(path) == 1 or path[0] != "spec"):
        raise ConfigError(f'pause_field must be a field of the spec, such as "spec.paused", got "{field}"')
    return path


def find_pause(owner: Manifest, operator: str, field: tuple[str, ...] = ()) -> Pause | None:
    """Return what pauses an operator for an owner; None if nothing does.

    Args:
        field: The field of the owner that pauses it, beside the annotation; empty for none.

    Example:
        >>> str(find_pause({"metadata": {"name": "corner", "annotations": {"shops.ocf.dev/paused": "true"}}}, "shops"))
        'the annotation shops.ocf.dev/paused: "true"'
        >>> find_pause({"metadata": {"name": "corner", "annotations": {"shops.ocf.dev/paused": "yes"}}}, "shops")
    """
    name = pause_annotation(operator)
    path = ("metadata", "annotations", name)
    if get_field(owner, path) == "true":
        by, since = _set_by(owner, path)
        return Pause(f'the annotation {name}: "true"', f"remove the annotation {name}", by, since)
    if field and get_field(owner, field) is True:
        by, since = _set_by(owner, field)
        return Pause(f"the field {format_path(field)}: true", f"set the field {format_path(field)} to false", by, since)
    return None


def without_pause(owner: Manifest, operator: str) -> Manifest:
    """Return an owner without the annotation that pauses it.

    Example:
        >>> without_pause({"metadata": {"name": "corner", "annotations": {"shops.ocf.dev/paused": "true"}}}, "shops")
        {'metadata': {'name': 'corner', 'annotations': {}}}
    """
    return without_field(owner, ("metadata", "annotations", pause_annotation(operator)))


def invalid_pause(owner: Manifest, operator: str, field: tuple[str, ...] = ()) -> str:
    """Return why a value that could be meant to pause an owner does not; empty if there is none.

    Example:
        >>> invalid_pause({"metadata": {"name": "corner", "annotations": {"shops.ocf.dev/paused": "yes"}}}, "shops")
        'the owner is not paused: the annotation shops.ocf.dev/paused must be "true" to pause it, got "yes"'
        >>> invalid_pause({"metadata": {"name": "corner", "annotations": {"shops.ocf.dev/paused": "false"}}}, "shops")
        ''
    """
    name = pause_annotation(operator)
    found = get_field(owner, ("metadata", "annotations", name))
    if found is not None and found not in _OFF | {"true"}:
        return f'the owner is not paused: the annotation {name} must be "true" to pause it, got "{str(found)[:_SHOWN]}"'
    found = get_field(owner, field) if field else None
    if found is not None and not isinstance(found, bool):
        seen = f"a value of type {type(found).__name__}"
        return f"the owner is not paused: the field {format_path(field)} must be true to pause it, got {seen}"
    return ""


def shown_pause(
    changes: StatusChanges,
    live: Manifest,
    owner: Owner,
    pause: Pause | None,
    *,
    invalid: str,
    finalizers: FinalizerNames,
    now: datetime,
) -> Iterator[Event]:
    """Stage the condition of a pause in the owner's status, or remove it; yield an event for each transition.

    Args:
        changes: The changes of the owner's status.
        live: The owner.
        pause: What pauses it; None if it is not paused.
        invalid: Why a value does not pause it, from `invalid_pause`.
        finalizers: The finalizers of the operator.
        now: The time of the reconcile.
    """
    name = pause_condition(owner.operator)
    stored = find_condition(changes.stored_conditions, name)
    status, reason = (None, None) if stored is None else (stored.get("status"), stored.get("reason"))
    if pause is None and status == "True":
        yield owner_event(owner, _RESUMED, "The operator reconciles the owner again", action="Resume", warning=False)
    if pause is None and not invalid:
        if stored is not None:
            changes.remove_condition(name)
        return
    waits = pause is not None and is_ending(live) and bool(finalizers.own_of(live) or finalizers.former_of(live))
    shown = _INVALID if pause is None else _WAITING if waits else _PAUSED
    message = invalid if pause is None else _message(pause, waits=waits)
    is_new = status != str(ConditionStatus.of(pause is not None))
    if is_new or reason != shown:
        yield owner_event(owner, shown, message, action="Pause", warning=shown != _PAUSED)
    since = pause.since if pause is not None and pause.since is not None else now
    condition = own_condition(
        stored,
        name,
        status=ConditionStatus.of(pause is not None),
        reason=shown,
        message=message,
        generation=owner.generation,
        now=min(since, now),
    )
    changes.set_condition(condition)


def _message(pause: Pause, *, waits: bool) -> str:
    if waits:
        return f"The deletion waits, because the owner is paused by {pause}; to continue it, {pause.remedy}."
    return f"Nothing is written for the owner, which is paused by {pause}; to resume it, {pause.remedy}."


def _set_by(owner: Manifest, path: Sequence[str]) -> tuple[str, datetime | None]:
    """Return the field manager that owns a field, and when it wrote the object last."""
    for entry in ManagedFields.of(owner).entries:
        if entry.owns(path):
            try:
                return entry.manager.name, parse_time(entry.time)
            except ValueError:
                return entry.manager.name, None
    return "", None
