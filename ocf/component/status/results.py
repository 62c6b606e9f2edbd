"""What a pass did: per resource, and for the component."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ocf.component.status.conditions import Condition
    from ocf.concepts import StatusReport, Why

__all__ = ["Action", "ResourceOutcome", "Result"]


class Action(StrEnum):
    """What a pass did to an object."""

    CREATED = "Created"
    UPDATED = "Updated"
    UNCHANGED = "Unchanged"
    DELETED = "Deleted"
    ABSENT = "Absent"
    ORPHANED = "Orphaned"
    KEPT = "Kept"
    HELD_BACK = "HeldBack"
    BLOCKED = "Blocked"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceOutcome:
    """What a pass did to one resource.

    Args:
        resource: Identity of the resource.
        action: What was done to its object.
        report: What it reported; None for a static resource.
        writes: How many write requests were sent for it.
        reasons: Why they were sent, one text per field: `spec.maxReplicas: changed`; empty when nothing was to be sent.
        why: The same in one word, also of a write that was left out; None where nothing was compared.
        retry_after: When to look again at an object whose write is held back; None otherwise.
    """

    resource: str
    action: Action
    report: StatusReport[Any] | None = None
    writes: int = 0
    reasons: tuple[str, ...] = ()
    why: Why | None = None
    retry_after: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a pass did to a component.

    Args:
        condition: The component's condition after the pass.
        outcomes: One per resource that was reached, in the order in which they were processed.
        requeue_after: When to look again even if nothing happens; None when only an event can change anything.
    """

    condition: Condition
    outcomes: tuple[ResourceOutcome, ...]
    requeue_after: timedelta | None = None

    @property
    def writes(self) -> int:
        """How many write requests the pass sent for resources."""
        return sum(outcome.writes for outcome in self.outcomes)
