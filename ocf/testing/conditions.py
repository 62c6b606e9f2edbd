r"""Linter for status conditions, by the rules of `metav1.Condition`.

Users and `kubectl wait` read conditions. The API server checks them only against the schema of the kind, and a schema
cannot detect errors such as a `lastTransitionTime` that changes with every reconcile, or an `observedGeneration` that
does not exist yet. The rules are those of the API reference
(https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.34/#condition-v1-meta) and of the API conventions
(https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#typical-status-properties).
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from ocf.objects.conditions import ConditionStatus
from ocf.objects.timestamps import parse_rfc3339

__all__ = ["ConditionFinding", "ConditionRule", "ConditionSeverity", "lint_conditions"]

# Patterns and lengths of the schema that is generated for metav1.Condition.
_TYPE: Final = re.compile(
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])"
)
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_LONGEST: Final = {"type": 316, "reason": 1024, "message": 32768}
_CAMEL_CASE: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
_STATUSES: Final = tuple(map(str, ConditionStatus))
_FIELDS: Final = frozenset({"type", "status", "reason", "message", "observedGeneration", "lastTransitionTime"})


class ConditionSeverity(StrEnum):
    """Severity of a finding."""

    FAIL = "FAIL"
    """Violates the API: the schema rejects the condition, or the condition is wrong."""

    WARN = "WARN"
    """Violates a convention, or is probably wrong."""


class ConditionRule(StrEnum):
    """The rule that a condition violates; the codes are stable."""

    NOT_A_CONDITION = "not-a-condition"
    FIELD_UNKNOWN = "field-unknown"
    TYPE_INVALID = "type-invalid"
    TYPE_NOT_CAMEL_CASE = "type-not-camel-case"
    TYPE_DUPLICATE = "type-duplicate"
    STATUS_INVALID = "status-invalid"
    REASON_INVALID = "reason-invalid"
    REASON_NOT_CAMEL_CASE = "reason-not-camel-case"
    MESSAGE_INVALID = "message-invalid"
    MESSAGE_EMPTY = "message-empty"
    TIME_INVALID = "time-invalid"
    TIME_MOVED = "time-moved"
    TIME_MOVED_WITH_REASON = "time-moved-with-reason"
    TIME_NOT_MOVED = "time-not-moved"
    TIME_BACKWARDS = "time-backwards"
    GENERATION_INVALID = "generation-invalid"
    GENERATION_AHEAD = "generation-ahead"
    GENERATION_BEHIND = "generation-behind"
    GENERATION_BACKWARDS = "generation-backwards"

    @property
    def severity(self) -> ConditionSeverity:
        """Severity of the finding."""
        return ConditionSeverity.WARN if self in _WARNINGS else ConditionSeverity.FAIL


_WARNINGS: Final = frozenset(
    {
        ConditionRule.FIELD_UNKNOWN,
        ConditionRule.TYPE_NOT_CAMEL_CASE,
        ConditionRule.REASON_NOT_CAMEL_CASE,
        ConditionRule.MESSAGE_EMPTY,
        ConditionRule.TIME_MOVED_WITH_REASON,
        ConditionRule.TIME_NOT_MOVED,
        ConditionRule.GENERATION_BEHIND,
    }
)


@dataclass(frozen=True, slots=True)
class ConditionFinding:
    """One violation of a rule in a list of conditions.

    Args:
        path: The field, relative to the list: `[0].reason`.
        problem: The value seen and the value allowed.
    """

    rule: ConditionRule
    path: str
    problem: str

    @property
    def severity(self) -> ConditionSeverity:
        """Severity of the finding."""
        return self.rule.severity

    def __str__(self) -> str:
        return f"{self.severity} {self.rule} {self.path}: {self.problem}"


def lint_conditions(
    conditions: Sequence[Any],
    *,
    generation: int | None = None,
    previous: Sequence[Any] = (),
) -> tuple[ConditionFinding, ...]:
    """Check the conditions of an object.

    Args:
        conditions: `status.conditions`: maps with the API's field names.
        generation: `metadata.generation` of the object; None if unknown.
        previous: `status.conditions` before the change; also checks the differences from them.

    Returns:
        The findings, in the order of the conditions.

    Example:
        >>> ready = {
        ...     "type": "Ready",
        ...     "status": "yes",
        ...     "reason": "all good",
        ...     "message": "Ready.",
        ...     "lastTransitionTime": "2026-01-31T12:00:00Z",
        ... }
        >>> for finding in lint_conditions([ready]):
        ...     print(finding)
        FAIL status-invalid [0].status: must be one of True, False, Unknown, got 'yes'
        FAIL reason-invalid [0].reason: must be a word of letters, digits, "_", "," and ":", got 'all good'
    """
    before = {one["type"]: one for one in previous if _type_of(one)}
    found: list[ConditionFinding] = []
    for number, condition in enumerate(conditions):
        path = f"[{number}]"
        if not isinstance(condition, Mapping):
            found.append(
                ConditionFinding(ConditionRule.NOT_A_CONDITION, path, f"must be a map, got {type(condition).__name__}")
            )
            continue
        own = [*_fields(condition), *_generation(condition, generation)]
        if _type_of(condition) in before:
            own += _since(before[_type_of(condition)], condition)
        found += [ConditionFinding(rule, f"{path}.{field}", problem) for rule, field, problem in own]
    return (*found, *_duplicates(conditions))


def _fields(condition: Mapping[str, Any]) -> Iterator[tuple[ConditionRule, str, str]]:
    """Check each field on its own."""
    yield from _word(condition, "type", _TYPE, "a qualified name")
    if condition.get("status") not in _STATUSES:
        yield (
            ConditionRule.STATUS_INVALID,
            "status",
            f"must be one of {', '.join(_STATUSES)}, got {condition.get('status')!r}",
        )
    yield from _word(condition, "reason", _REASON, 'a word of letters, digits, "_", "," and ":"')
    yield from _message(condition.get("message"))
    if _read_time(condition) is None:
        seen = condition.get("lastTransitionTime")
        yield ConditionRule.TIME_INVALID, "lastTransitionTime", f"must be a time as in RFC 3339, got {seen!r}"
    for field in sorted(map(str, condition.keys() - _FIELDS)):
        yield (
            ConditionRule.FIELD_UNKNOWN,
            field,
            f"is not a field of a condition; its fields are {', '.join(sorted(_FIELDS))}",
        )


_INVALID: Final = {"type": ConditionRule.TYPE_INVALID, "reason": ConditionRule.REASON_INVALID}
_NOT_CAMEL_CASE: Final = {"type": ConditionRule.TYPE_NOT_CAMEL_CASE, "reason": ConditionRule.REASON_NOT_CAMEL_CASE}


def _word(
    condition: Mapping[str, Any], field: str, pattern: re.Pattern[str], allowed: str
) -> Iterator[tuple[ConditionRule, str, str]]:
    value = condition.get(field)
    if not isinstance(value, str) or not pattern.fullmatch(value):
        yield _INVALID[field], field, f"must be {allowed}, got {value!r}"
    elif len(value) > _LONGEST[field]:
        yield _INVALID[field], field, f"must have at most {_LONGEST[field]} characters, got {len(value)}"
    elif not _CAMEL_CASE.fullmatch(value.rpartition("/")[2]):
        yield _NOT_CAMEL_CASE[field], field, f"should be in CamelCase, got {value!r}"


def _message(value: object) -> Iterator[tuple[ConditionRule, str, str]]:
    if not isinstance(value, str):
        yield ConditionRule.MESSAGE_INVALID, "message", f"must be a string, got {value!r}"
    elif len(value) > _LONGEST["message"]:
        yield (
            ConditionRule.MESSAGE_INVALID,
            "message",
            f"must have at most {_LONGEST['message']} characters, got {len(value)}",
        )
    elif not value.strip():
        yield ConditionRule.MESSAGE_EMPTY, "message", "should explain the status, is empty"


def _generation(condition: Mapping[str, Any], generation: int | None) -> Iterator[tuple[ConditionRule, str, str]]:
    if "observedGeneration" not in condition:
        return
    field, seen = "observedGeneration", condition["observedGeneration"]
    if not isinstance(seen, int) or isinstance(seen, bool) or seen < 0:
        yield ConditionRule.GENERATION_INVALID, field, f"must be a whole number, 0 or more, got {seen!r}"
    elif generation is not None and seen > generation:
        yield ConditionRule.GENERATION_AHEAD, field, f"is {seen}, but the object is only at generation {generation}"
    elif generation is not None and seen < generation:
        yield ConditionRule.GENERATION_BEHIND, field, f"is {seen}, while the object is at generation {generation}"


def _since(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[ConditionRule, str, str]]:
    """Check the changes of one condition."""
    old, new = before.get("observedGeneration"), now.get("observedGeneration")
    if isinstance(old, int) and isinstance(new, int) and new < old:
        yield ConditionRule.GENERATION_BACKWARDS, "observedGeneration", f"must not fall, was {old} and is {new}"
    then, since = _read_time(before), _read_time(now)
    if then is None or since is None:
        return
    flipped = before.get("status") != now.get("status")
    span = f"was {before['lastTransitionTime']} and is {now['lastTransitionTime']}"
    if since < then:
        yield ConditionRule.TIME_BACKWARDS, "lastTransitionTime", f"must not go back, {span}"
    elif flipped and since == then:
        yield ConditionRule.TIME_NOT_MOVED, "lastTransitionTime", f"should move, because the status changed, {span}"
    elif not flipped and since != then:
        same_reason = before.get("reason") == now.get("reason")
        rule = ConditionRule.TIME_MOVED if same_reason else ConditionRule.TIME_MOVED_WITH_REASON
        yield (
            rule,
            "lastTransitionTime",
            f"must move only when the status changes, which is still {now['status']}; {span}",
        )


def _duplicates(conditions: Sequence[Any]) -> Iterator[ConditionFinding]:
    for name, times in Counter(map(_type_of, conditions)).items():
        if name and times > 1:
            yield ConditionFinding(
                ConditionRule.TYPE_DUPLICATE, "", f"type {name} must occur once, occurs {times} times"
            )


def _type_of(condition: Any) -> str:
    """Return the type of a condition; empty if it has none."""
    found = condition.get("type") if isinstance(condition, Mapping) else None
    return found if isinstance(found, str) else ""


def _read_time(condition: Mapping[str, Any]) -> datetime | None:
    value = condition.get("lastTransitionTime")
    if not isinstance(value, str):
        return None
    try:
        return parse_rfc3339(value)
    except ValueError:
        return None
