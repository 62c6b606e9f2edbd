"""Default status handlers of a DaemonSet (API reference, `DaemonSetStatus`).

The desired number of pods is not in the spec: the DaemonSet controller counts one pod for each matching node.
"""

from __future__ import annotations

from typing import Final

from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest
from ocf.primitives.live_fields import live_count, live_field
from ocf.primitives.rollout_status import PodCounts, RolloutStatus
from ocf.primitives.suspension import always_suspended

__all__ = [
    "default_converging_status_handler",
    "default_grace_status_handler",
    "default_suspension_status_handler",
]


def _counts(live: BaseModel | Manifest) -> PodCounts:
    desired = live_count(live, "status", "desiredNumberScheduled")
    # Without a matching node, pods that still terminate are not desired and not a reason to wait.
    ready = live_count(live, "status", "numberReady") if desired else 0
    return PodCounts(desired, ready, running=live_count(live, "status", "currentNumberScheduled"))


def _pending(live: BaseModel | Manifest, desired: int) -> str:
    updated = live_count(live, "status", "updatedNumberScheduled")
    if updated >= desired or live_field(live, "spec", "updateStrategy", "type") == "OnDelete":
        return ""
    return f"Waiting for rollout: {updated}/{desired} pods updated"


_STATUS: Final = RolloutStatus(
    kind="DaemonSet",
    controller="DaemonSet",
    counts=_counts,
    pending=_pending,
    pods="pods",
    none_desired="No nodes match the DaemonSet node selector",
)

default_converging_status_handler: Final = _STATUS.converging
"""Status handler: `Healthy` once the latest spec is observed, every matching node has a ready pod and the rollout is as
far as its update strategy takes it; also without a matching node. Before that `Creating` or `Updating`, and `Scaling`
while only pods are missing."""

default_grace_status_handler: Final = _STATUS.grace
"""Grace handler: `Down` if a node matches and no pod is ready, `Degraded` while anything else is incomplete, else
`Healthy`."""


default_suspension_status_handler: Final = always_suspended("DaemonSet deleted on suspend")
"""Suspension handler: always `Suspended`; a DaemonSet cannot be scaled to zero, so suspending deletes it."""
