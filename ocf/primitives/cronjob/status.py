"""Default status handlers of a CronJob (API reference, `CronJobStatus`).

A CronJob only creates Jobs, so it works as soon as it exists; failures are reported by its Jobs. Its first schedule may
be later than the end of any grace period.
"""

from __future__ import annotations

from ocf.concepts import ApplyOperation, GraceStatus, OperationalStatus, StatusReport, SuspensionStatus
from ocf.lazy_types.kubernetes import V1CronJob

__all__ = [
    "default_grace_status_handler",
    "default_operational_status_handler",
    "default_suspension_status_handler",
]


def default_operational_status_handler(
    operation: ApplyOperation,  # noqa: ARG001 (the signature of every status handler)
    live: V1CronJob,  # noqa: ARG001
) -> StatusReport[OperationalStatus]:
    """Return `Operational`.

    Args:
        operation: What this reconcile did to the object; not used.
        live: The object as the API server returned it; not used.
    """
    return StatusReport(OperationalStatus.OPERATIONAL, "CronJob is operational")


def default_grace_status_handler(
    live: V1CronJob,  # noqa: ARG001 (the signature of every grace handler)
) -> StatusReport[GraceStatus]:
    """Return `Healthy`.

    Args:
        live: The object as the API server returned it; not used.
    """
    return StatusReport(GraceStatus.HEALTHY, "CronJob is operational")


def default_suspension_status_handler(live: V1CronJob) -> StatusReport[SuspensionStatus]:
    """Return the suspension status of a CronJob.

    Args:
        live: The object as the API server returned it.

    Returns:
        `Suspended` once `spec.suspend` is true and no Job is active; `Suspending` before that. Active Jobs run to
        their end.
    """
    active = len((live.status.active if live.status else None) or ())
    if not live.spec.suspend:
        return StatusReport(SuspensionStatus.SUSPENDING, "Waiting for suspend flag to be applied")
    if active:
        return StatusReport(SuspensionStatus.SUSPENDING, f"CronJob suspended but {active} active jobs still running")
    return StatusReport(SuspensionStatus.SUSPENDED, "CronJob suspended")
