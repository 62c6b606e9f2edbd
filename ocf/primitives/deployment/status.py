"""What the status of a Deployment says about it (API reference, `DeploymentStatus`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ocf.primitives.rollout_status import Rollout, scaled_to_zero_report

if TYPE_CHECKING:
    from kubernetes.client import V1Deployment

    from ocf.concepts import AliveStatus, ApplyOperation, GraceStatus, StatusReport, SuspensionStatus

__all__ = [
    "default_converging_status_handler",
    "default_grace_status_handler",
    "default_suspension_status_handler",
]


def default_converging_status_handler(operation: ApplyOperation, live: V1Deployment) -> StatusReport[AliveStatus]:
    """Judge a Deployment on its way to the latest spec.

    Args:
        operation: What this pass did to it.
        live: The object as the server returned it.

    Returns:
        `Healthy` once the latest spec is observed, exactly the wanted replicas are ready and the rollout is done;
        before that `Creating` or `Updating`, and `Scaling` where only the count is not there yet.
    """
    return _rollout(live).converging(operation)


def default_grace_status_handler(live: V1Deployment) -> StatusReport[GraceStatus]:
    """Judge a Deployment once the grace period is over.

    Args:
        live: The object as the server returned it.

    Returns:
        `Down` without a single ready replica (unless none is wanted), `Degraded` while anything is incomplete, else
        `Healthy`.
    """
    return _rollout(live).grace()


def default_suspension_status_handler(live: V1Deployment) -> StatusReport[SuspensionStatus]:
    """Judge how far a Deployment is from having no replicas.

    Args:
        live: The object as the server returned it.

    Returns:
        `Suspended` once its status counts no replica.
    """
    return scaled_to_zero_report("Deployment", (live.status.replicas if live.status else None) or 0)


def _rollout(live: V1Deployment) -> Rollout:
    desired = 1 if live.spec.replicas is None else live.spec.replicas
    return Rollout(
        live=live,
        kind="Deployment",
        controller="deployment",
        desired=desired,
        ready=(live.status.ready_replicas if live.status else None) or 0,
        pending=_pending(live, desired),
        pods="replicas",
        complete="All replicas are ready",
    )


def _pending(live: V1Deployment, desired: int) -> str:
    """Say what of a rollout is still to come; empty when nothing is, or while it is paused with no replica too many."""
    updated = (live.status.updated_replicas if live.status else None) or 0
    total = (live.status.replicas if live.status else None) or 0
    if not live.spec.paused and updated != desired:
        return f"Waiting for rollout: {updated}/{desired} replicas updated"
    if total > desired:
        return f"Waiting for rollout: {total - desired} old replicas pending termination"
    return ""
