"""Conditions that an operator sets by itself, beside those of its components."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from ocf.errors import ConfigError
from ocf.objects.conditions import (
    ConditionStatus,
    condition_type_problem,
    reason_problem,
    set_condition,
    shortened_message,
)

if TYPE_CHECKING:
    from ocf.objects import Manifest

__all__ = ["own_condition"]

_STATUSES: Final = frozenset(ConditionStatus)


def own_condition(
    stored: Manifest | None, name: str, *, status: str, reason: str, message: str, generation: int, now: datetime
) -> Manifest:
    """Return a condition as it is to be stored; its transition time changes only with its status.

    Args:
        stored: The stored condition of the type; None if there is none.
        name: Type of the condition.
        status: `True`, `False` or `Unknown`.
        reason: Machine-readable reason.
        message: Human-readable message; cut at the API's limit of 32 768 characters.
        generation: `metadata.generation` of the owner.
        now: Time of the reconcile.

    Raises:
        ConfigError: If the API server would reject the type, the status or the reason.
    """
    for part, value in (("type", name), ("status", status), ("reason", reason), ("message", message)):
        if not isinstance(value, str):
            raise ConfigError(
                f'condition "{name}": the {part} must be a text, got an object of type {type(value).__name__}'
            )
    invalid = f"the status must be True, False or Unknown, got {status!r}" if status not in _STATUSES else ""
    problems = list(filter(None, (condition_type_problem(name), invalid, reason_problem(reason))))
    if problems:
        raise ConfigError(f'condition "{name}": {"; ".join(problems)}')
    (condition,) = set_condition(
        [stored] if stored is not None else [],
        condition_type=name,
        status=ConditionStatus(status),
        reason=reason,
        message=shortened_message(message),
        observed_generation=generation,
        now=now,
    )
    return condition
