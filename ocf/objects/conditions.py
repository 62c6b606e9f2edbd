"""Status conditions, as `metav1.Condition` defines them.

Sources: `k8s.io/apimachinery/pkg/api/meta/conditions.go`; the limits are those of the schema of `metav1.Condition` in
`k8s.io/apimachinery/pkg/apis/meta/v1/types.go`, which the API server enforces where a CustomResourceDefinition has it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, TypeVar

from ocf.objects.manifest import Manifest
from ocf.objects.timestamps import format_time

__all__ = [
    "LONGEST_MESSAGE",
    "ConditionStatus",
    "condition_type_problem",
    "find_condition",
    "is_condition_true",
    "reason_problem",
    "set_condition",
    "shortened_message",
    "transition_time",
    "with_condition",
]

TimeT = TypeVar("TimeT")

LONGEST_MESSAGE: Final = 32_768
"""Most characters of a condition's message."""
_LONGEST_REASON: Final = 1_024
_LONGEST_TYPE: Final = 316
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
        """Return the status of a condition that is known.

        Args:
            value: Whether the condition is True.
        """
        return cls.TRUE if value else cls.FALSE


def find_condition(conditions: Sequence[Manifest] | None, condition_type: str) -> Manifest | None:
    """Return the condition of a type; None if it is absent.

    Args:
        conditions: `status.conditions` of an object; None if the object has none.
        condition_type: Type of the condition.
    """
    return next((condition for condition in conditions or () if condition.get("type") == condition_type), None)


def is_condition_true(conditions: Sequence[Manifest] | None, condition_type: str) -> bool:
    """Return whether the condition of a type is present and True.

    Args:
        conditions: `status.conditions` of an object; None if the object has none.
        condition_type: Type of the condition.

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
        status: The status to store.
        now: The present time.
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

    The transition time also moves if the stored condition has none: the API requires one.

    Args:
        conditions: `status.conditions` of an object; not changed.
        condition_type: Type of the condition.
        status: Its status.
        reason: Machine-readable reason.
        message: Human-readable message.
        observed_generation: `metadata.generation` of the object that the condition is about.
        now: The present time.

    Returns:
        The conditions; the one that was set is in its old place, or at the end if it is new.
    """
    found = find_condition(conditions, condition_type) or {}
    since = found.get("lastTransitionTime")
    condition = {
        "type": condition_type,
        "status": status.value,
        # As a plain text, also if it is a member of an enum.
        "reason": str(reason),
        "message": message,
        "observedGeneration": observed_generation,
        "lastTransitionTime": transition_time(
            status, format_time(now), stored=(found.get("status"), since) if since else None
        ),
    }
    return with_condition(conditions, condition)


def with_condition(conditions: Sequence[Manifest], condition: Manifest) -> list[Manifest]:
    """Return the conditions with one of them replaced in its place, or added at the end.

    Args:
        conditions: `status.conditions` of an object; not changed.
        condition: The new condition.
    """
    if find_condition(conditions, condition["type"]) is None:
        return [*conditions, condition]
    return [condition if other.get("type") == condition["type"] else other for other in conditions]


def condition_type_problem(name: str) -> str:
    """Return why the API server would reject the type of a condition; empty if it would not.

    Args:
        name: The type.

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
        return f"a condition type must match {allowed}, got {name!r}"
    return ""


def reason_problem(reason: str) -> str:
    """Return why the API server would reject the reason of a condition; empty if it would not.

    Args:
        reason: The reason.

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
        return f"a reason must {allowed}, got {reason!r}"
    return ""


def shortened_message(message: str) -> str:
    """Return a message as the API server accepts it: with at most `LONGEST_MESSAGE` characters.

    Args:
        message: Human-readable message of a condition.

    Returns:
        The message; a longer one is cut, and ends with the number of characters that were cut.

    Example:
        >>> shortened_message("waiting"), len(shortened_message("x" * 40_000)), shortened_message("x" * 40_000)[-24:]
        ('waiting', 32768, 'x… (7255 characters cut)')
    """
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
    return f"{text[:_SHOWN]!r}…"
