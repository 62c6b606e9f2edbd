"""The result of a sync, and how it changes if a write fails.

A decision has the values to write, and the state that is valid once the writes succeeded. The Scale is written before
the status, and the API server may reject either. Then the decision has to be corrected: a scale event that did not
happen must not enter the history.
"""

from typing import Literal, NamedTuple

from ocf.autoscaling.algorithm.history import History
from ocf.autoscaling.algorithm.snapshot import Snapshot
from ocf.autoscaling.algorithm.status import HpaCondition, Status
from ocf.autoscaling.algorithm.status_builder import HpaEvent, StatusBuilder
from ocf.autoscaling.algorithm.trace import Trace

__all__ = ["Decision", "PendingRescale", "SyncError"]


class SyncError(NamedTuple):
    """The error of a sync; the sync may have made a decision nevertheless.

    Args:
        kind: `spec` if the cause is the spec of the HPA, otherwise `internal`.
        message: The error message.
        ended: Whether it ended the sync; otherwise the sync went on with the metrics that could be read.
    """

    kind: Literal["spec", "internal"]
    message: str
    ended: bool = True


class PendingRescale(NamedTuple):
    """The state of a decision before the Scale is written.

    Args:
        history: The history without the scale event.
    """

    reason: str
    conditions: tuple[HpaCondition, ...]
    events: tuple[HpaEvent, ...]
    history: History


class Decision(NamedTuple):
    """The result of a sync.

    Args:
        snapshot: The snapshot that the decision is based on.
        desired: The desired number of replicas.
        status: The status of the HPA once the Scale is written.
        events: The events about the HPA once the Scale is written, in order.
        history: The history for the next sync once the Scale is written.
        error: The error of the sync; None if it had none.
        trace: The numbers and the rule that led to the decision.
        pending_rescale: The state until the Scale is written; None if the Scale does not have to be written.
    """

    snapshot: Snapshot
    desired: int
    status: Status
    events: tuple[HpaEvent, ...]
    history: History
    error: SyncError | None
    trace: Trace
    pending_rescale: PendingRescale | None = None

    @property
    def rescale(self) -> bool:
        """Whether `desired` is to be written to the Scale."""
        return self.pending_rescale is not None

    @property
    def status_changed(self) -> bool:
        """Whether the status differs from the one that was read, and has to be written."""
        return not self.status.equals(self.snapshot.status)

    @property
    def action(self) -> Literal["scale_up", "scale_down", "none"]:
        """The label `action` of the controller's metrics."""
        current = self.trace.current
        if self.pending_rescale is None or current is None:
            return "none"
        return "scale_up" if self.desired > current else "scale_down"

    def after_scale_write_failed(self, message: str) -> "Decision":
        """Return the decision as it is after the write of the Scale failed.

        Args:
            message: The error message of the API server.

        Returns:
            A decision without a rescale and without a scale event; its status keeps the previous desired replicas.
        """
        if self.pending_rescale is None:
            return self
        before = self.snapshot.status
        builder = StatusBuilder(self.pending_rescale.conditions, self.trace.now)
        failed = f"the HPA controller was unable to update the target scale: {message}"
        builder.set("AbleToScale", "False", "FailedUpdateScale", failed)
        builder.warn(
            "FailedRescale", f"New size: {self.desired}; reason: {self.pending_rescale.reason}; error: {message}"
        )
        return self._replace(
            # Current replicas and metrics are new, but the status does not claim a number of replicas that was not
            # written.
            status=self.status._replace(
                desired_replicas=before.desired_replicas,
                last_scale_time=before.last_scale_time,
                conditions=builder.conditions,
            ),
            events=(*self.pending_rescale.events, *builder.events),
            history=self.pending_rescale.history,
            error=SyncError("internal", f"failed to rescale {self.snapshot.autoscaler.reference}: {message}"),
            pending_rescale=None,
        )

    def after_status_write_failed(self, message: str) -> "Decision":
        """Return the decision as it is after the write of the status failed.

        An error that ended the sync before remains the error of the sync.

        Args:
            message: The error message of the API server.
        """
        events = list(self.events)
        # The status of a sync without a proposal is written between the events about it.
        position = len(events) - bool(events and events[-1].reason == "FailedComputeMetricsReplicas")
        events.insert(position, HpaEvent("Warning", "FailedUpdateStatus", message))
        error = self.error
        # A partial metric failure is replaced by this error, as in reconcileAutoscaler; after an error that ended the
        # sync the controller only logs it.
        if error is None or not error.ended:
            name = self.snapshot.autoscaler.name
            error = SyncError("internal", f"failed to update status for {name}: {message}")
        return self._replace(events=tuple(events), error=error)
