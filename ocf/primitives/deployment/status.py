"""Default status handlers of a Deployment (API reference, `DeploymentStatus`)."""

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
    """Return what a rollout still has to do; a paused rollout only has to remove surplus replicas."""
    updated = live_count(live, "status", "updatedReplicas")
    total = live_count(live, "status", "replicas")
    if not live_field(live, "spec", "paused") and updated != desired:
        return f"Waiting for rollout: {updated}/{desired} replicas updated"
    if total > desired:
        return f"Waiting for rollout: {total - desired} old replicas pending termination"
    return ""


_STATUS: Final = RolloutStatus(kind="Deployment", controller="deployment", counts=replica_counts, pending=_pending)

default_converging_status_handler: Final = _STATUS.converging
"""Status handler: `Healthy` once the latest spec is observed, exactly the desired replicas are ready and the rollout is
complete; before that `Creating` or `Updating`, and `Scaling` while only the number of ready replicas differs."""

default_grace_status_handler: Final = _STATUS.grace
"""Grace handler: `Down` if replicas are desired and none is ready, `Degraded` while anything else is incomplete, else
`Healthy`."""

default_suspension_status_handler: Final = _STATUS.suspension
"""Suspension handler: `Suspended` once the status counts no replicas."""
