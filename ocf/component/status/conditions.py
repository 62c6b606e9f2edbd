"""Conditions of a component: stored in its owner, computed from the reports of its resources, and aggregated.

Everything here is a function of values and an instant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from ocf.component.status.reasons import (
    CONVERGING,
    OUTSIDE_CONVERGENCE,
    PRIORITY,
    PROGRESSING,
    READY,
    STICKY,
    Reason,
)
from ocf.concepts import GraceStatus, StatusReport, SuspensionStatus
from ocf.concepts.external import GROUP
from ocf.objects import Manifest
from ocf.objects.conditions import ConditionStatus, find_condition, shortened_message, time_problem, transition_time
from ocf.objects.timestamps import format_time, parse_time

__all__ = [
    "Condition",
    "ConditionContext",
    "Conditioned",
    "ResourceObservation",
    "aggregate",
    "converging_condition",
    "grace_is_over",
    "grace_remaining",
    "since_transition",
    "stored_condition",
    "suspending_condition",
    "waits_longer",
    "written_condition",
]

_REASONS: Final = frozenset(Reason)
_NOT_RECONCILED: Final = "Component has not been reconciled yet."
_CORE_VERSION: Final = re.compile(r"v\d+((alpha|beta)\d+)?")
# A message must be readable in one column of `kubectl get`. The API server accepts 32768 characters.
_MOST_LISTED: Final = 10
_LONGEST_REASON: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition of an owner, as `metav1.Condition` defines it.

    Args:
        type: Type of the condition, `WebInterfaceReady`.
        status: Whether it is True; a component never reports Unknown.
        reason: Machine-readable reason; that of a component is a `Reason`.
        message: Human-readable message.
        observed_generation: `metadata.generation` of the owner that was reconciled; 0 if it has none that counts
            changes of its spec only, and the condition has no such field then.
        last_transition_time: Time of the last change of the status, RFC 3339.
    """

    type: str
    status: bool
    reason: str
    message: str
    observed_generation: int
    last_transition_time: str

    def to_manifest(self) -> Manifest:
        """Return the condition in API spelling; a message that is too long for the API is cut."""
        return {
            "type": self.type,
            "status": ConditionStatus.of(self.status).value,
            "reason": str(self.reason),
            "message": shortened_message(self.message),
            **({"observedGeneration": self.observed_generation} if self.observed_generation else {}),
            "lastTransitionTime": self.last_transition_time,
        }


class Conditioned(Protocol):
    """Anything that is reported as one condition, such as a `Component`."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def condition_type(self) -> str:
        """Type of its condition."""
        ...


@dataclass(frozen=True, slots=True)
class ConditionContext:
    """What the next condition of one type is computed from: the stored one, the owner's generation, and the time.

    Example:
        >>> from datetime import UTC
        >>> now = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
        >>> context = ConditionContext(stored_condition([], "WebReady", 3), 3, now)
        >>> context.next(Reason.HEALTHY, "Component is healthy.", ready=True).last_transition_time
        '2026-01-31T12:00:00Z'
    """

    previous: Condition
    generation: int
    now: datetime

    def next(self, reason: Reason, message: str, *, ready: bool) -> Condition:
        """Return the condition that follows the stored one."""
        since = self.previous.last_transition_time
        stored = (self.previous.status, since) if since else None
        return Condition(
            type=self.previous.type,
            status=ready,
            reason=reason,
            message=message,
            observed_generation=self.generation,
            last_transition_time=transition_time(ready, format_time(self.now), stored=stored),
        )

    def failed(self, message: str, *, reason: Reason = Reason.ERROR) -> Condition:
        """Return the condition after a failed reconcile."""
        return self.next(reason, message, ready=False)


def stored_condition(conditions: object, name: str, generation: int) -> Condition:
    """Read a component's condition from its owner; its reason is Unknown if it is absent, or has a reason of others.

    Example:
        >>> stored_condition([], "WebReady", 3).message
        'Component has not been reconciled yet.'
    """
    condition = written_condition(conditions, name, generation)
    if condition.reason in _REASONS:
        return replace(condition, reason=Reason(condition.reason))
    return replace(condition, reason=Reason.UNKNOWN, message=_NOT_RECONCILED)


def written_condition(conditions: object, name: str, generation: int) -> Condition:
    """Read a condition from its owner as it was written; its reason is Unknown if it is absent.

    Only an API server whose definition has the schema of the condition rejects values of other types and times that
    cannot be read. They count as absent, and the next write replaces them.

    Example:
        >>> written_condition([{"type": "Moved", "status": "True", "reason": "Done"}], "Moved", 3).reason
        'Done'
    """
    found = find_condition(conditions, name) or {}
    reason, message = found.get("reason"), found.get("message")
    observed, since = found.get("observedGeneration"), found.get("lastTransitionTime")
    is_count = isinstance(observed, int) and not isinstance(observed, bool)
    return Condition(
        type=name,
        status=found.get("status") == ConditionStatus.TRUE,
        reason=reason if reason and isinstance(reason, str) else Reason.UNKNOWN,
        message=str(message or "") if found else _NOT_RECONCILED,
        observed_generation=int(observed or generation) if is_count else generation,
        last_transition_time="" if time_problem(since) else str(since),
    )


def aggregate(components: Sequence[tuple[str, Condition]], context: ConditionContext) -> Condition:
    """Aggregate the conditions of several components.

    The result is True if all of them are. Of the conditions that are not True, or of all if all are, the one with the
    highest priority decides; of equals the first.

    Example:
        >>> from datetime import UTC
        >>> now = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
        >>> fresh = stored_condition([], "Ready", 1)
        >>> aggregate([("broker", fresh)], ConditionContext(fresh, 1, now)).message
        'broker: Component has not been reconciled yet.'
    """
    if not components:
        return context.failed("No components were aggregated.", reason=Reason.UNKNOWN)
    not_ready = [pair for pair in components if not pair[1].status]
    component, deciding = max(not_ready or components, key=lambda pair: Reason(pair[1].reason).priority)
    message = f"{component}: {deciding.message}" if deciding.message else component
    # A component that was not reached in this reconcile has observed no newer generation.
    context = replace(context, generation=min(one.observed_generation for _, one in components))
    return context.next(Reason(deciding.reason), message, ready=not not_ready)


@dataclass(frozen=True, slots=True)
class ResourceObservation:
    """What a resource reports in a reconcile.

    Args:
        resource: Identity of the resource.
        report: Its status report.
        grade: Its grace status, once the grace period is over; None before, and for a resource without a grace status.
        is_rollout: Whether it is the summary of a rollout over several resources.
    """

    resource: str
    report: StatusReport[Any]
    grade: StatusReport[GraceStatus] | None = None
    is_rollout: bool = False

    @property
    def is_ready(self) -> bool:
        """Whether the resource has converged."""
        return Reason(self.report.status) in READY

    @property
    def is_blocked(self) -> bool:
        """Whether the resource waits for something else, so that its grace status is not evaluated."""
        return bool(self.report.status == Reason.BLOCKED)


def converging_condition(
    observations: Sequence[ResourceObservation], context: ConditionContext, *, grace_period: timedelta = timedelta(0)
) -> Condition:
    """Return the condition of a component that is being reconciled.

    It is `True/Healthy` if every resource is ready, else False with the reason of the report with the highest priority,
    or with the grace status once the grace period, if there is one, is over. The message names each resource that is
    not ready, with the reason of its report.
    """
    waiting = sorted((one for one in observations if not one.is_ready), key=_place)
    if not waiting:
        return context.next(Reason.HEALTHY, "Component is healthy.", ready=True)
    reason = max((Reason(one.report.status) for one in waiting), key=PRIORITY.__getitem__)
    message = _listed((one.resource, one.report) for one in waiting)
    previous = context.previous
    grade = _graded(waiting) if grace_is_over(previous, grace_period, context.now) else None
    if previous.reason in OUTSIDE_CONVERGENCE or (grace_period and _is_ahead(previous, context.now)):
        # Even from False to False: the time spent suspended or waiting does not count as converging. A start in the
        # future, after a clock was set back, counts as now: otherwise the period would end late by as much.
        context = replace(context, previous=replace(previous, last_transition_time=""))
    if reason in PROGRESSING:
        # A rollout has one reason, whatever is reported before it begins and beside it.
        if any(one.is_rollout for one in waiting):
            reason = Reason.UPDATING
        elif previous.reason in STICKY:
            reason = Reason(previous.reason)
    return context.next(*(grade or (reason, message)), ready=False)


def grace_remaining(condition: Condition, grace_period: timedelta, now: datetime) -> timedelta | None:
    """Return the rest of the grace period of a component that converges; None if it is over or does not run.

    Example:
        >>> from datetime import UTC
        >>> start = datetime(2026, 1, 31, 12, 0, 0, 700_000, tzinfo=UTC)
        >>> context = ConditionContext(stored_condition([], "WebReady", 1), 1, start)
        >>> creating = context.next(Reason.CREATING, "0 of 3 pods are ready", ready=False)
        >>> grace_remaining(creating, timedelta(minutes=5), start).total_seconds()
        300.3
    """
    if not grace_period or condition.status or condition.reason not in CONVERGING:
        return None
    # Stored times are truncated to seconds, so the period ends up to a second later than it seems.
    left = _deadline(condition, grace_period) + timedelta(seconds=1) - now
    return left if left > timedelta(0) else None


def grace_is_over(previous: Condition, grace_period: timedelta, now: datetime) -> bool:
    """Return whether a component has been converging for longer than its grace period; zero never ends."""
    if not grace_period or previous.status or not previous.last_transition_time:
        return False
    return previous.reason not in OUTSIDE_CONVERGENCE and now > _deadline(previous, grace_period)


def waits_longer(previous: Condition, period: timedelta, now: datetime) -> bool:
    """Return whether a component has not been ready for a period at least."""
    if previous.status or not previous.last_transition_time or previous.reason in OUTSIDE_CONVERGENCE:
        return False
    return now >= _deadline(previous, period)


def since_transition(condition: Manifest, now: datetime) -> timedelta:
    """Return how long a condition has had its status; negative if its transition lies in the future.

    Zero if it has no transition time that can be read: its next write sets one.

    Example:
        >>> from datetime import UTC
        >>> now = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
        >>> since_transition({"lastTransitionTime": "2026-01-31T11:59:00Z"}, now)
        datetime.timedelta(seconds=60)
        >>> since_transition({}, now), since_transition({"lastTransitionTime": "noon"}, now)
        (datetime.timedelta(0), datetime.timedelta(0))
    """
    since = condition.get("lastTransitionTime")
    return timedelta(0) if not isinstance(since, str) or time_problem(since) else now - parse_time(since)


def suspending_condition(observations: Sequence[ResourceObservation], context: ConditionContext) -> Condition:
    """Return the condition of a component that is being suspended.

    It is `True/Suspended` once every resource is suspended, else False with the status that is furthest from it. The
    message names each resource that is not suspended, with the reason of its report.
    """
    left = [one for one in observations if one.report.status is not SuspensionStatus.SUSPENDED]
    if not left:
        return context.next(Reason.SUSPENDED, "All resources are suspended.", ready=True)
    left.sort(key=lambda one: -one.report.status.distance)
    return context.next(Reason(left[0].report.status), _listed((one.resource, one.report) for one in left), ready=False)


def _is_ahead(condition: Condition, now: datetime) -> bool:
    since = condition.last_transition_time
    return bool(since) and parse_time(since) > now


def _deadline(condition: Condition, grace_period: timedelta) -> datetime:
    return parse_time(condition.last_transition_time) + grace_period


def _graded(waiting: Sequence[ResourceObservation]) -> tuple[Reason, str] | None:
    """Return reason and message of the worst grace status; None if all of them are Healthy."""
    graded = [(one.resource, grade) for one in waiting if (grade := _grade(one)) is not None]
    if not graded:
        return Reason.DOWN, f"Component is down: {_listed((one.resource, one.report) for one in waiting)}"
    worst = max((grade.status for _, grade in graded), key=lambda status: status.severity)
    if worst is GraceStatus.HEALTHY:
        return None
    # A resource without a grace status, such as a Job that has failed, may be what the others wait for.
    reports: Iterable[tuple[str, StatusReport[Any]]] = ((one.resource, _grade(one) or one.report) for one in waiting)
    message = _listed((resource, report) for resource, report in reports if report.status is not GraceStatus.HEALTHY)
    return Reason(worst), f"Component is {worst.lower()}: {message}"


def _grade(observation: ResourceObservation) -> StatusReport[GraceStatus] | None:
    if observation.is_blocked:
        return StatusReport(GraceStatus.DOWN, observation.report.reason or str(observation.report.status))
    return observation.grade


def _place(observation: ResourceObservation) -> int:
    """Return the place of a report in the message: pods may wait for a volume or a task, which do not wait for them."""
    match Reason(observation.report.status):
        case Reason.FAILING | Reason.OPERATION_FAILING | Reason.TASK_FAILING:
            return 0
        case Reason.BLOCKED:
            return 1
        case Reason.CREATING | Reason.UPDATING | Reason.SCALING:
            return 3
        case _:
            return 2


def _listed(reports: Iterable[tuple[str, StatusReport[Any]]]) -> str:
    """Return the reasons of reports, each after the name of its resource; only the first of very many."""
    texts = [_sentence(resource, report) for resource, report in reports]
    left = len(texts) - _MOST_LISTED
    return "; ".join([*texts[:_MOST_LISTED], *([f"and {left} more"] if left > 0 else [])])


def _sentence(resource: str, report: StatusReport[Any]) -> str:
    text = report.reason or str(report.status)
    if len(text) > _LONGEST_REASON:
        text = f"{text[:_LONGEST_REASON]}…"
    return text if resource in text else f"{_short_name(resource)}: {text}"


def _short_name(identity: str) -> str:
    """Return kind and name of an identity; that of an external resource as it is, because its name may have slashes.

    Example:
        >>> _short_name("apps/v1/Deployment/shop/web"), _short_name("v1/Namespace/shop"), _short_name("other")
        ('Deployment web', 'Namespace shop', 'other')
        >>> _short_name("external/Dashboard/sales@town/eu")
        'external/Dashboard/sales@town/eu'
    """
    parts = identity.split("/")
    if parts[0] == GROUP:
        return identity
    # Only the core group has no name before its version.
    kind = 1 if _CORE_VERSION.fullmatch(parts[0]) else 2
    return f"{parts[kind]} {parts[-1]}" if len(parts) > kind + 1 else identity
