"""Status conditions, as `metav1.Condition` defines them.

Sources: `k8s.io/apimachinery/pkg/api/meta/conditions.go`; the limits are those of the schema of `metav1.Condition` in
`k8s.io/apimachinery/pkg/apis/meta/v1/types.go`, which the API server enforces where a CustomResourceDefinition has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, TypeVar

from ocf.errors import FieldProblem
from ocf.objects.json_values import encodable
from ocf.objects.manifest import Manifest
from ocf.objects.timestamps import format_time, parse_rfc3339

__all__ = [
    "LONGEST_MESSAGE",
    "ConditionStatus",
    "completed_condition",
    "condition_problems",
    "condition_type_problem",
    "find_condition",
    "has_type",
    "is_condition_true",
    "reason_problem",
    "set_condition",
    "shortened_message",
    "time_problem",
    "transition_time",
    "typed_conditions",
    "with_condition",
]

TimeT = TypeVar("TimeT")

LONGEST_MESSAGE: Final = 32_768
"""Most characters of a condition's message."""
_LONGEST_REASON: Final = 1_024
_LONGEST_TYPE: Final = 316
_HIGHEST_GENERATION: Final = 2**63 - 1
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_TYPE: Final = re.compile(
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])"
)
_SHOWN: Final = 80


class ConditionStatus(StrEnum):
    """The status of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"

    @classmethod
    def of(cls, value: bool) -> ConditionStatus:  # noqa: FBT001 (the value is all there is)
        """Return the status of a condition that is known."""
        return cls.TRUE if value else cls.FALSE


_STATUSES: Final = frozenset(ConditionStatus)


def has_type(condition: object, condition_type: str) -> bool:
    """Return whether an entry of a list of conditions is the condition of a type."""
    return isinstance(condition, dict) and condition.get("type") == condition_type


def typed_conditions(conditions: object) -> list[Manifest]:
    """Return the conditions that have a type.

    A definition without a schema lets any client store something else than a list, or entries that are not conditions.

    Args:
        conditions: `status.conditions` of an object, as stored.

    Example:
        >>> typed_conditions([{"type": "Ready"}, "Ready", {"type": None}, {}]), typed_conditions({"Ready": "True"})
        ([{'type': 'Ready'}], [])
    """
    entries = conditions if isinstance(conditions, list) else ()
    return [one for one in entries if isinstance(one, dict) and isinstance(one.get("type"), str) and one["type"]]


def find_condition(conditions: object, condition_type: str) -> Manifest | None:
    """Return the condition of a type; None if it is absent.

    Args:
        conditions: `status.conditions` of an object, as stored; None if the object has none.
    """
    entries = conditions if isinstance(conditions, list | tuple) else ()
    return next((one for one in entries if has_type(one, condition_type)), None)


def is_condition_true(conditions: object, condition_type: str) -> bool:
    """Return whether the condition of a type is present and True.

    Args:
        conditions: `status.conditions` of an object, as stored; None if the object has none.

    Example:
        >>> conditions = [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "Unknown"}]
        >>> [is_condition_true(conditions, name) for name in ("Available", "Progressing", "Degraded")]
        [True, False, False]
    """
    found = find_condition(conditions, condition_type)
    return found is not None and found.get("status") == ConditionStatus.TRUE


def transition_time(status: object, now: TimeT, *, stored: tuple[object, TimeT] | None) -> TimeT:
    """Return the time of the last transition: it moves only when the status changes.

    Args:
        stored: Status and transition time of the stored condition; None if there is no such condition.

    Example:
        >>> transition_time("True", "12:00", stored=("True", "11:00"))
        '11:00'
        >>> transition_time("True", "12:00", stored=("False", "11:00")), transition_time("True", "12:00", stored=None)
        ('12:00', '12:00')
    """
    return stored[1] if stored is not None and stored[0] == status else now


def set_condition(
    conditions: Sequence[Manifest],
    *,
    condition_type: str,
    status: ConditionStatus,
    reason: str,
    message: str,
    observed_generation: int,
    now: datetime,
) -> list[Manifest]:
    """Return the conditions with one of them set, as `meta.SetStatusCondition` does.

    The transition time also moves if the stored condition has none that can be read: the API requires one.

    Args:
        conditions: `status.conditions` of an object; not changed.
        observed_generation: `metadata.generation` of the object that the condition is about; 0 leaves it out.

    Returns:
        The conditions; the one that was set is in its old place, or at the end if it is new.
    """
    found = find_condition(conditions, condition_type) or {}
    since = found.get("lastTransitionTime")
    stored = None if time_problem(since) else (found.get("status"), since)
    condition = {
        "type": condition_type,
        "status": status.value,
        # As a plain text, also if it is a member of an enum.
        "reason": str(reason),
        "message": message,
        **({"observedGeneration": observed_generation} if observed_generation else {}),
        "lastTransitionTime": transition_time(status, format_time(now), stored=stored),
    }
    return with_condition(conditions, condition)


def with_condition(conditions: Sequence[Any], condition: Manifest) -> list[Any]:
    """Return the conditions with one of them replaced in its place, or added at the end.

    Args:
        conditions: `status.conditions` of an object; not changed. Entries that are not conditions stay as they are.
    """
    name = condition["type"]
    if not any(has_type(other, name) for other in conditions):
        return [*conditions, condition]
    return [condition if has_type(other, name) else other for other in conditions]


def completed_condition(condition: Manifest, stored: Manifest | None, now: datetime) -> Manifest:
    """Return a condition with what the schema of `metav1.Condition` requires beside its type, status and reason.

    An absent message is empty, one that is too long is cut, and an absent transition time is the stored one, or now if
    the status is another one.

    Example:
        >>> from datetime import UTC
        >>> noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
        >>> done = {"type": "Backup", "status": "True", "reason": "Done"}
        >>> completed = completed_condition(done, None, noon)
        >>> completed["lastTransitionTime"], completed["message"]
        ('2026-01-31T12:00:00Z', '')
    """
    since = stored.get("lastTransitionTime") if stored is not None else None
    known = None if stored is None or time_problem(since) else (stored.get("status"), since)
    time = transition_time(condition["status"], format_time(now), stored=known)
    message = shortened_message(condition.get("message", ""))
    return {"lastTransitionTime": time, **condition, "message": message}


def condition_problems(condition: object, path: str) -> Iterator[FieldProblem]:
    """Yield what keeps a value from being a condition, whatever further fields its schema has.

    What `completed_condition` completes may be absent, and the message may be too long.

    Args:
        path: Where it is, `status.conditions[2]`.

    Example:
        >>> condition = {"type": "Ready", "status": True, "reason": "Up"}
        >>> for problem in condition_problems(condition, "status.conditions[2]"):
        ...     print(problem)
        status.conditions[2].status: must be True, False or Unknown as text, got True of type bool
    """
    if not isinstance(condition, dict):
        yield FieldProblem(path, f"must be a condition, an object with a type, got {_shown(condition)}")
        return
    kind = condition.get("type")
    if not isinstance(kind, str) or not kind:
        yield FieldProblem(f"{path}.type", f"must be the type of the condition as text, got {_shown(kind)}")
    elif problem := condition_type_problem(kind):
        yield FieldProblem(f"{path}.type", problem)
    for field, problem in _field_problems(condition):
        yield FieldProblem(f"{path}.{field}", problem)


def _field_problems(condition: Manifest) -> Iterator[tuple[str, str]]:
    status, reason = condition.get("status"), condition.get("reason")
    if not isinstance(status, str) or status not in _STATUSES:
        yield "status", f"must be True, False or Unknown as text, got {_shown(status)}"
    if not isinstance(reason, str):
        yield "reason", f"must be text, a word in CamelCase, got {_shown(reason)}"
    elif problem := reason_problem(reason):
        yield "reason", problem
    if "message" in condition and not isinstance(condition["message"], str):
        yield "message", f"must be text, got a value of type {type(condition['message']).__name__}"
    if "lastTransitionTime" in condition and (problem := time_problem(condition["lastTransitionTime"])):
        yield "lastTransitionTime", problem
    if "observedGeneration" in condition:
        observed = condition["observedGeneration"]
        is_count = isinstance(observed, int) and not isinstance(observed, bool)
        if not is_count or not 0 <= observed <= _HIGHEST_GENERATION:
            yield "observedGeneration", f"must be an integer from 0 to {_HIGHEST_GENERATION}, got {_shown(observed)}"


def time_problem(value: object) -> str:
    """Return why a value is not a time as `metav1.Time` is written; empty if it is one."""
    allowed = "must be a time such as 2026-01-31T12:00:00Z"
    if not isinstance(value, str):
        return f"{allowed}, got {_shown(value)}"
    try:
        parse_rfc3339(value, comma=True)
    except ValueError:
        return f"{allowed}, got {_shown(value)}"
    return ""


def _shown(value: object) -> str:
    """Return a value for a message; of what may hold anything, such as a map, only the type."""
    if isinstance(value, str):
        return _start(value)
    if value is None or isinstance(value, bool | int | float):
        return f"{value!r:.80}" + ("" if value is None else f" of type {type(value).__name__}")
    return f"a value of type {type(value).__name__}"


def condition_type_problem(name: str) -> str:
    """Return why the API server would reject the type of a condition; empty if it would not.

    Example:
        >>> condition_type_problem("WebReady"), condition_type_problem("example.com/WebReady")
        ('', '')
        >>> condition_type_problem("web ready")
        "a condition type must match ([a-z0-9.-]+/)?[A-Za-z0-9._-]+ and begin and end with a letter or digit, \
got 'web ready'"
    """
    if len(name) > _LONGEST_TYPE:
        return f"a condition type has at most {_LONGEST_TYPE} characters, got {len(name)}: {_start(name)}"
    if not _TYPE.fullmatch(name):
        allowed = "([a-z0-9.-]+/)?[A-Za-z0-9._-]+ and begin and end with a letter or digit"
        return f"a condition type must match {allowed}, got {_start(name)}"
    return ""


def reason_problem(reason: str) -> str:
    """Return why the API server would reject the reason of a condition; empty if it would not.

    Example:
        >>> reason_problem("BackupDone")
        ''
        >>> reason_problem("backup done")
        "a reason must begin with a letter, contain only letters, digits and _,: and not end with , or :, \
got 'backup done'"
    """
    if len(reason) > _LONGEST_REASON:
        return f"a reason has at most {_LONGEST_REASON} characters, got {len(reason)}: {_start(reason)}"
    if not _REASON.fullmatch(reason):
        allowed = "begin with a letter, contain only letters, digits and _,: and not end with , or :"
        return f"a reason must {allowed}, got {_start(reason)}"
    return ""


def shortened_message(message: str) -> str:
    """Return a message as the API server accepts it: with at most `LONGEST_MESSAGE` characters, all of Unicode.

    Returns:
        The message; a longer one is cut, and ends with the number of characters that were cut. Half of a surrogate
        pair, as in the name of a file that is not UTF-8, is written as an escape.

    Example:
        >>> shortened_message("waiting"), len(shortened_message("x" * 40_000)), shortened_message("x" * 40_000)[-24:]
        ('waiting', 32768, 'x… (7255 characters cut)')
    """
    message = encodable(message)
    cut = len(message) - LONGEST_MESSAGE
    if cut <= 0:
        return message
    while True:
        end = f"… ({cut} characters cut)"
        kept = LONGEST_MESSAGE - len(end)
        # The end displaces characters, too, so the number grows until it counts them.
        if len(message) - kept == cut:
            return message[:kept] + end
        cut = len(message) - kept


def _start(text: str) -> str:
    return f"{text[:_SHOWN]!r}…" if len(text) > _SHOWN else repr(text)
