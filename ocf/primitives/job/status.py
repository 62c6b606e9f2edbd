"""Default status handlers of a Job (API reference, `JobStatus`)."""

from __future__ import annotations

from ocf.concepts import ApplyOperation, CompletionStatus, StatusReport, SuspensionStatus
from ocf.lazy_types.kubernetes import V1Job

__all__ = ["default_converging_status_handler", "default_suspension_status_handler"]


def default_converging_status_handler(operation: ApplyOperation, live: V1Job) -> StatusReport[CompletionStatus]:
    """Return the status of a Job.

    Args:
        operation: What this reconcile did to the object.
        live: The object as the API server returned it.

    Returns:
        `Completed` or `TaskFailing` once the Job has the condition `Complete` or `Failed`; before that `TaskRunning`
        while it has active pods, else `TaskPending`.
    """
    for condition in (live.status.conditions if live.status else None) or ():
        if condition.type == "Complete" and condition.status == "True":
            return StatusReport(CompletionStatus.COMPLETED, "Job completed successfully")
        if condition.type == "Failed" and condition.status == "True":
            return StatusReport(
                CompletionStatus.FAILING, f"Job failed: {condition.message}" if condition.message else "Job failed"
            )
    active = _active(live)
    if active:
        return StatusReport(CompletionStatus.RUNNING, f"Job has {active} active pod(s)")
    created = "was just created," if operation is ApplyOperation.CREATED else "is"
    return StatusReport(CompletionStatus.PENDING, f"Job {created} waiting for pods to be scheduled")


def default_suspension_status_handler(live: V1Job) -> StatusReport[SuspensionStatus]:
    """Return the suspension status of a Job.

    Args:
        live: The object as the API server returned it.

    Returns:
        `Suspended` once `spec.suspend` is true and no pod is active; `Suspending` before that.
    """
    active = _active(live)
    if not (live.spec and live.spec.suspend):
        return StatusReport(SuspensionStatus.SUSPENDING, "Waiting for Job suspend field to be applied")
    if active:
        return StatusReport(SuspensionStatus.SUSPENDING, f"Job is suspending, {active} pod(s) still active")
    return StatusReport(SuspensionStatus.SUSPENDED, "Job is suspended")


def _active(live: V1Job) -> int:
    return (live.status.active if live.status else None) or 0
