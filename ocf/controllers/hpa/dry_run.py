"""A dry run: what the controller would do, next to what happened.

The controller that really runs the autoscaler changes the target between two of our rounds. For the limits of a
`behavior` those changes count as if they were ours, or else the rehearsal would drift away from what it rehearses: so
they are remembered, and what we only would have done is not.
"""

from datetime import datetime
from typing import Any, NamedTuple

from ocf.autoscaling.algorithm import Autoscaler, History, Scale, Snapshot
from ocf.autoscaling.algorithm.history import add_scale_event
from ocf.controllers.hpa.plan import Plan
from ocf.objects import ObjectKey
from ocf.objects.timestamps import format_time

__all__ = ["DryRunResult", "ScaleObservation", "dry_run", "with_foreign_change"]


class ScaleObservation(NamedTuple):
    """What was seen of an autoscaler in a round.

    Args:
        replicas: What its target should have; None where that could not be read.
        scaled: When it was scaled last, as its status says; None if never.
    """

    replicas: int | None
    scaled: datetime | None

    @classmethod
    def of(cls, snapshot: Snapshot) -> "ScaleObservation":
        """Return the scene of a snapshot.

        Args:
            snapshot: What is seen.
        """
        scale = snapshot.scale
        return cls(scale.replicas if isinstance(scale, Scale) else None, snapshot.status.last_scale_time)


class DryRunResult(NamedTuple):
    """What would be done with an autoscaler, next to what is done.

    Args:
        key: The autoscaler.
        at: When.
        current: The replicas that its target should have; None where that could not be read.
        wanted: What we would write; the same as `current` for nothing.
        rule: Which rule had the last word.
        reported: What the controller that runs it wanted last; None where none has looked at it yet.
        problem: What failed; empty if nothing did.
    """

    key: ObjectKey
    at: datetime
    current: int | None
    wanted: int
    rule: str
    reported: int | None
    problem: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the controller that runs it wanted the same."""
        return self.wanted == self.reported

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "time": format_time(self.at),
            "namespace": self.key.namespace,
            "name": self.key.name,
            "current": self.current,
            "wanted": self.wanted,
            "rule": self.rule,
            "reported": self.reported,
            "agrees": self.agrees,
            "problem": self.problem,
        }

    def __str__(self) -> str:
        """For people, in one line."""
        what = f"would leave it at {self.wanted}"
        if self.current is None:
            what = "cannot tell"
        elif self.wanted != self.current:
            what = f"would scale from {self.current} to {self.wanted}"
        told = f"its controller wanted {self.reported}, {'agrees' if self.agrees else 'differs'}"
        if self.reported is None:
            told = "no controller has looked at it yet"
        problem = f"; {self.problem}" if self.problem else ""
        return f"{format_time(self.at)} {self.key.namespace}/{self.key.name}: {what} ({self.rule}); {told}{problem}"


def dry_run(key: ObjectKey, plan: Plan) -> DryRunResult:
    """Say what a plan would have done.

    Args:
        key: The autoscaler.
        plan: The plan of a round; with a decision.
    """
    decision, trace = plan.required_decision, plan.required_decision.trace
    rule, reported = str(trace.decided_by), plan.before.desired_replicas if plan.before.conditions else None
    return DryRunResult(key, trace.now, trace.current, decision.desired, rule, reported, plan.problem)


def with_foreign_change(
    history: History, autoscaler: Autoscaler, before: ScaleObservation | None, seen: ScaleObservation
) -> History:
    """Remember what another controller did since the last round as if it had been done here.

    Args:
        history: What is remembered.
        autoscaler: The autoscaler.
        before: What was seen the last time; None for the first time.
        seen: What is seen now.

    Returns:
        The history with the change, where there was one, the status tells of it, and limits count it.
    """
    behavior = autoscaler.behavior
    if behavior is None or before is None or before.replicas is None or seen.replicas is None:
        return history
    change = seen.replicas - before.replicas
    if not change or seen.scaled is None or seen.scaled == before.scaled:
        return history
    if change > 0:
        events = add_scale_event(history.scale_ups, change, longest=behavior.up.longest_period, now=seen.scaled)
        return history._replace(scale_ups=events)
    events = add_scale_event(history.scale_downs, -change, longest=behavior.down.longest_period, now=seen.scaled)
    return history._replace(scale_downs=events)
