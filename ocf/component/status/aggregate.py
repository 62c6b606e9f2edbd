"""From what the resources report to the one condition of a component.

Everything here is a function of values and an instant: what was stored, what is reported now, and how long the
component may take.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from ocf.component.status.conditions import Condition, next_condition
from ocf.component.status.reasons import CONVERGING, OUTSIDE_CONVERGENCE, PROGRESSING, READY, STICKY, Reason
from ocf.concepts import GraceStatus, StatusReport, SuspensionStatus
from ocf.objects.timestamps import parse_time

__all__ = ["ResourceObservation", "converging_condition", "grace_is_over", "grace_remaining", "suspending_condition"]


@dataclass(frozen=True, slots=True)
class ResourceObservation:
    """What a resource reports in a pass.

    Args:
        resource: Identity of the resource.
        report: Its report.
        grade: How it is judged once the grace period is over; None before, and for a resource that cannot be judged.
    """

    resource: str
    report: StatusReport[Any]
    grade: StatusReport[GraceStatus] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether nothing is left to wait for."""
        return Reason(self.report.status) in READY

    @property
    def is_blocked(self) -> bool:
        """Whether it waits for something else than itself; then nobody has to judge it."""
        return bool(self.report.status == Reason.BLOCKED)


def converging_condition(
    observations: Sequence[ResourceObservation],
    *,
    previous: Condition,
    generation: int,
    now: datetime,
    grace_period: timedelta = timedelta(0),
) -> Condition:
    """Judge a component that is being reconciled.

    Args:
        observations: What the resources that count report, in order of registration; a static resource reports nothing.
        previous: The stored condition.
        generation: `metadata.generation` of the owner.
        now: The instant of this pass.
        grace_period: How long it may take to become ready before it is called degraded or down; zero means for ever.

    Returns:
        `True/Healthy` if everything is ready, else `False` with the reason and the message of the summary, or of the
        verdict after the grace period.
    """
    reports = [observation.report for observation in observations]
    reasons = [Reason(report.status) for report in reports]
    move = partial(next_condition, generation=generation, now=now)
    if all(observation.is_ready for observation in observations):
        return move(Reason.HEALTHY, "Component is healthy.", ready=True, previous=previous)
    winner = max(reasons, key=lambda reason: reason.priority)
    message = _joined(
        report for report, reason in zip(reports, reasons, strict=True) if reason.severity == winner.severity
    )
    if previous.reason in OUTSIDE_CONVERGENCE:
        # Even from False to False: time spent suspended or waiting is no time spent converging.
        previous = replace(previous, last_transition_time="")
    elif _sticks(previous.reason, winner):
        winner = previous.reason
    verdict = _graded(observations) if grace_is_over(previous, grace_period, now) else None
    reason, message = verdict or (winner, message)
    return move(reason, message, ready=False, previous=previous)


def grace_remaining(condition: Condition, grace_period: timedelta, now: datetime) -> timedelta | None:
    """Tell when a component that converges has to be judged again.

    Args:
        condition: Its condition after this pass.
        grace_period: Its grace period.
        now: The instant of this pass.

    Returns:
        What is left of the period, to the second after its end, because stored times are cut to whole seconds; None
        where nothing is left to wait for.

    Example:
        >>> from datetime import UTC
        >>> from ocf.component.status.conditions import failed_condition, stored_condition
        >>> start = datetime(2026, 1, 31, 12, 0, 0, 700_000, tzinfo=UTC)
        >>> fresh = stored_condition([], "WebReady", 1)
        >>> creating = failed_condition("x", previous=fresh, generation=1, now=start, reason=Reason.CREATING)
        >>> grace_remaining(creating, timedelta(minutes=5), start).total_seconds()
        300.3
    """
    if not grace_period or condition.status or condition.reason not in CONVERGING:
        return None
    left = _deadline(condition, grace_period) + timedelta(seconds=1) - now
    return left if left > timedelta(0) else None


def _deadline(condition: Condition, grace_period: timedelta) -> datetime:
    return parse_time(condition.last_transition_time) + grace_period


def grace_is_over(previous: Condition, grace_period: timedelta, now: datetime) -> bool:
    """Tell whether a component has been converging for longer than its grace period.

    Args:
        previous: The stored condition.
        grace_period: The grace period.
        now: The instant of this pass.
    """
    if not grace_period or previous.status or not previous.last_transition_time:
        return False
    return previous.reason not in OUTSIDE_CONVERGENCE and now > _deadline(previous, grace_period)


def _graded(observations: Sequence[ResourceObservation]) -> tuple[Reason, str] | None:
    """Judge what is not ready after the grace period; None where every judgement says healthy."""
    grades = [grade for observation in observations if (grade := _grade(observation)) is not None]
    if not grades:
        return Reason.DOWN, "Component is down: Component failed to converge within grace period."
    worst = max((grade.status for grade in grades), key=lambda status: status.severity)
    if worst is GraceStatus.HEALTHY:
        return None
    message = _joined(grade for grade in grades if grade.status is worst)
    return Reason(worst), f"Component is {worst.lower()}: {message}"


def _grade(observation: ResourceObservation) -> StatusReport[GraceStatus] | None:
    if observation.is_blocked:
        return StatusReport(GraceStatus.DOWN, observation.report.reason or f"{observation.resource} is blocked")
    return observation.grade


def suspending_condition(
    reports: Sequence[StatusReport[SuspensionStatus]], *, previous: Condition, generation: int, now: datetime
) -> Condition:
    """Judge a component that is being suspended.

    Args:
        reports: What the resources that can be suspended report, in order of registration.
        previous: The stored condition.
        generation: `metadata.generation` of the owner.
        now: The instant of this pass.

    Returns:
        `True/Suspended` once nothing is left to do, else `False` with the state that is furthest from it.
    """
    move = partial(next_condition, previous=previous, generation=generation, now=now)
    furthest = max((report.status for report in reports), key=lambda status: status.distance, default=None)
    if furthest is None or furthest is SuspensionStatus.SUSPENDED:
        return move(Reason.SUSPENDED, "All resources are suspended.", ready=True)
    return move(Reason(furthest), _joined(report for report in reports if report.status is furthest), ready=False)


def _sticks(previous: Reason, winner: Reason) -> bool:
    """Tell whether the old word stays; failing and blocked always show through."""
    return previous in STICKY and winner in PROGRESSING


def _joined(reports: Iterable[StatusReport[Any]]) -> str:
    return "; ".join(report.reason for report in reports if report.reason)
