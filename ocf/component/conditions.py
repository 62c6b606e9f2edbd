"""From what the resources report to the one condition of a component.

Two tables drive it. *Priority* chooses the reason: the most telling word wins. *Severity* chooses whose sentences
make the
message: all reports that weigh as much as the winner. Everything here is a function of values and an instant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from ocf.concepts import GraceStatus, StatusReport, SuspensionStatus, format_time, parse_time
from ocf.objects import Manifest

__all__ = [
    "SUSPENSION_REASONS",
    "Condition",
    "Observation",
    "Reason",
    "aggregate",
    "converging",
    "failed",
    "grace_remaining",
    "stored_condition",
    "suspending",
    "told",
]


class Reason(StrEnum):
    """Why a component's condition is what it is."""

    ERROR = "Error"
    FEATURE_GATE_ERROR = "FeatureGateError"
    DOWN = "Down"
    DEGRADED = "Degraded"
    PENDING_SUSPENSION = "PendingSuspension"
    SUSPENDING = "Suspending"
    SUSPENDED = "Suspended"
    DISABLED = "Disabled"
    FAILING = "Failing"
    OPERATION_FAILING = "OperationFailing"
    TASK_FAILING = "TaskFailing"
    BLOCKED = "Blocked"
    PREREQUISITE_NOT_MET = "PrerequisiteNotMet"
    SCALING = "Scaling"
    TASK_RUNNING = "TaskRunning"
    UPDATING = "Updating"
    CREATING = "Creating"
    OPERATION_PENDING = "OperationPending"
    TASK_PENDING = "TaskPending"
    HEALTHY = "Healthy"
    OPERATIONAL = "Operational"
    COMPLETED = "Completed"
    UNKNOWN = "Unknown"

    @property
    def priority(self) -> int:
        """The higher, the more it says; the highest among the reports becomes the condition's reason."""
        return _PRIORITY[self]

    @property
    def severity(self) -> int:
        """The reports that weigh as much as the winner are joined to the message; 0 for words no resource reports."""
        return _SEVERITY.get(self, 0)


_PRIORITY: Final = {
    Reason.ERROR: 20,
    Reason.FEATURE_GATE_ERROR: 20,
    Reason.DOWN: 19,
    Reason.DEGRADED: 18,
    Reason.PENDING_SUSPENSION: 17,
    Reason.SUSPENDING: 16,
    Reason.SUSPENDED: 15,
    Reason.DISABLED: 14,
    Reason.FAILING: 13,
    Reason.OPERATION_FAILING: 12,
    Reason.TASK_FAILING: 11,
    Reason.BLOCKED: 10,
    Reason.PREREQUISITE_NOT_MET: 10,
    Reason.SCALING: 9,
    Reason.TASK_RUNNING: 8,
    Reason.UPDATING: 7,
    Reason.CREATING: 6,
    Reason.OPERATION_PENDING: 5,
    Reason.TASK_PENDING: 4,
    Reason.HEALTHY: 3,
    Reason.OPERATIONAL: 2,
    Reason.COMPLETED: 1,
    Reason.UNKNOWN: 0,
}

_SEVERITY: Final = {
    Reason.FAILING: 5,
    Reason.OPERATION_FAILING: 5,
    Reason.TASK_FAILING: 5,
    Reason.SCALING: 4,
    Reason.TASK_RUNNING: 4,
    Reason.UPDATING: 3,
    Reason.BLOCKED: 2,
    Reason.CREATING: 2,
    Reason.OPERATION_PENDING: 2,
    Reason.TASK_PENDING: 2,
    Reason.HEALTHY: 1,
    Reason.OPERATIONAL: 1,
    Reason.COMPLETED: 1,
}

_READY: Final = frozenset({Reason.HEALTHY, Reason.OPERATIONAL, Reason.COMPLETED})
# These hold their place while others of the kind come and go, so that a rollout keeps one name; see `_sticks`.
_STICKY: Final = frozenset({Reason.CREATING, Reason.UPDATING, Reason.SCALING})
_PROGRESSING: Final = _STICKY | {Reason.TASK_RUNNING, Reason.OPERATION_PENDING, Reason.TASK_PENDING}
# While a component says one of these, its grace period runs.
_CONVERGING: Final = _PROGRESSING | {
    Reason.FAILING,
    Reason.OPERATION_FAILING,
    Reason.TASK_FAILING,
    Reason.BLOCKED,
}
# Coming from one of these a component starts to converge anew, and so does its clock.
_OUTSIDE_CONVERGENCE: Final = frozenset(
    {
        Reason.UNKNOWN,
        Reason.DISABLED,
        Reason.FEATURE_GATE_ERROR,
        Reason.PREREQUISITE_NOT_MET,
        Reason.SUSPENDED,
        Reason.SUSPENDING,
        Reason.PENDING_SUSPENSION,
    }
)
SUSPENSION_REASONS: Final = frozenset({Reason.SUSPENDED, Reason.SUSPENDING, Reason.PENDING_SUSPENSION})


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition of an owner, as `metav1.Condition` has it.

    Args:
        type: What it is about, `WebInterfaceReady`.
        status: Whether it holds; a component never says Unknown.
        reason: One word.
        message: For a person.
        observed_generation: `metadata.generation` of the owner that was looked at.
        last_transition_time: Since when the status holds, RFC 3339.
    """

    type: str
    status: bool
    reason: Reason
    message: str
    observed_generation: int
    last_transition_time: str

    def to_manifest(self) -> Manifest:
        """Return it in API spelling."""
        return {
            "type": self.type,
            "status": "True" if self.status else "False",
            "reason": str(self.reason),
            "message": self.message,
            "observedGeneration": self.observed_generation,
            "lastTransitionTime": self.last_transition_time,
        }


def stored_condition(conditions: Sequence[Manifest], name: str, generation: int) -> Condition:
    """Read a component's condition from its owner.

    Args:
        conditions: `status.conditions` of the owner.
        name: The condition's type.
        generation: `metadata.generation` of the owner.

    Returns:
        The stored condition; one that is absent, or whose reason is none of ours, reads as Unknown.

    Example:
        >>> stored_condition([], "WebReady", 3).message
        'Component has not been reconciled yet.'
    """
    found = next((condition for condition in conditions if condition.get("type") == name), {})
    reason = str(found.get("reason"))
    known = reason in set(Reason)
    return Condition(
        type=name,
        status=found.get("status") == "True",
        reason=Reason(reason) if known else Reason.UNKNOWN,
        message=str(found.get("message", "")) if known else "Component has not been reconciled yet.",
        observed_generation=int(found.get("observedGeneration") or generation),
        last_transition_time=str(found.get("lastTransitionTime") or ""),
    )


@dataclass(frozen=True, slots=True)
class Observation:
    """What a resource reports in a pass.

    Args:
        resource: Identity of the resource.
        report: Its report.
        grade: Judges it once the grace period is over; None for a resource that cannot be judged.
    """

    resource: str
    report: StatusReport[Any]
    grade: Callable[[], StatusReport[GraceStatus]] | None = None


def converging(
    observations: Sequence[Observation],
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
    if _READY.issuperset(reasons):
        return _moved(previous, _verdict(Reason.HEALTHY, "Component is healthy.", ready=True), generation, now)
    winner = max(reasons, key=lambda reason: reason.priority)
    message = _joined(
        report for report, reason in zip(reports, reasons, strict=True) if reason.severity == winner.severity
    )
    if previous.reason in _OUTSIDE_CONVERGENCE:
        # Even from False to False: time spent suspended or waiting is no time spent converging.
        previous = replace(previous, last_transition_time="")
    elif _sticks(previous.reason, winner):
        winner = previous.reason
    verdict = _verdict(winner, message, ready=False)
    if _grace_is_over(previous, grace_period, now):
        verdict = _graded(observations) or verdict
    return _moved(previous, verdict, generation, now)


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
        >>> start = datetime(2026, 1, 31, 12, 0, 0, 700_000, tzinfo=UTC)
        >>> fresh = stored_condition([], "WebReady", 1)
        >>> creating = failed("x", previous=fresh, generation=1, now=start, reason=Reason.CREATING)
        >>> grace_remaining(creating, timedelta(minutes=5), start).total_seconds()
        300.3
    """
    if not grace_period or condition.status or condition.reason not in _CONVERGING:
        return None
    left = _deadline(condition, grace_period) + timedelta(seconds=1) - now
    return left if left > timedelta(0) else None


def _deadline(condition: Condition, grace_period: timedelta) -> datetime:
    return parse_time(condition.last_transition_time) + grace_period


def _grace_is_over(previous: Condition, grace_period: timedelta, now: datetime) -> bool:
    """Tell whether a component has been converging for longer than its grace period."""
    if not grace_period or previous.status or not previous.last_transition_time:
        return False
    return now > _deadline(previous, grace_period)


def _graded(observations: Sequence[Observation]) -> _Verdict | None:
    """Judge what is not ready after the grace period; None where every judgement says healthy."""
    grades = [grade for observation in observations if (grade := _grade(observation)) is not None]
    if not grades:
        return _verdict(
            Reason.DOWN, "Component is down: Component failed to converge within grace period.", ready=False
        )
    worst = max((grade.status for grade in grades), key=lambda status: status.severity)
    if worst is GraceStatus.HEALTHY:
        return None
    message = f"Component is {worst.lower()}: {_joined(grade for grade in grades if grade.status is worst)}"
    return _verdict(Reason(worst), message, ready=False)


def _grade(observation: Observation) -> StatusReport[GraceStatus] | None:
    if observation.report.status == Reason.BLOCKED:
        return StatusReport(GraceStatus.DOWN, observation.report.reason or f"{observation.resource} is blocked")
    return observation.grade() if observation.grade is not None else None


def suspending(
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
    furthest = max((report.status for report in reports), key=lambda status: status.distance, default=None)
    if furthest is None or furthest is SuspensionStatus.SUSPENDED:
        verdict = _verdict(Reason.SUSPENDED, "All resources are suspended.", ready=True)
    else:
        message = _joined(report for report in reports if report.status is furthest)
        verdict = _verdict(Reason(furthest), message, ready=False)
    return _moved(previous, verdict, generation, now)


def told(
    reason: Reason, message: str, *, ready: bool, previous: Condition, generation: int, now: datetime
) -> Condition:
    """Say something that follows from no report.

    Args:
        reason: The word.
        message: The sentence.
        ready: Whether the condition holds.
        previous: The stored condition.
        generation: `metadata.generation` of the owner.
        now: The instant of this pass.
    """
    return _moved(previous, _verdict(reason, message, ready=ready), generation, now)


def failed(
    message: str, *, previous: Condition, generation: int, now: datetime, reason: Reason = Reason.ERROR
) -> Condition:
    """Say that a pass failed.

    Args:
        message: The error.
        previous: The stored condition.
        generation: `metadata.generation` of the owner.
        now: The instant of this pass.
        reason: `Error`, or the more precise word where there is one.
    """
    return _moved(previous, _verdict(reason, message, ready=False), generation, now)


def aggregate(
    name: str, components: Sequence[tuple[str, Condition]], *, previous: Condition, generation: int, now: datetime
) -> Condition:
    """Make one condition of the conditions of several components.

    It is True exactly if all of them are. Among those that are not True, or among all if all are, the one with the
    highest priority governs; of equals the first.

    Args:
        name: Type of the condition.
        components: Name and condition of each component.
        previous: The stored condition of that type.
        generation: `metadata.generation` of the owner.
        now: The instant of this pass.

    Returns:
        The condition; its message begins with the name of the component that governs.

    Example:
        >>> from datetime import UTC
        >>> now = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
        >>> fresh = stored_condition([], "Ready", 1)
        >>> aggregate("Ready", [("broker", fresh)], previous=fresh, generation=1, now=now).message
        'broker: Component has not been reconciled yet.'
    """
    if not components:
        verdict = _verdict(Reason.UNKNOWN, "No components were aggregated.", ready=False)
        return _moved(replace(previous, type=name), verdict, generation, now)
    open_ones = [pair for pair in components if not pair[1].status]
    component, governing = max(open_ones or components, key=lambda pair: pair[1].reason.priority)
    message = f"{component}: {governing.message}" if governing.message else component
    verdict = _verdict(governing.reason, message, ready=not open_ones)
    return _moved(replace(previous, type=name), verdict, generation, now)


@dataclass(frozen=True, slots=True)
class _Verdict:
    status: bool
    reason: Reason
    message: str


def _verdict(reason: Reason, message: str, *, ready: bool) -> _Verdict:
    return _Verdict(ready, reason, message)


def _moved(previous: Condition, verdict: _Verdict, generation: int, now: datetime) -> Condition:
    """Return the next condition; the transition time moves only with the status, or where there is none yet."""
    stays = previous.status is verdict.status and previous.last_transition_time
    return Condition(
        type=previous.type,
        status=verdict.status,
        reason=verdict.reason,
        message=verdict.message,
        observed_generation=generation,
        last_transition_time=previous.last_transition_time if stays else format_time(now),
    )


def _sticks(previous: Reason, winner: Reason) -> bool:
    """Tell whether the old word stays; failing and blocked always show through."""
    return previous in _STICKY and winner in _PROGRESSING


def _joined(reports: Any) -> str:
    return "; ".join(report.reason for report in reports if report.reason)
