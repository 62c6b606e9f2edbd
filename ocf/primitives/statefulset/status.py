"""What the status of a StatefulSet says about it (API reference, `StatefulSetStatus`).

A rollout ends where the update strategy ends it: at the partition, or, where pods are replaced only when somebody
deletes them, nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ocf.primitives.rollout_status import Rollout, scaled_to_zero_report

if TYPE_CHECKING:
    from kubernetes.client import V1StatefulSet, V1StatefulSetStatus

    from ocf.concepts import AliveStatus, ApplyOperation, GraceStatus, StatusReport, SuspensionStatus

__all__ = [
    "default_converging_status_handler",
    "default_grace_status_handler",
    "default_suspension_status_handler",
]


def default_converging_status_handler(operation: ApplyOperation, live: V1StatefulSet) -> StatusReport[AliveStatus]:
    """Judge a StatefulSet on its way to the latest spec.

    Args:
        operation: What this pass did to it.
        live: The object as the server returned it.

    Returns:
        `Healthy` once the latest spec is observed, exactly the wanted replicas are ready and the rollout is as far as
        its strategy lets it go; before that `Creating` or `Updating`, and `Scaling` where only the count is not there
        yet.
    """
    return _rollout(live).converging(operation)


def default_grace_status_handler(live: V1StatefulSet) -> StatusReport[GraceStatus]:
    """Judge a StatefulSet once the grace period is over.

    Args:
        live: The object as the server returned it.

    Returns:
        `Down` without a single ready replica (unless none is wanted), `Degraded` while anything is incomplete, else
        `Healthy`.
    """
    return _rollout(live).grace()


def default_suspension_status_handler(live: V1StatefulSet) -> StatusReport[SuspensionStatus]:
    """Judge how far a StatefulSet is from having no replicas.

    Args:
        live: The object as the server returned it.

    Returns:
        `Suspended` once its status counts no replica.
    """
    return scaled_to_zero_report("StatefulSet", live.status.replicas if live.status else 0)


def _rollout(live: V1StatefulSet) -> Rollout:
    desired = 1 if live.spec.replicas is None else live.spec.replicas
    return Rollout(
        live=live,
        kind="StatefulSet",
        controller="statefulset",
        desired=desired,
        ready=(live.status.ready_replicas if live.status else None) or 0,
        pending=_pending(live, live.status, desired) if live.status else "",
        pods="replicas",
        complete="All replicas are ready",
    )


def _pending(live: V1StatefulSet, status: V1StatefulSetStatus, desired: int) -> str:
    if status.replicas > desired:
        return f"Waiting for rollout: {status.replicas - desired} old replicas pending termination"
    strategy = live.spec.update_strategy
    if strategy and strategy.type == "OnDelete":
        return ""
    partition = (strategy.rolling_update.partition if strategy and strategy.rolling_update else None) or 0
    updated, wanted = status.updated_replicas or 0, max(desired - partition, 0)
    # Below a partition pods stay as they are, and the two revisions never become one.
    if updated < wanted or (not partition and updated != wanted):
        return f"Waiting for rollout: {updated}/{wanted} replicas updated"
    if not partition and status.current_revision != status.update_revision:
        return "Waiting for rollout: the latest revision is not yet the current one"
    return ""
