"""Reasons of a component's condition, with their priority and severity.

Two tables combine the reports of many resources. *Priority* selects the reason: that of the report with the highest
priority. *Severity* selects the messages: those of all reports with the same severity as the selected one.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

__all__ = [
    "CONVERGING",
    "OUTSIDE_CONVERGENCE",
    "PRIORITY",
    "PROGRESSING",
    "READY",
    "STICKY",
    "SUSPENSION_REASONS",
    "Reason",
]


class Reason(StrEnum):
    """Reason of a component's condition."""

    ERROR = "Error"
    FEATURE_GATE_ERROR = "FeatureGateError"
    DOWN = "Down"
    DEGRADED = "Degraded"
    PENDING_SUSPENSION = "PendingSuspension"
    SUSPENDING = "Suspending"
    SUSPENDED = "Suspended"
    DISABLED = "Disabled"
    FAILING = "Failing"
    OPERATION_FAILING = "OperationFailing"
    TASK_FAILING = "TaskFailing"
    BLOCKED = "Blocked"
    PREREQUISITE_NOT_MET = "PrerequisiteNotMet"
    SCALING = "Scaling"
    TASK_RUNNING = "TaskRunning"
    UPDATING = "Updating"
    CREATING = "Creating"
    OPERATION_PENDING = "OperationPending"
    TASK_PENDING = "TaskPending"
    HEALTHY = "Healthy"
    OPERATIONAL = "Operational"
    COMPLETED = "Completed"
    UNKNOWN = "Unknown"

    @property
    def priority(self) -> int:
        """Rank of the reason; the highest among the reports becomes the condition's reason."""
        return PRIORITY[self]


PRIORITY: Final = {
    Reason.ERROR: 20,
    Reason.FEATURE_GATE_ERROR: 20,
    Reason.DOWN: 19,
    Reason.DEGRADED: 18,
    Reason.PENDING_SUSPENSION: 17,
    Reason.SUSPENDING: 16,
    Reason.SUSPENDED: 15,
    Reason.DISABLED: 14,
    Reason.FAILING: 13,
    Reason.OPERATION_FAILING: 12,
    Reason.TASK_FAILING: 11,
    Reason.BLOCKED: 10,
    Reason.PREREQUISITE_NOT_MET: 10,
    Reason.SCALING: 9,
    Reason.TASK_RUNNING: 8,
    Reason.UPDATING: 7,
    Reason.CREATING: 6,
    Reason.OPERATION_PENDING: 5,
    Reason.TASK_PENDING: 4,
    Reason.HEALTHY: 3,
    Reason.OPERATIONAL: 2,
    Reason.COMPLETED: 1,
    Reason.UNKNOWN: 0,
}

READY: Final = frozenset({Reason.HEALTHY, Reason.OPERATIONAL, Reason.COMPLETED})
# A rollout keeps the first of these as its reason while others of them are reported; see `converging_condition`.
STICKY: Final = frozenset({Reason.CREATING, Reason.UPDATING, Reason.SCALING})
PROGRESSING: Final = STICKY | {Reason.TASK_RUNNING, Reason.OPERATION_PENDING, Reason.TASK_PENDING}
# With one of these reasons, the grace period runs.
CONVERGING: Final = PROGRESSING | {
    Reason.FAILING,
    Reason.OPERATION_FAILING,
    Reason.TASK_FAILING,
    Reason.BLOCKED,
}
# After one of these reasons a component starts to converge, and its grace period starts.
OUTSIDE_CONVERGENCE: Final = frozenset(
    {
        Reason.UNKNOWN,
        Reason.DISABLED,
        Reason.FEATURE_GATE_ERROR,
        Reason.PREREQUISITE_NOT_MET,
        Reason.SUSPENDED,
        Reason.SUSPENDING,
        Reason.PENDING_SUSPENSION,
    }
)
SUSPENSION_REASONS: Final = frozenset({Reason.SUSPENDED, Reason.SUSPENDING, Reason.PENDING_SUSPENSION})
