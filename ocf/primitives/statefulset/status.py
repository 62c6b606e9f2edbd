"""Default status handlers of a StatefulSet (API reference, `StatefulSetStatus`).

A rollout is complete when the update strategy has done its part: it stops at the partition, and with `OnDelete` it
replaces no pods at all until the user deletes them.
"""

from __future__ import annotations

from typing import Final

from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest
from ocf.primitives.live_fields import live_count, live_field
from ocf.primitives.rollout_status import RolloutStatus, replica_counts

__all__ = [
    "default_converging_status_handler",
    "default_grace_status_handler",
    "default_suspension_status_handler",
]


def _pending(live: BaseModel | Manifest, desired: int) -> str:
    status, strategy = live_field(live, "status"), live_field(live, "spec", "updateStrategy")
    if status is None:
        return ""
    surplus = live_count(status, "replicas") - desired
    if surplus > 0:
        return f"Waiting for rollout: {surplus} old replicas pending termination"
    if live_field(strategy, "type") == "OnDelete":
        return ""
    partition = live_count(strategy, "rollingUpdate", "partition")
    updated, expected = live_count(status, "updatedReplicas"), max(desired - partition, 0)
    # Pods below a partition keep their revision, so the current and the update revision stay different.
    if updated < expected or (not partition and updated != expected):
        return f"Waiting for rollout: {updated}/{expected} replicas updated"
    if not partition and live_field(status, "currentRevision") != live_field(status, "updateRevision"):
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
