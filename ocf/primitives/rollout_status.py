"""Judging workloads whose controller replaces pods until all are ready and of the latest template.

Deployments, StatefulSets and DaemonSets differ in where they count and in what they call it, not in what is asked: is
the latest spec observed, are exactly the wanted pods ready, is anything of the rollout still to come? So a kind says
what it found, as a `Rollout`, and the two judgements are made here, from the same questions. They therefore agree:
after the grace period a workload is healthy exactly when it would be healthy while converging.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ocf.concepts import (
    AliveStatus,
    ApplyOperation,
    GraceStatus,
    StatusReport,
    SuspensionStatus,
    stale_generation_report,
)

__all__ = ["Rollout", "scaled_to_zero_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """What the status of a workload says.

    Args:
        live: The object as the server returned it; asked for its generation, and which of it the controller has seen.
        kind: The kind as reasons name it, `Deployment`.
        controller: The controller as reasons name it, `deployment`.
        desired: How many pods are wanted.
        ready: How many of them are ready.
        pending: What of the rollout is still to come, as a sentence; empty for nothing.
        pods: What reasons call the pods.
        complete: What is said once nothing is missing.
    """

    live: Any
    kind: str
    controller: str
    desired: int
    ready: int
    pending: str
    pods: str
    complete: str

    def converging(self, operation: ApplyOperation) -> StatusReport[AliveStatus]:
        """Judge the workload on its way to the latest spec.

        Args:
            operation: What this pass did to it.

        Returns:
            `Healthy` once nothing is missing; before that `Creating` or `Updating` by the operation, and where it did
            nothing, `Scaling` while only pods are missing.
        """
        stale = self._stale(operation)
        if stale is not None:
            return stale
        if self.ready != self.desired:
            waiting = f"Waiting for {self.pods}: {self.ready}/{self.desired} ready"
            return StatusReport(_progress(operation, AliveStatus.SCALING), waiting)
        if self.pending:
            return StatusReport(_progress(operation, AliveStatus.UPDATING), self.pending)
        return StatusReport(AliveStatus.HEALTHY, self.complete)

    def grace(self) -> StatusReport[GraceStatus]:
        """Judge the workload once the grace period is over.

        Returns:
            `Down` without a single ready pod (unless none is wanted), `Degraded` while anything is missing, else
            `Healthy`.
        """
        if self.ready == 0 and self.desired > 0:
            return StatusReport(GraceStatus.DOWN, f"No {self.pods} are ready")
        stale = self._stale(ApplyOperation.NONE)
        if stale is not None:
            return StatusReport(GraceStatus.DEGRADED, stale.reason)
        if self.ready != self.desired:
            return StatusReport(GraceStatus.DEGRADED, f"{self.kind} partially available")
        if self.pending:
            return StatusReport(GraceStatus.DEGRADED, self.pending)
        return StatusReport(GraceStatus.HEALTHY, self.complete)

    def _stale(self, operation: ApplyOperation) -> StatusReport[AliveStatus] | None:
        status, metadata = self.live.status, self.live.metadata
        return stale_generation_report(
            operation,
            observed=status.observed_generation if status else None,
            generation=metadata.generation if metadata else None,
            controller=self.controller,
        )


def scaled_to_zero_report(kind: str, running: int) -> StatusReport[SuspensionStatus]:
    """Judge how far a workload is from having no replicas.

    Args:
        kind: The kind as reasons name it, `Deployment`.
        running: How many replicas its status counts.

    Returns:
        `Suspended` once it counts none.
    """
    if running == 0:
        return StatusReport(SuspensionStatus.SUSPENDED, f"{kind} scaled to zero")
    waiting = f"Waiting for replicas to scale down, {running} replicas still running."
    return StatusReport(SuspensionStatus.SUSPENDING, waiting)


def _progress(operation: ApplyOperation, otherwise: AliveStatus) -> AliveStatus:
    """Name the progress by what this pass did; `otherwise` where it did nothing."""
    known = {ApplyOperation.CREATED: AliveStatus.CREATING, ApplyOperation.UPDATED: AliveStatus.UPDATING}
    return known.get(operation, otherwise)
