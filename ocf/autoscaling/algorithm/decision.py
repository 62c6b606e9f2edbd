"""What comes out of a round, and what becomes of it when a write fails.

A decision says what is to be written and what is true once that has worked. The Scale is written before the status, and
both may be refused; then less is true, and a workload that was not resized must not be remembered as if it were.
"""

from typing import Literal, NamedTuple

from ocf.autoscaling.algorithm.history import History
from ocf.autoscaling.algorithm.snapshot import Snapshot
from ocf.autoscaling.algorithm.status import HpaCondition, Status
from ocf.autoscaling.algorithm.status_builder import HpaEvent, StatusBuilder
from ocf.autoscaling.algorithm.trace import Trace

__all__ = ["Decision", "PendingRescale", "SyncError"]


class SyncError(NamedTuple):
    """What a round ends with when something failed; it may have decided nevertheless.

    Args:
        kind: `spec` if the HPA is to blame, else `internal`.
        message: What failed.
    """

    kind: Literal["spec", "internal"]
    message: str


class PendingRescale(NamedTuple):
    """What is true of a decision to resize as long as the Scale has not been written.

    Args:
        reason: Why the workload is resized.
        conditions: The conditions so far.
        events: The events so far.
        history: What is remembered, without the change.
    """

    reason: str
    conditions: tuple[HpaCondition, ...]
    events: tuple[HpaEvent, ...]
    history: History


class Decision(NamedTuple):
    """What a round decided.

    Args:
        snapshot: What was seen.
        desired: The number of replicas that the workload should have.
        status: The status of the HPA, once the Scale is written.
        events: Events about the HPA, in order, likewise.
        history: What is remembered for the next round, likewise.
        error: What failed; None if nothing did.
        trace: How it came about.
        pending_rescale: What is true until the Scale is written; None if it is not to be.
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
        """Whether the status is to be written: if it says something else than the one that was read."""
        return not self.status.equals(self.snapshot.status)

    @property
    def action(self) -> Literal["scale_up", "scale_down", "none"]:
        """What is done, in the words of the controller's metrics."""
        current = self.trace.current
        if self.pending_rescale is None or current is None:
            return "none"
        return "scale_up" if self.desired > current else "scale_down"

    def after_scale_write_failed(self, message: str) -> "Decision":
        """Return what is true if the Scale could not be written.

        Args:
            message: Why, in the words of the API server.

        Returns:
            A decision that resizes nothing and remembers no change; its status keeps the number of the one before.
        """
        if self.pending_rescale is None:
            return self
        before = self.snapshot.status
        board = StatusBuilder(self.pending_rescale.conditions, self.trace.now)
        failed = f"the HPA controller was unable to update the target scale: {message}"
        board.set("AbleToScale", "False", "FailedUpdateScale", failed)
        board.warn(
            "FailedRescale", f"New size: {self.desired}; reason: {self.pending_rescale.reason}; error: {message}"
        )
        return self._replace(
            status=self.status._replace(
                desired_replicas=before.desired_replicas,
                last_scale_time=before.last_scale_time,
                conditions=board.conditions,
            ),
            events=(*self.pending_rescale.events, *board.events),
            history=self.pending_rescale.history,
            error=SyncError("internal", f"failed to rescale {self.snapshot.autoscaler.reference}: {message}"),
            pending_rescale=None,
        )

    def after_status_write_failed(self, message: str) -> "Decision":
        """Return what is true if the status could not be written.

        Args:
            message: Why, in the words of the API server.
        """
        name = self.snapshot.autoscaler.name
        return self._replace(
            events=(*self.events, HpaEvent("Warning", "FailedUpdateStatus", message)),
            error=SyncError("internal", f"failed to update status for {name}: {message}"),
        )
