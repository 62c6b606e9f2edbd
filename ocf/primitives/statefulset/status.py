"""Default status handlers of a StatefulSet (API reference, `StatefulSetStatus`).

A rollout is complete when the update strategy has done its part: it stops at the partition, and with `OnDelete` it
replaces no pods at all until the user deletes them.
"""

from __future__ import annotations

from typing import Final

from ocf.lazy_types.kubernetes import V1StatefulSet
from ocf.primitives.rollout_status import RolloutStatus, replica_counts

__all__ = [
    "default_converging_status_handler",
    "default_grace_status_handler",
    "default_suspension_status_handler",
]


def _pending(live: V1StatefulSet, desired: int) -> str:
    status, strategy = live.status, live.spec.update_strategy
    if status is None:
        return ""
    if status.replicas > desired:
        return f"Waiting for rollout: {status.replicas - desired} old replicas pending termination"
    if strategy and strategy.type == "OnDelete":
        return ""
    partition = (strategy.rolling_update.partition if strategy and strategy.rolling_update else None) or 0
    updated, expected = status.updated_replicas or 0, max(desired - partition, 0)
    # Pods below a partition keep their revision, so the current and the update revision stay different.
    if updated < expected or (not partition and updated != expected):
        return f"Waiting for rollout: {updated}/{expected} replicas updated"
    if not partition and status.current_revision != status.update_revision:
        return "Waiting for rollout: the latest revision is not yet the current one"
    return ""


_STATUS: Final = RolloutStatus(kind="StatefulSet", controller="statefulset", counts=replica_counts, pending=_pending)

default_converging_status_handler: Final = _STATUS.converging
"""Status handler: `Healthy` once the latest spec is observed, exactly the desired replicas are ready and the rollout is
as far as its update strategy takes it; before that `Creating` or `Updating`, and `Scaling` while only the number of
ready replicas differs."""

default_grace_status_handler: Final = _STATUS.grace
"""Grace handler: `Down` if replicas are desired and none is ready, `Degraded` while anything else is incomplete, else
`Healthy`."""

default_suspension_status_handler: Final = _STATUS.suspension
"""Suspension handler: `Suspended` once the status counts no replicas."""
