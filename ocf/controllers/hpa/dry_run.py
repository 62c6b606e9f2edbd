"""Dry run: what the controller would do, next to what the running controller did.

The controller that runs the autoscaler scales the target between two of our reconciles. The scaling policies of a
`behavior` must count those changes, or the dry run would diverge from the running controller. So the history has the
changes of the running controller, and not those that were only planned.
"""

from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from ocf.autoscaling.algorithm import Autoscaler, History, Scale, Snapshot
from ocf.autoscaling.algorithm.history import add_scale_event
from ocf.controllers.hpa.plan import Plan
from ocf.objects import ObjectKey
from ocf.objects.timestamps import format_time

__all__ = ["DryRunResult", "ScaleObservation", "dry_run", "with_foreign_change"]

_NO_TIME: Final = timedelta(0)


class ScaleObservation(NamedTuple):
    """The scale of an autoscaler's target as observed in one reconcile.

    Args:
        replicas: The replicas in the spec of the target; None if they could not be read.
        scaled: The `lastScaleTime` of its status; None if it was never scaled.
    """

    replicas: int | None
    scaled: datetime | None

    @classmethod
    def of(cls, snapshot: Snapshot) -> "ScaleObservation":
        """Return the observation of a snapshot."""
        scale = snapshot.scale
        return cls(scale.replicas if isinstance(scale, Scale) else None, snapshot.status.last_scale_time)


class DryRunResult(NamedTuple):
    """What would be done with an autoscaler, next to what its controller did.

    Args:
        key: The autoscaler.
        at: The time of the reconcile.
        current: The replicas in the spec of its target; None if they could not be read.
        wanted: The replicas that would be written; equal to `current` if nothing would be written.
        rule: The rule that decided.
        reported: The desired replicas in its status; None if no controller has written it yet.
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
        """Whether the controller that runs it wants the same replicas."""
        return self.wanted == self.reported

    def as_json(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
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
        """Return the result as one line of text."""
        what = f"would keep {self.wanted}"
        if self.current is None:
            what = "cannot read its scale"
        elif self.wanted != self.current:
            what = f"would scale from {self.current} to {self.wanted}"
        comparison = f"its controller wanted {self.reported}, {'agrees' if self.agrees else 'differs'}"
        if self.reported is None:
            comparison = "no controller has reconciled it yet"
        problem = f"; {self.problem}" if self.problem else ""
        return (
            f"{format_time(self.at)} {self.key.namespace}/{self.key.name}: {what} ({self.rule}); {comparison}{problem}"
        )


def dry_run(key: ObjectKey, plan: Plan) -> DryRunResult:
    """Return what a plan would have done."""
    decision, trace = plan.required_decision, plan.required_decision.trace
    rule, reported = str(trace.decided_by), plan.before.desired_replicas if plan.before.conditions else None
    return DryRunResult(key, trace.now, trace.current, decision.desired, rule, reported, plan.problem)


def with_foreign_change(
    history: History,
    autoscaler: Autoscaler,
    before: ScaleObservation | None,
    seen: ScaleObservation,
    *,
    ahead: timedelta = _NO_TIME,
) -> History:
    """Add to the history how another controller scaled the target since the last reconcile.

    Args:
        before: The observation of the last reconcile; None for the first one.
        ahead: How far the time axis of the history is ahead of the clock that `seen.scaled` comes from.

    Returns:
        The history with the change, if there is one, the status has its time, and the autoscaler has a `behavior`.
    """
    behavior = autoscaler.behavior
    if behavior is None or before is None or before.replicas is None or seen.replicas is None:
        return history
    change = seen.replicas - before.replicas
    # Without a later `lastScaleTime` another client has changed the replicas; a controller counts its own rescales
    # only.
    if not change or seen.scaled is None or seen.scaled == before.scaled:
        return history
    at = seen.scaled + ahead
    if change > 0:
        events = add_scale_event(history.scale_ups, change, longest=behavior.up.longest_period, now=at)
        return history._replace(scale_ups=events)
    events = add_scale_event(history.scale_downs, -change, longest=behavior.down.longest_period, now=at)
    return history._replace(scale_downs=events)
