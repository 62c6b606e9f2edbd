"""What the status of a DaemonSet says about it (API reference, `DaemonSetStatus`).

How many pods are wanted is no wish of the spec but what its controller counts: one for each node that fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ocf.concepts import StatusReport, SuspensionStatus
from ocf.primitives.rollout_status import Rollout

if TYPE_CHECKING:
    from kubernetes.client import V1DaemonSet

    from ocf.concepts import AliveStatus, ApplyOperation, GraceStatus

__all__ = [
    "default_converging_status_handler",
    "default_grace_status_handler",
    "default_suspension_status_handler",
]


def default_converging_status_handler(operation: ApplyOperation, live: V1DaemonSet) -> StatusReport[AliveStatus]:
    """Judge a DaemonSet on its way to the latest spec.

    Args:
        operation: What this pass did to it.
        live: The object as the server returned it.

    Returns:
        `Healthy` once the latest spec is observed, every node that fits has a pod that is ready, and the rollout is as
        far as its strategy lets it go; also where no node fits. Before that `Creating` or `Updating`, and `Scaling`
        where only pods are missing.
    """
    return _rollout(live).converging(operation)


def default_grace_status_handler(live: V1DaemonSet) -> StatusReport[GraceStatus]:
    """Judge a DaemonSet once the grace period is over.

    Args:
        live: The object as the server returned it.

    Returns:
        `Down` without a single ready pod (unless no node fits), `Degraded` while anything is incomplete, else
        `Healthy`.
    """
    return _rollout(live).grace()


def default_suspension_status_handler(
    live: V1DaemonSet,  # noqa: ARG001 (the signature of every suspension handler)
) -> StatusReport[SuspensionStatus]:
    """Report a DaemonSet as suspended: it cannot be scaled to zero, so it is deleted.

    Args:
        live: The object as the server returned it; makes no difference.
    """
    return StatusReport(SuspensionStatus.SUSPENDED, "DaemonSet deleted on suspend")


def _rollout(live: V1DaemonSet) -> Rollout:
    desired = live.status.desired_number_scheduled if live.status else 0
    return Rollout(
        live=live,
        kind="DaemonSet",
        controller="DaemonSet",
        desired=desired,
        # Where no node fits, pods that are still going are nobody's wish and no reason to wait.
        ready=live.status.number_ready if live.status and desired else 0,
        pending=_pending(live, desired),
        pods="pods",
        complete="All pods are ready" if desired else "No nodes match the DaemonSet node selector",
    )


def _pending(live: V1DaemonSet, desired: int) -> str:
    updated = (live.status.updated_number_scheduled if live.status else None) or 0
    strategy = live.spec.update_strategy
    if updated >= desired or (strategy and strategy.type == "OnDelete"):
        return ""
    return f"Waiting for rollout: {updated}/{desired} pods updated"
