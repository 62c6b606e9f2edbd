"""Failures in the status of an owner: the conditions that they are shown in, and the events about new ones.

Everything here is a function of values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ocf.concepts import Event
from ocf.errors import ApiError, BadRequestError, ForbiddenError, InvalidError
from ocf.objects import Manifest, ObjectKey

__all__ = [
    "FAILED_EVENT",
    "FINALIZER_EVENT",
    "REVERTED_EVENT",
    "UNSTORED_EVENT",
    "failure_events",
    "is_refused",
    "shows",
]

FAILED_EVENT: Final = "ReconcileFailed"
"""Reason of the event about a failed reconcile."""
FINALIZER_EVENT: Final = "FinalizerReverted"
"""Reason of the event about a finalizer that another writer sets again each time."""
REVERTED_EVENT: Final = "StatusReverted"
"""Reason of the event about values of the status that another writer reverts again and again."""

UNSTORED_EVENT: Final = "StatusNotStored"
"""Reason of the event about a status that the API server refuses, or of which it drops fields."""

# How many characters of a text are compared.
_COMPARED: Final = 1000


def shows(conditions: Iterable[Manifest], problem: str) -> bool:
    """Return whether the message of a condition contains the text of a failure.

    Args:
        conditions: Conditions of an owner.
        problem: The text.
    """
    # A message that is too long for the API was cut.
    start = problem[:_COMPARED]
    return any(start in str(one.get("message")) for one in conditions)


def failure_events(owner: ObjectKey, uid: str, problems: Iterable[str], stored: Sequence[Manifest]) -> Iterator[Event]:
    """Yield an event for each new failure: one that no condition showed before this reconcile.

    Args:
        owner: The owner.
        uid: UID of the owner.
        problems: Texts of the failures of this reconcile.
        stored: The conditions of the owner as it was read.
    """
    for problem in dict.fromkeys(problems):
        if not shows(stored, problem):
            yield Event(
                owner=owner,
                owner_uid=uid,
                resource=owner,
                reason=FAILED_EVENT,
                action="Reconcile",
                note=problem,
                type="Warning",
            )


def is_refused(error: ApiError) -> bool:
    """Return whether the API server has refused a write, and will refuse it again: by schema, by RBAC, by its size.

    Args:
        error: The error of the write.
    """
    return isinstance(error, BadRequestError | ForbiddenError | InvalidError)
