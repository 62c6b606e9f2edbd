"""The words a resource may use to report its state.

They appear in conditions, metrics and events exactly as written here; a word outside its vocabulary is refused where
it enters, so that nothing unknown can ever be read as healthy.
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
    """State of something that runs for as long as it is wanted."""

    HEALTHY = "Healthy"
    CREATING = "Creating"
    UPDATING = "Updating"
    SCALING = "Scaling"
    FAILING = "Failing"


class OperationalStatus(StrEnum):
    """State of something that another controller has to bring to life."""

    OPERATIONAL = "Operational"
    PENDING = "OperationPending"
    FAILING = "OperationFailing"


class CompletionStatus(StrEnum):
    """State of something that runs to its end."""

    COMPLETED = "Completed"
    RUNNING = "TaskRunning"
    PENDING = "TaskPending"
    FAILING = "TaskFailing"


class GraceStatus(StrEnum):
    """State once the grace period is over.

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
    """State on the way to being suspended.

    Example:
        >>> SuspensionStatus.SUSPENDED.distance
        1
    """

    SUSPENDED = "Suspended"
    SUSPENDING = "Suspending"
    PENDING = "PendingSuspension"

    @property
    def distance(self) -> int:
        """How far from suspended: 1 there, 2 on the way, 3 not yet begun."""
        return list(SuspensionStatus).index(self) + 1


class GuardStatus(StrEnum):
    """Whether a resource may be reconciled now; only `Blocked` is ever shown."""

    BLOCKED = "Blocked"
    UNBLOCKED = "Unblocked"


StatusT = TypeVar("StatusT", bound=StrEnum, covariant=True)  # noqa: PLC0105 (named like every other type variable)


@dataclass(frozen=True, slots=True)
class StatusReport(Generic[StatusT]):
    """A state and the sentence that explains it.

    Args:
        status: One of the words of its vocabulary.
        reason: For a person; empty where there is nothing to say.
    """

    status: StatusT
    reason: str = ""


def stale_generation_report(
    operation: ApplyOperation, *, observed: int | None, generation: int | None, controller: str
) -> StatusReport[AliveStatus] | None:
    """Report that a controller has not yet seen the latest spec; status handlers ask this first.

    Args:
        operation: What this pass did to the object.
        observed: `status.observedGeneration`; None counts as 0.
        generation: `metadata.generation`; None counts as 0.
        controller: The controller's name in the reason, `deployment`.

    Returns:
        `Creating` after a create, else `Updating`; None when the controller is up to date.

    Example:
        >>> stale_generation_report(ApplyOperation.UPDATED, observed=1, generation=2, controller="deployment").reason
        'Waiting for deployment controller to observe latest spec'
    """
    if (observed or 0) >= (generation or 0):
        return None
    status = AliveStatus.CREATING if operation is ApplyOperation.CREATED else AliveStatus.UPDATING
    return StatusReport(status, f"Waiting for {controller} controller to observe latest spec")
