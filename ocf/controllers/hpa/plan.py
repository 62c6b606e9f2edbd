"""What a round does, as a value: which number and which status are written, which events are told, when to come back.

`decide` is the algorithm. Around it stands what only a controller has to know: whether it may run the autoscaler at
all, and what to say where it may not.
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
    """What is done with an autoscaler."""

    WAITING = "waiting"
    """It was not looked at yet."""
    RUNNING = "running"
    """It is run."""
    INVALID = "invalid"
    """It is not run: its spec cannot be."""
    REFUSED = "refused"
    """It is not run: another autoscaler has its target."""
    LEFT_ALONE = "left_alone"
    """It is not run, and not even told: another controller runs it."""


class Plan(NamedTuple):
    """What a round does.

    Args:
        state: What is done with the autoscaler.
        before: Its status as it was read.
        status: Its status after the round.
        events: Events about it, in order.
        delay: When to look at it again.
        decision: How many replicas, and why; None where it is not run.
    """

    phase: AutoscalerPhase
    before: Status
    status: Status
    events: tuple[HpaEvent, ...]
    delay: timedelta
    decision: Decision | None = None

    @property
    def replicas(self) -> int | None:
        """The number that is written to the Scale; None where none is."""
        return self.decision.desired if self.decision is not None and self.decision.rescale else None

    @property
    def status_changed(self) -> bool:
        """Whether the status is written: if it says something else than what was read."""
        return not self.status.equals(self.before)

    @property
    def required_decision(self) -> Decision:
        """The decision.

        Raises:
            TypeError: If the autoscaler is not run, so that there is none.
        """
        if self.decision is None:
            raise TypeError(f"nothing was decided, as the autoscaler is {self.phase}")
        return self.decision

    @property
    def problem(self) -> str:
        """What failed, or why the autoscaler is not run; empty if all is well."""
        if self.decision is None:
            return self.events[-1].message
        return "" if self.decision.error is None else self.decision.error.message

    def after_status_write_failed(self, message: str) -> tuple["Plan", str]:
        """Return what is true if the status could not be written, and what failed.

        Args:
            message: Why, in the words of the API server.
        """
        if self.decision is None:
            return self, f"{self.problem}; its status could not be written: {message}"
        refused = self.with_decision(self.decision.after_status_write_failed(message))
        return refused, refused.problem

    def with_decision(self, decision: Decision) -> "Plan":
        """Return the plan after something of it was refused.

        Args:
            decision: What is true now.
        """
        return self._replace(status=decision.status, events=decision.events, decision=decision)


def plan(parsed: ParsedAutoscaler, snapshot: Snapshot, history: History, *, now: datetime) -> Plan:
    """Plan the round of an autoscaler that is run.

    Args:
        parsed: The autoscaler.
        snapshot: What is seen.
        history: What is remembered of the rounds before.
        now: The instant of the round.

    Example:
        >>> from datetime import UTC
        >>> from ocf.autoscaling.algorithm import Autoscaler, Scale, Settings
        >>> from ocf.objects import ObjectKey
        >>> web = Autoscaler(namespace="shop", name="web", maximum=9)
        >>> key = ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", "web", "shop")
        >>> subject = ParsedAutoscaler(key, "1", ObjectKey("apps/v1", "Deployment", "web", "shop"), Settings(), web)
        >>> seen = Snapshot(autoscaler=web, scale=Scale(11, 11, "app=web"))
        >>> found = plan(subject, seen, History(), now=datetime(2026, 1, 31, 12, tzinfo=UTC))
        >>> found.replicas, found.delay.seconds
        (9, 15)
    """
    decision = decide(snapshot, history, settings=parsed.settings, now=now)
    delay = parsed.settings.sync_period
    return Plan(AutoscalerPhase.RUNNING, snapshot.status, decision.status, decision.events, delay, decision)


def reject(parsed: ParsedAutoscaler, status: Status, conflicting: TargetUser | None, *, now: datetime) -> Plan:
    """Plan the round of an autoscaler that is not run: say why, and touch nothing else.

    Args:
        parsed: The autoscaler.
        status: Its status as it was read.
        conflicting: Who has its target; None where its spec cannot be run.
        now: The instant of the round.

    Example:
        >>> from datetime import UTC
        >>> from ocf.autoscaling.algorithm import Settings
        >>> from ocf.objects import ObjectKey
        >>> key = ObjectKey("autoscaling.ocf.dev/v1alpha1", "HorizontalAutoscaler", "web", "shop")
        >>> subject = ParsedAutoscaler(key, "1", ObjectKey("apps/v1", "Deployment", "web", "shop"), Settings())
        >>> rival = TargetUser("2026-01-31T12:00:00Z", "old", "HorizontalPodAutoscaler")
        >>> print(reject(subject, Status(), rival, now=datetime(2026, 1, 31, 12, tzinfo=UTC)).events[0].message)
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
    board = StatusBuilder(status.conditions, now)
    for kind in _RUN_CONDITIONS:
        board.set(kind, "False", reason, message)
    board.warn(reason, message)
    after = status._replace(conditions=board.conditions)
    return Plan(phase, status, after, tuple(board.events), parsed.settings.sync_period)


_RUN_CONDITIONS: Final = ("AbleToScale", "ScalingActive")
