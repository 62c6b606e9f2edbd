"""Results of a reconcile: per resource, and for the component."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from ocf.component.status.conditions import Condition
from ocf.concepts import StatusReport
from ocf.concepts.recorder import Why

__all__ = ["Action", "Drift", "ResourceOutcome", "Result"]


class Action(StrEnum):
    """What a reconcile did to an object."""

    CREATED = "Created"
    UPDATED = "Updated"
    UNCHANGED = "Unchanged"
    DELETED = "Deleted"
    ABSENT = "Absent"
    ORPHANED = "Orphaned"
    KEPT = "Kept"
    HELD_BACK = "HeldBack"
    BLOCKED = "Blocked"


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference between the desired and the live object, and so a reason to write.

    Args:
        path: The field, in API spelling; empty for the object as a whole.
        why: What differs.
        sent: The desired value, if there is one.
        stored: The live value, if there is one.

    Example:
        >>> str(Drift("spec.maxReplicas", Why.CHANGED, sent=10, stored=99))
        'spec.maxReplicas: changed'
    """

    path: str
    why: Why
    # Either may be a secret, so neither is in the text of a value.
    sent: Any = field(default=None, repr=False)
    stored: Any = field(default=None, repr=False)

    def __str__(self) -> str:
        """Return the field and what differs, without its values."""
        return f"{self.path}: {self.why}" if self.path else self.why


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceOutcome:
    """What a reconcile did to one resource.

    Args:
        resource: Identity of the resource.
        action: What was done to its object.
        report: Its status report; None for a static resource.
        writes: Number of write requests that were sent for it.
        reasons: Why they were sent, one per field; empty if there was no drift.
        detail: Why the object was deleted, orphaned or kept, `disabled`; empty otherwise.
        why: The main reason, also for a skipped write; None if nothing was compared.
        retry_after: Time until a write that is held back is sent; None otherwise.
    """

    resource: str
    action: Action
    report: StatusReport[Any] | None = None
    writes: int = 0
    reasons: tuple[Drift, ...] = ()
    detail: str = ""
    why: Why | None = None
    retry_after: timedelta | None = None

    @property
    def reason_texts(self) -> tuple[str, ...]:
        """The reasons and the detail as text, `spec.maxReplicas: changed`."""
        return (*map(str, self.reasons), *filter(None, (self.detail,)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a reconcile did to a component.

    Args:
        condition: The component's condition after the reconcile.
        outcomes: Outcome of each resource that was reached, in the order in which they were processed.
        requeue_after: Time until the next reconcile without an event; None if only an event can change anything.
    """

    condition: Condition
    outcomes: tuple[ResourceOutcome, ...]
    requeue_after: timedelta | None = None

    @property
    def writes(self) -> int:
        """Number of write requests that were sent for resources."""
        return sum(outcome.writes for outcome in self.outcomes)
