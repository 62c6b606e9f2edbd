"""Statuses that a resource can report.

They appear in conditions, metrics and events exactly as written here. An unknown status is rejected when a handler
returns it, so that it can never be treated as healthy.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

__all__ = [
    "AliveStatus",
    "ApplyOperation",
    "CompletionStatus",
    "GraceStatus",
    "GuardStatus",
    "OperationalStatus",
    "StatusReport",
    "SuspensionStatus",
    "stale_generation_report",
]


class ApplyOperation(StrEnum):
    """What an apply did to the live object."""

    CREATED = "Created"
    UPDATED = "Updated"
    NONE = "None"


class AliveStatus(StrEnum):
    """Status of a resource that runs until it is deleted."""

    HEALTHY = "Healthy"
    CREATING = "Creating"
    UPDATING = "Updating"
    SCALING = "Scaling"
    FAILING = "Failing"


class OperationalStatus(StrEnum):
    """Status of a resource that another controller makes operational."""

    OPERATIONAL = "Operational"
    PENDING = "OperationPending"
    FAILING = "OperationFailing"


class CompletionStatus(StrEnum):
    """Status of a resource that runs to completion."""

    COMPLETED = "Completed"
    RUNNING = "TaskRunning"
    PENDING = "TaskPending"
    FAILING = "TaskFailing"


class GraceStatus(StrEnum):
    """Status after the grace period.

    Example:
        >>> max(GraceStatus.HEALTHY, GraceStatus.DOWN, key=lambda status: status.severity)
        <GraceStatus.DOWN: 'Down'>
    """

    HEALTHY = "Healthy"
    DEGRADED = "Degraded"
    DOWN = "Down"

    @property
    def severity(self) -> int:
        """1 for healthy, 3 for down."""
        return list(GraceStatus).index(self) + 1


class SuspensionStatus(StrEnum):
    """Progress of a suspension.

    Example:
        >>> SuspensionStatus.SUSPENDED.distance
        1
    """

    SUSPENDED = "Suspended"
    SUSPENDING = "Suspending"
    PENDING = "PendingSuspension"

    @property
    def distance(self) -> int:
        """Distance from being suspended: 1 suspended, 2 in progress, 3 not started."""
        return list(SuspensionStatus).index(self) + 1


class GuardStatus(StrEnum):
    """Whether a resource may be reconciled now; only `Blocked` appears in conditions."""

    BLOCKED = "Blocked"
    UNBLOCKED = "Unblocked"


StatusT = TypeVar("StatusT", bound=StrEnum, covariant=True)  # noqa: PLC0105 (named like every other type variable)


@dataclass(frozen=True)
class StatusReport(Generic[StatusT]):
    """A status with its reason.

    Args:
        status: A status of the vocabulary.
        reason: Human-readable reason; may be empty.
    """

    status: StatusT
    reason: str = ""


def stale_generation_report(
    operation: ApplyOperation, *, observed: int | None, generation: int | None, controller: str
) -> StatusReport[AliveStatus] | None:
    """Return a report if a controller has not observed the latest spec yet; status handlers call this first.

    Args:
        operation: What this reconcile did to the object.
        observed: `status.observedGeneration`; None counts as 0.
        generation: `metadata.generation`; None counts as 0.
        controller: Name of the controller in the reason, `deployment`.

    Returns:
        `Creating` after a create, else `Updating`; None if the controller is up to date.

    Example:
        >>> stale_generation_report(ApplyOperation.UPDATED, observed=1, generation=2, controller="deployment").reason
        'Waiting for deployment controller to observe latest spec'
    """
    if (observed or 0) >= (generation or 0):
        return None
    status = AliveStatus.CREATING if operation is ApplyOperation.CREATED else AliveStatus.UPDATING
    return StatusReport(status, f"Waiting for {controller} controller to observe latest spec")
