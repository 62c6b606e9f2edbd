"""Default status handlers of a Pod (API reference, `PodStatus`)."""

from __future__ import annotations

from typing import Final

from ocf.concepts import AliveStatus, ApplyOperation, GraceStatus, StatusReport
from ocf.lazy_types.kubernetes import V1Pod, V1PodStatus
from ocf.primitives.suspension import always_suspended

__all__ = [
    "default_converging_status_handler",
    "default_grace_status_handler",
    "default_suspension_status_handler",
]

_NOT_READY: Final = "Pod running but not all containers ready"


def default_converging_status_handler(operation: ApplyOperation, live: V1Pod) -> StatusReport[AliveStatus]:
    """Return the status of a Pod.

    Args:
        operation: What this reconcile did to the object.
        live: The object as the API server returned it.

    Returns:
        `Failing` if a container is in a crash loop or has failed, or the Pod has failed; `Healthy` while it runs with
        all containers ready, and after all of them have succeeded; else `Updating` after an update and `Creating`.
    """
    failure, health = _failure(live.status), _health(live.status)
    if failure or health:
        return StatusReport(AliveStatus.FAILING if failure else AliveStatus.HEALTHY, failure or health)
    if operation is ApplyOperation.UPDATED:
        return StatusReport(AliveStatus.UPDATING, "Pod is being recreated")
    if operation is ApplyOperation.CREATED:
        return StatusReport(AliveStatus.CREATING, "Pod is starting")
    return StatusReport(AliveStatus.CREATING, _NOT_READY if _phase(live.status) == "Running" else "Pod is pending")


def default_grace_status_handler(live: V1Pod) -> StatusReport[GraceStatus]:
    """Return the status of a Pod after the grace period.

    Args:
        live: The object as the API server returned it.

    Returns:
        `Healthy` exactly when the status is `Healthy`; else `Degraded` while the Pod runs, and `Down`.
    """
    health = _health(live.status)
    if health and not _failure(live.status):
        return StatusReport(GraceStatus.HEALTHY, health)
    if _phase(live.status) == "Running":
        return StatusReport(GraceStatus.DEGRADED, _NOT_READY)
    return StatusReport(GraceStatus.DOWN, "Pod is not running")


default_suspension_status_handler: Final = always_suspended("Pod deleted on suspend")
"""Suspension handler: always `Suspended`; a Pod cannot be paused, so suspending deletes it."""


def _phase(status: V1PodStatus | None) -> str | None:
    return status.phase if status else None


def _failure(status: V1PodStatus | None) -> str:
    for container in (status.container_statuses if status else None) or ():
        state = container.state
        if state and state.waiting and state.waiting.reason == "CrashLoopBackOff":
            return f"Container {container.name} is in CrashLoopBackOff"
        if state and state.terminated and state.terminated.exit_code:
            return f"Container {container.name} terminated with error"
    return "Pod has failed" if _phase(status) == "Failed" else ""


def _health(status: V1PodStatus | None) -> str:
    if status and status.phase == "Running" and all(found.ready for found in status.container_statuses or ()):
        return "Pod is running and all containers are ready"
    return "Pod has completed successfully" if _phase(status) == "Succeeded" else ""
