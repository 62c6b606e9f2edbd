"""Default status handlers of workloads that run several pods: Deployment, StatefulSet, DaemonSet and ReplicaSet.

The kinds differ in which fields of their status hold the counts and in when a rollout is complete. Each kind
declares these two as functions; `RolloutStatus` builds the handlers from them. The converging and the grace handler
evaluate the same conditions, so after the grace period a workload is healthy exactly when it would be healthy while
converging.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ocf.concepts import (
    AliveStatus,
    ApplyOperation,
    GraceStatus,
    StatusReport,
    SuspensionStatus,
    stale_generation_report,
)
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest
from ocf.primitives.live_fields import live_count

__all__ = ["PodCounts", "RolloutStatus", "replica_counts"]


class PodCounts(NamedTuple):
    """Counts of pods in the status of a workload.

    Args:
        desired: Number of pods the workload should have.
        ready: Number of pods that are ready.
        running: Number of pods that exist, ready or not.
    """

    desired: int
    ready: int
    running: int


def replica_counts(live: BaseModel | Manifest) -> PodCounts:
    """Return the pod counts of a workload with `spec.replicas`, whose default is 1.

    Args:
        live: A live Deployment, ReplicaSet or StatefulSet.
    """
    return PodCounts(
        desired=live_count(live, "spec", "replicas", unset=1),
        ready=live_count(live, "status", "readyReplicas"),
        running=live_count(live, "status", "replicas"),
    )


@dataclass(frozen=True, kw_only=True)
class RolloutStatus:
    """Default status handlers of one kind of workload.

    Args:
        kind: Name of the kind in reasons, `Deployment`.
        counts: Returns the pod counts of a live object.
        pending: Returns, for a live object and its desired number of pods, a sentence about the part of the rollout
            that is not complete; an empty text once the rollout is complete.
        controller: Name of the controller in reasons, `deployment`.
        pods: Name of the pods in reasons.
        none_desired: Reason reported for a healthy workload without desired pods; empty for the usual reason.
    """

    kind: str
    counts: Callable[[BaseModel | Manifest], PodCounts]
    pending: Callable[[BaseModel | Manifest, int], str]
    controller: str
    pods: str = "replicas"
    none_desired: str = ""

    def converging(self, operation: ApplyOperation, live: BaseModel | Manifest) -> StatusReport[AliveStatus]:
        """Return the status of a workload that converges to its latest spec.

        Args:
            operation: What this reconcile did to the object.
            live: The object as the API server returned it.

        Returns:
            `Healthy` once the latest spec is observed, exactly the desired pods are ready and the rollout is complete.
            Before that `Creating` or `Updating` according to the operation; if this reconcile did not write the
            object, `Scaling` while pods are missing and `Updating` otherwise.
        """
        stale = self._stale_report(operation, live)
        if stale is not None:
            return stale
        desired, ready, _ = self.counts(live)
        if ready != desired:
            waiting = f"Waiting for {self.pods}: {ready}/{desired} ready"
            return StatusReport(_progress(operation, AliveStatus.SCALING), waiting)
        pending = self.pending(live, desired)
        if pending:
            return StatusReport(_progress(operation, AliveStatus.UPDATING), pending)
        return StatusReport(AliveStatus.HEALTHY, self._healthy_reason(desired))

    def grace(self, live: BaseModel | Manifest) -> StatusReport[GraceStatus]:
        """Return the status of a workload whose grace period has expired.

        Args:
            live: The object as the API server returned it.

        Returns:
            `Down` if pods are desired and none is ready, `Degraded` while anything else is incomplete, else `Healthy`.
        """
        desired, ready, _ = self.counts(live)
        if ready == 0 and desired > 0:
            return StatusReport(GraceStatus.DOWN, f"No {self.pods} are ready")
        stale = self._stale_report(ApplyOperation.NONE, live)
        if stale is not None:
            return StatusReport(GraceStatus.DEGRADED, stale.reason)
        if ready != desired:
            return StatusReport(GraceStatus.DEGRADED, f"{self.kind} partially available")
        pending = self.pending(live, desired)
        if pending:
            return StatusReport(GraceStatus.DEGRADED, pending)
        return StatusReport(GraceStatus.HEALTHY, self._healthy_reason(desired))

    def suspension(self, live: BaseModel | Manifest) -> StatusReport[SuspensionStatus]:
        """Return the status of a workload that is suspended by scaling it to zero.

        Args:
            live: The object as the API server returned it.

        Returns:
            `Suspended` once its status counts no pods, `Suspending` before that.
        """
        running = self.counts(live).running
        if running == 0:
            return StatusReport(SuspensionStatus.SUSPENDED, f"{self.kind} scaled to zero")
        waiting = f"Waiting for replicas to scale down, {running} replicas still running."
        return StatusReport(SuspensionStatus.SUSPENDING, waiting)

    def _stale_report(self, operation: ApplyOperation, live: BaseModel | Manifest) -> StatusReport[AliveStatus] | None:
        return stale_generation_report(
            operation,
            observed=live_count(live, "status", "observedGeneration"),
            generation=live_count(live, "metadata", "generation"),
            controller=self.controller,
        )

    def _healthy_reason(self, desired: int) -> str:
        return self.none_desired if self.none_desired and not desired else f"All {self.pods} are ready"


def _progress(operation: ApplyOperation, otherwise: AliveStatus) -> AliveStatus:
    """Return the status that matches what this reconcile did; `otherwise` if it did not write the object."""
    known = {ApplyOperation.CREATED: AliveStatus.CREATING, ApplyOperation.UPDATED: AliveStatus.UPDATING}
    return known.get(operation, otherwise)
