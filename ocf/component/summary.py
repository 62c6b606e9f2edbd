"""Summary of a reconcile as text: what was done to each resource, and why.

It is computed from a `Result` and its component after the reconcile, so it costs a reconcile nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ocf.component.component import Component
from ocf.component.model.registration import Registration
from ocf.component.model.resource_options import Lifecycle
from ocf.component.status.reasons import Reason
from ocf.component.status.results import Action, ResourceOutcome, Result
from ocf.concepts.external import GROUP
from ocf.concepts.recorder import Why

__all__ = ["NOT_REACHED", "ResourceSummary", "describe", "summarize"]

NOT_REACHED: Final = "NotReached"
"""Stands for an action if a reconcile did not reach a resource."""

_ALWAYS: Final = {
    Action.CREATED: "there was no such object",
    Action.UPDATED: "an apply changes it",
    Action.ABSENT: "there is no such object",
}
_SKIPPED: Final = {
    Why.EQUAL: "nothing to do: compared field by field, an apply would change nothing",
    Why.NOT_OURS: "nothing to do: another client has created it, and it is used as it is",
    Why.FAILED: "the call of its system failed",
    Why.IN_SYNC: "nothing to do: this version of the object was compared before, and the desired state is the same",
}
_UNTOUCHED: Final = {
    Lifecycle.READ_ONLY: "it is only read",
    Lifecycle.DELETED: "it is being deleted already",
    Lifecycle.ORPHANED: "it does not name this owner",
    Lifecycle.MANAGED: "it is being deleted already",
}


_COMPARED: Final = {Action.UPDATED, Action.UNCHANGED, Action.HELD_BACK}


@dataclass(frozen=True, slots=True)
class ResourceSummary:
    """What a reconcile did to one resource, and why.

    Args:
        resource: Identity of the resource.
        action: What was done to its object: a value of `Action`, or `NOT_REACHED`.
        because: Why, in one phrase.
        fields: The drift, one text per field: `spec.maxReplicas: changed`.
        report: Its status report, `Creating: 0 of 3 replicas are ready`; empty if it has none.
    """

    resource: str
    action: str
    because: str
    fields: tuple[str, ...] = ()
    report: str = ""


def summarize(component: Component, result: Result) -> tuple[ResourceSummary, ...]:
    """Return what a reconcile did to each resource of a component, and why; or why it did not reach the resource.

    Args:
        component: The component.
        result: Result of its reconcile.

    Returns:
        First the resources that were reached, in the order of the reconcile; then the others, in order of
        registration.
    """
    registered = sorted((*component.entries, *component.external), key=lambda entry: entry.place)
    entries = {entry.identity: entry for entry in registered}
    reached_summaries = [_summary(outcome, entries.get(outcome.resource)) for outcome in result.outcomes]
    reached = {outcome.resource for outcome in result.outcomes}
    not_reached = [
        ResourceSummary(entry.identity, NOT_REACHED, _why_not_reached(entry, result))
        for entry in registered
        if entry.identity not in reached
    ]
    return (*reached_summaries, *not_reached)


def describe(component: Component, result: Result) -> str:
    """Format what a reconcile did as plain text.

    Args:
        component: The component.
        result: Result of its reconcile.

    Returns:
        Lines: the condition, then each resource with its reasons below it.
    """
    condition = result.condition
    text = f": {condition.message}" if condition.message else ""
    lines = [f"{component.name}: {condition.type} is {condition.status}, {condition.reason}{text}"]
    for summary in summarize(component, result):
        lines.append(f"  {summary.resource}: {summary.action}, {summary.because}")
        lines += [f"    {field}" for field in summary.fields]
        lines += [f"    reports {summary.report}"] if summary.report else []
    if result.requeue_after is not None:
        lines.append(f"  next look in {result.requeue_after.total_seconds():g} s")
    return "\n".join(lines)


def _summary(outcome: ResourceOutcome, entry: Registration | None) -> ResourceSummary:
    report = outcome.report
    shown = ": ".join(filter(None, (report.status, report.reason))) if report is not None else ""
    fields = outcome.reason_texts if outcome.action in _COMPARED else ()
    return ResourceSummary(outcome.resource, str(outcome.action), _because(outcome, entry), fields, shown)


def _because(outcome: ResourceOutcome, entry: Registration | None) -> str:
    if outcome.action in _ALWAYS:
        return _ALWAYS[outcome.action]
    if outcome.action is Action.UNCHANGED:
        return _unchanged(outcome, entry)
    if outcome.why is Why.WAITING:
        return "other members of its rollout are changed first"
    if outcome.action is Action.HELD_BACK:
        wait = f" {outcome.retry_after.total_seconds():g} s" if outcome.retry_after is not None else ""
        return f"another writer reverts what is written, so the next write waits{wait}"
    # Deleted, orphaned, kept or blocked: the outcome has the reason.
    text = outcome.report.reason if outcome.report is not None else ""
    return ", ".join(outcome.reason_texts) or text


def _unchanged(outcome: ResourceOutcome, entry: Registration | None) -> str:
    if outcome.writes:
        return "an apply was sent, and the server stores what it stored before"
    if outcome.why is not None and outcome.why in _SKIPPED:
        return _SKIPPED[outcome.why]
    if outcome.resource.startswith(f"{GROUP}/"):
        return "its system has not answered, or has not finished"
    return _UNTOUCHED[entry.lifecycle if entry is not None else Lifecycle.DELETED]


def _why_not_reached(entry: Registration, result: Result) -> str:
    blocked: Sequence[ResourceOutcome] = [each for each in result.outcomes if each.action is Action.BLOCKED]
    reason = result.condition.reason
    if blocked:
        return f"{blocked[0].resource} is blocked"
    if reason == Reason.PREREQUISITE_NOT_MET:
        return "a prerequisite is not met"
    if reason == Reason.DISABLED:
        return "the component is disabled, and it is only read"
    if entry.lifecycle is Lifecycle.READ_ONLY:
        return "the component is suspended, and it is only read"
    return "the component is suspended, and it cannot be"
