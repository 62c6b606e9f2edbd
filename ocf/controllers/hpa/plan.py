"""`Plan`: the effect of one reconcile as a value: replicas, status, events, and the delay until the next reconcile.

`decide` is the algorithm. This module adds what only a controller needs: the status and events of an autoscaler that
it must not run.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm import Decision, History, HpaEvent, Snapshot, Status, decide
from ocf.autoscaling.algorithm.status_builder import StatusBuilder
from ocf.controllers.hpa.parsed_autoscaler import ParsedAutoscaler
from ocf.controllers.hpa.target_index import TargetUser

__all__ = ["AutoscalerPhase", "Plan", "plan", "reject"]


class AutoscalerPhase(StrEnum):
    """How the controller treats an autoscaler; the values are those of the `state` label of the metric."""

    WAITING = "waiting"
    """It has not been reconciled yet."""
    RUNNING = "running"
    """It is run."""
    INVALID = "invalid"
    """It is not run, because its spec is invalid."""
    REFUSED = "refused"
    """It is not run, because another autoscaler has the same target."""
    TAKING_OVER = "taking_over"
    """It is not run yet: it is claimed, and another controller that still runs it would remove the claim."""
    LEFT_ALONE = "left_alone"
    """It is not run and not written, because another controller runs it, or may run it."""


class Plan(NamedTuple):
    """The effect of one reconcile.

    Args:
        phase: How the autoscaler is treated.
        before: Its status as read.
        status: Its status after the reconcile.
        events: Events about it, in order.
        delay: The delay until the next reconcile.
        decision: The replicas and the reason; None if the autoscaler is not run.
    """

    phase: AutoscalerPhase
    before: Status
    status: Status
    events: tuple[HpaEvent, ...]
    delay: timedelta
    decision: Decision | None = None

    @property
    def replicas(self) -> int | None:
        """The replicas to write to the Scale; None if the Scale is not written."""
        return self.decision.desired if self.decision is not None and self.decision.rescale else None

    @property
    def status_changed(self) -> bool:
        """Whether the status differs from the one that was read, and so is written."""
        return not self.status.equals(self.before)

    @property
    def required_decision(self) -> Decision:
        """The decision.

        Raises:
            TypeError: If the autoscaler is not run, and so there is no decision.
        """
        if self.decision is None:
            raise TypeError(f"the plan has no decision: the autoscaler is {self.phase}")
        return self.decision

    @property
    def problem(self) -> str:
        """The error of the decision, or the reason why the autoscaler is not run; empty if there is neither."""
        if self.decision is None:
            # A rejected autoscaler ends with the event that says why.
            return self.events[-1].message
        return "" if self.decision.error is None else self.decision.error.message

    def after_status_write_failed(self, message: str) -> tuple["Plan", str]:
        """Return the plan after the API server rejected the status, and what failed.

        Args:
            message: The message of the API server.
        """
        if self.decision is None:
            return self, f"{self.problem}; its status could not be written: {message}"
        failed = self.with_decision(self.decision.after_status_write_failed(message))
        return failed, failed.problem

    def with_decision(self, decision: Decision) -> "Plan":
        """Return the plan after a write of it failed.

        Args:
            decision: The decision with the failed write.
        """
        return self._replace(status=decision.status, events=decision.events, decision=decision)


def plan(
    parsed: ParsedAutoscaler,
    snapshot: Snapshot,
    history: History,
    *,
    now: datetime,
    history_now: datetime | None = None,
) -> Plan:
    """Plan the reconcile of an autoscaler that is run.

    Args:
        parsed: The autoscaler.
        snapshot: The input of the algorithm.
        history: The history of the reconciles before.
        now: The time of the reconcile.
        history_now: The time of the reconcile on the time axis of the history; None if that is the axis of `now`.

    Example:
        >>> from datetime import UTC
        >>> from ocf.autoscaling.algorithm import Autoscaler, Scale, Settings
        >>> from ocf.objects import ObjectKey
        >>> web = Autoscaler(namespace="shop", name="web", maximum=9)
        >>> key = ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", "web", "shop")
        >>> parsed = ParsedAutoscaler(key, "1", ObjectKey("apps/v1", "Deployment", "web", "shop"), Settings(), web)
        >>> seen = Snapshot(autoscaler=web, scale=Scale(11, 11, "app=web"))
        >>> found = plan(parsed, seen, History(), now=datetime(2026, 1, 31, 12, tzinfo=UTC))
        >>> found.replicas, found.delay.seconds
        (9, 15)
    """
    decision = decide(snapshot, history, settings=parsed.settings, now=now, history_now=history_now)
    delay = parsed.settings.sync_period
    return Plan(AutoscalerPhase.RUNNING, snapshot.status, decision.status, decision.events, delay, decision)


def reject(parsed: ParsedAutoscaler, status: Status, conflicting: TargetUser | None, *, now: datetime) -> Plan:
    """Plan the reconcile of an autoscaler that is not run: write the reason to its conditions, and scale nothing.

    Args:
        parsed: The autoscaler.
        status: Its status as read.
        conflicting: The autoscaler that has the same target; None if the spec is invalid.
        now: The time of the reconcile.

    Example:
        >>> from datetime import UTC
        >>> from ocf.autoscaling.algorithm import Settings
        >>> from ocf.objects import ObjectKey
        >>> key = ObjectKey("autoscaling.ocf.dev/v1alpha1", "HorizontalAutoscaler", "web", "shop")
        >>> parsed = ParsedAutoscaler(key, "1", ObjectKey("apps/v1", "Deployment", "web", "shop"), Settings())
        >>> other = TargetUser("2026-01-31T12:00:00Z", "old", "HorizontalPodAutoscaler")
        >>> print(reject(parsed, Status(), other, now=datetime(2026, 1, 31, 12, tzinfo=UTC)).events[0].message)
        Deployment shop/web is scaled by HorizontalPodAutoscaler shop/old; delete that one, or name another target here
    """
    phase, reason, message = AutoscalerPhase.INVALID, "InvalidSpec", f"the spec cannot be run: {parsed.problem}"
    if conflicting is not None:
        target, namespace = parsed.target, parsed.key.namespace
        phase, reason = AutoscalerPhase.REFUSED, "TargetClaimed"
        message = (
            f"{target.kind} {namespace}/{target.name} is scaled by {conflicting.kind} {namespace}/{conflicting.name};"
            " delete that one, or name another target here"
        )
    builder = StatusBuilder(status.conditions, now)
    for kind in _RUN_CONDITIONS:
        builder.set(kind, "False", reason, message)
    builder.warn(reason, message)
    after = status._replace(conditions=builder.conditions)
    return Plan(phase, status, after, tuple(builder.events), parsed.settings.sync_period)


_RUN_CONDITIONS: Final = ("AbleToScale", "ScalingActive")
