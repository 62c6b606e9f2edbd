"""Results of a reconcile: per resource, and for the component."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from ocf.component.status.conditions import Condition
from ocf.concepts import StatusReport
from ocf.concepts.recorder import Why
from ocf.concepts.tracing import SpanAttributes, SpanStart, object_attributes
from ocf.objects import ObjectKey

__all__ = ["DRY_RUN", "Action", "Drift", "ResourceOutcome", "Result", "outcome_attributes", "resource_span"]

DRY_RUN: Final = "dry run: "
"""Begin of a line of the log about a write of a dry run."""


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
    FAILED = "Failed"


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
        detail: Why the object was deleted, orphaned, kept or left out, `disabled`, or what failed; empty otherwise.
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


def component_span(name: str) -> SpanStart:
    """Return the span of a component: all that a reconcile does with it."""
    return SpanStart(name=f"component {name}", attributes={"ocf.component": name})


def result_attributes(result: Result) -> SpanAttributes:
    """Return what a reconcile of a component led to, without the value of any field."""
    condition = result.condition
    return {
        "ocf.condition.type": condition.type,
        "ocf.condition.status": str(condition.status),
        "ocf.condition.reason": str(condition.reason),
        "ocf.writes": result.writes,
    }


def resource_span(key: ObjectKey) -> SpanStart:
    """Return the span of a resource or an object: all that a reconcile does with it."""
    return SpanStart(name=f"resource {key.kind}", attributes=object_attributes("ocf.resource", key))


def outcome_attributes(outcome: ResourceOutcome) -> SpanAttributes:
    """Return what was done to an object, without the value of any field."""
    report: Any = outcome.report
    return {
        "ocf.resource.action": str(outcome.action),
        "ocf.resource.why": None if outcome.why is None else str(outcome.why),
        "ocf.resource.status": None if report is None else str(report.status),
        "ocf.resource.detail": outcome.detail or None,
        "ocf.writes": outcome.writes,
    }
