"""What the status of a Deployment says about it (API reference, `DeploymentStatus`).

The two judgements agree by construction: after the grace period a Deployment is healthy exactly when it would be
healthy while converging, because both ask the same question about the rollout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ocf.concepts import (
    AliveStatus,
    GraceStatus,
    Operation,
    StatusReport,
    SuspensionStatus,
    stale_generation_report,
)

if TYPE_CHECKING:
    from kubernetes.client import V1Deployment

__all__ = [
    "default_converging_status_handler",
    "default_grace_status_handler",
    "default_suspension_status_handler",
]


class _Counts(NamedTuple):
    """Replica counts; absent ones are 0, an absent wish is 1."""

    desired: int
    total: int
    updated: int
    ready: int


def default_converging_status_handler(operation: Operation, live: V1Deployment) -> StatusReport[AliveStatus]:
    """Judge a Deployment on its way to the latest spec.

    Args:
        operation: What this pass did to it.
        live: The object as the server returned it.

    Returns:
        `Healthy` once the latest spec is observed, exactly the wanted replicas are ready and the rollout is done;
        before that `Creating` or `Updating`, and `Scaling` where only the count is not there yet.
    """
    stale = _stale(operation, live)
    if stale is not None:
        return stale
    counts = _counts(live)
    if counts.ready != counts.desired:
        waiting = f"Waiting for replicas: {counts.ready}/{counts.desired} ready"
        return StatusReport(_progress(operation, AliveStatus.SCALING), waiting)
    rollout = _pending_rollout(live, counts)
    if rollout:
        return StatusReport(_progress(operation, AliveStatus.UPDATING), rollout)
    return StatusReport(AliveStatus.HEALTHY, "All replicas are ready")


def default_grace_status_handler(live: V1Deployment) -> StatusReport[GraceStatus]:
    """Judge a Deployment once the grace period is over.

    Args:
        live: The object as the server returned it.

    Returns:
        `Down` without a single ready replica (unless none is wanted), `Degraded` while anything is incomplete, else
        `Healthy`.
    """
    counts = _counts(live)
    if counts.ready == 0 and counts.desired > 0:
        return StatusReport(GraceStatus.DOWN, "No replicas are ready")
    stale = _stale(Operation.NONE, live)
    if stale is not None:
        return StatusReport(GraceStatus.DEGRADED, stale.reason)
    if counts.ready != counts.desired:
        return StatusReport(GraceStatus.DEGRADED, "Deployment partially available")
    rollout = _pending_rollout(live, counts)
    if rollout:
        return StatusReport(GraceStatus.DEGRADED, rollout)
    return StatusReport(GraceStatus.HEALTHY, "All replicas are ready")


def default_suspension_status_handler(live: V1Deployment) -> StatusReport[SuspensionStatus]:
    """Judge how far a Deployment is from having no replicas.

    Args:
        live: The object as the server returned it.

    Returns:
        `Suspended` once its status counts no replica.
    """
    running = _counts(live).total
    if running == 0:
        return StatusReport(SuspensionStatus.SUSPENDED, "Deployment scaled to zero")
    waiting = f"Waiting for replicas to scale down, {running} replicas still running."
    return StatusReport(SuspensionStatus.SUSPENDING, waiting)


def _counts(live: V1Deployment) -> _Counts:
    status = live.status
    desired = live.spec.replicas
    return _Counts(
        desired=1 if desired is None else desired,
        total=(status.replicas if status else None) or 0,
        updated=(status.updated_replicas if status else None) or 0,
        ready=(status.ready_replicas if status else None) or 0,
    )


def _stale(operation: Operation, live: V1Deployment) -> StatusReport[AliveStatus] | None:
    return stale_generation_report(
        operation,
        observed=live.status.observed_generation if live.status else None,
        generation=live.metadata.generation if live.metadata else None,
        controller="deployment",
    )


def _pending_rollout(live: V1Deployment, counts: _Counts) -> str:
    """Say what of a rollout is still to come; empty when nothing is, or while it is paused with no replica too many."""
    if not live.spec.paused and counts.updated != counts.desired:
        return f"Waiting for rollout: {counts.updated}/{counts.desired} replicas updated"
    if counts.total > counts.desired:
        return f"Waiting for rollout: {counts.total - counts.desired} old replicas pending termination"
    return ""


def _progress(operation: Operation, otherwise: AliveStatus) -> AliveStatus:
    """Name the progress by what this pass did; `otherwise` where it did nothing."""
    known = {Operation.CREATED: AliveStatus.CREATING, Operation.UPDATED: AliveStatus.UPDATING}
    return known.get(operation, otherwise)
