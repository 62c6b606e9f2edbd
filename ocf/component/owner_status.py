"""The owner's status in one reconcile: conditions of the operator's own, and events about failures and losses.

Everything here is a function of values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from ocf.component.model.ownership import Owner
from ocf.component.status.results import ResourceOutcome, Result
from ocf.concepts import Event, GuardStatus
from ocf.errors import ConfigError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.conditions import (
    ConditionStatus,
    condition_type_problem,
    reason_problem,
    set_condition,
    shortened_message,
)

__all__ = [
    "BLOCKED_EVENT",
    "FAILED_EVENT",
    "FINALIZER_EVENT",
    "OWNER_EVENT",
    "REVERTED_EVENT",
    "UNSTORED_EVENT",
    "blocked_note",
    "blocking_reason",
    "failure_events",
    "own_condition",
    "own_event",
    "owner_event",
    "replaced_value",
    "shows",
    "shows_component",
]

BLOCKED_EVENT: Final = "ComponentBlocked"
"""Reason of the event about a component that is blocked, which no condition of the owner shows."""
FAILED_EVENT: Final = "ReconcileFailed"
"""Reason of the event about a failed reconcile."""
FINALIZER_EVENT: Final = "FinalizerReverted"
"""Reason of the event about a finalizer that another writer sets again each time."""
OWNER_EVENT: Final = "OwnerReverted"
"""Reason of the event about fields of the owner that the operator has to patch again and again."""
REVERTED_EVENT: Final = "StatusReverted"
"""Reason of the event about values of the status that another writer reverts again and again."""

UNSTORED_EVENT: Final = "StatusNotStored"
"""Reason of the event about a status that the API server refuses, or of which it drops fields."""

_STATUSES: Final = frozenset(ConditionStatus)
# Most characters of the reason and the action of an event.
_LONGEST_WORD: Final = 128
# How many characters of a text are compared.
_COMPARED: Final = 1000
# How many blocked resources a note has.
_MOST_NAMED: Final = 5


def own_condition(
    stored: Manifest | None, name: str, *, status: str, reason: str, message: str, generation: int, now: datetime
) -> Manifest:
    """Return a condition as it is to be stored; its transition time changes only with its status."""
    for part, value in (("type", name), ("status", status), ("reason", reason), ("message", message)):
        if not isinstance(value, str):
            raise ConfigError(
                f'condition "{name}": the {part} must be a text, got an object of type {type(value).__name__}'
            )
    invalid = f"the status must be True, False or Unknown, got {status!r}" if status not in _STATUSES else ""
    problems = list(filter(None, (condition_type_problem(name), invalid, reason_problem(reason))))
    if problems:
        raise ConfigError(f'condition "{name}": {"; ".join(problems)}')
    (condition,) = set_condition(
        [stored] if stored is not None else [],
        condition_type=name,
        status=ConditionStatus(status),
        reason=reason,
        message=shortened_message(message),
        observed_generation=generation,
        now=now,
    )
    return condition


def own_event(owner: Owner, reason: str, note: str, *, action: str, warning: bool, related: ObjectKey | None) -> Event:
    """Return an event of the author's about an owner, and an object beside it."""
    problems = []
    for part, value in (("reason", reason), ("action", action), ("note", note)):
        if not isinstance(value, str):
            problems.append(f"the {part} must be a text, got an object of type {type(value).__name__}")
        elif part == "note":
            problems += [] if value else ["the note must not be empty"]
        elif len(value) > _LONGEST_WORD:
            problems.append(f"the {part} has at most {_LONGEST_WORD} characters, got {len(value)}")
        elif problem := reason_problem(value):
            problems.append(problem.replace("a reason", f"the {part}", 1))
    if problems:
        raise ConfigError(f"event of {owner.key}: {'; '.join(problems)}")
    event = owner.event(related or owner.key, reason, note, action=action)
    return replace(event, type="Warning") if warning else event


def shows(conditions: Iterable[Manifest], problem: str) -> bool:
    """Return whether the message of a condition contains the text of a failure."""
    # A message that is too long for the API was cut.
    start = problem[:_COMPARED]
    return any(start in str(one.get("message")) for one in conditions)


def shows_component(conditions: Sequence[Manifest], result: Result, aggregates: Collection[str]) -> bool:
    """Return whether conditions show the result of a component: with its message, or in an aggregated condition."""
    listed = list(aggregates)  # a type that another client has stored may be no text
    return shows(conditions, result.condition.message) or any(one.get("type") in listed for one in conditions)


def blocking_reason(outcome: ResourceOutcome) -> str:
    """Return why a resource is blocked; empty if it is not."""
    report = outcome.report
    return "" if report is None or report.status != GuardStatus.BLOCKED else report.reason or str(report.status)


def blocked_note(component: str, blocked: Sequence[ResourceOutcome]) -> str:
    """Return a sentence about the blocked resources of a component; empty if there are none."""
    if not blocked:
        return ""
    found = [(one.resource, blocking_reason(one)) for one in blocked[:_MOST_NAMED]]
    texts = [reason if resource in reason else f"{resource}: {reason}" for resource, reason in found]
    left = len(blocked) - len(texts)
    return f'component "{component}" is blocked: {"; ".join([*texts, *([f"and {left} more"] if left else [])])}'


def failure_events(owner: Owner, problems: Iterable[str], stored: Sequence[Manifest]) -> Iterator[Event]:
    """Yield an event for each new failure: one that no condition showed before this reconcile."""
    for problem in dict.fromkeys(problems):
        if not shows(stored, problem):
            yield owner_event(owner, FAILED_EVENT, problem, action="Reconcile")


def owner_event(owner: Owner, reason: str, note: str, *, action: str, warning: bool = True) -> Event:
    """Return an event about an owner."""
    event = owner.event(owner.key, reason, note, action=action)
    return replace(event, type="Warning") if warning else event


def replaced_value(owner: Manifest, written: Manifest) -> str:
    """Return which value in the status of an owner was replaced, because no condition can be stored beside it."""
    path, value = "status", owner.get("status")
    if isinstance(value, dict):
        path, value = "status.conditions", value.get("conditions")
        value = None if isinstance(value, list) else value
    if value is None or not written.get("conditions"):
        return ""
    kind = type(value).__name__
    return f"{path} was stored as a value of type {kind}, and is replaced, because it cannot hold conditions"
