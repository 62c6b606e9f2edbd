"""Default status handlers of a ReplicaSet (API reference, `ReplicaSetStatus`).

A ReplicaSet has no rollout: a changed pod template applies to new pods only.
"""

from __future__ import annotations

from typing import Final

from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest
from ocf.primitives.rollout_status import RolloutStatus, replica_counts

__all__ = [
    "default_converging_status_handler",
    "default_grace_status_handler",
    "default_suspension_status_handler",
]


def _pending(live: BaseModel | Manifest, desired: int) -> str:
    surplus = replica_counts(live).running - desired
    return f"Waiting for scale-down: {surplus} surplus replicas pending termination" if surplus > 0 else ""


_STATUS: Final = RolloutStatus(kind="ReplicaSet", controller="replicaset", counts=replica_counts, pending=_pending)

default_converging_status_handler: Final = _STATUS.converging
"""Status handler: `Healthy` once the latest spec is observed, exactly the desired replicas are ready and no others
exist; before that `Creating` or `Updating`, and `Scaling` while only the number of ready replicas differs."""

default_grace_status_handler: Final = _STATUS.grace
"""Grace handler: `Down` if replicas are desired and none is ready, `Degraded` while anything else is incomplete, else
`Healthy`."""

default_suspension_status_handler: Final = _STATUS.suspension
"""Suspension handler: `Suspended` once the status counts no replicas."""
