"""Recorder: receives the attempts, events and conditions of a reconcile.

A recorder only stores what it receives; events are posted and metrics are served outside the reconcile. Records never
contain the value of a field, so they contain no secrets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from ocf.concepts.status import ApplyOperation
from ocf.objects import Manifest, ObjectKey

__all__ = ["Attempt", "Event", "NullRecorder", "Recorder", "Why"]


class Why(StrEnum):
    """Why an object was written, or why a write was skipped."""

    ABSENT = "absent"
    """Written: the object did not exist."""
    CHANGED = "changed"
    """Written: a value differs."""
    NOT_OWNED = "not owned"
    """Written: we did not own a field, or the whole object."""
    NO_LONGER_DECLARED = "no longer declared"
    """Written: the desired state no longer contains a field that we own."""
    REORDERED = "in another order"
    """Written: a list that we own has another order."""
    HANDED_OVER = "handed over"
    """Written: we gave up the ownership of an ignored field."""
    GENERATED = "generated"
    """Written: the object did not have a value that is generated once."""
    TAKEN_OVER = "taken over"
    """Written: we took over what a former writer has set, such as another component of the same owner."""
    CLEARED = "cleared"
    """Written: an edit sets a field to None that another writer has set."""
    ADOPTED = "adopted"
    """Written: the object existed, and another client had created it."""
    EQUAL = "equal"
    """Skipped: a comparison field by field shows that an apply would change nothing."""
    IN_SYNC = "in sync"
    """Skipped: this version of the object is known to be in sync with an unchanged desired state."""
    BACKING_OFF = "backing off"
    """Skipped: another controller reverted our last writes, so the next write waits."""
    NOT_ADOPTED = "not adopted"
    """Skipped: another client has created the object, and it must not be adopted."""
    NOT_OURS = "not ours"
    """Skipped: another client has created the object, which the component only creates, and uses as it is."""
    NOT_CREATED = "not created"
    """Skipped: the object does not exist, and the component only updates it."""
    RECREATING = "recreating"
    """Skipped: the object is being deleted, to be created again."""
    NAMESPACE_ENDING = "namespace ending"
    """Skipped: the namespace of the object is being deleted, so nothing can be created in it."""
    WAITING = "waiting"
    """Skipped: other members of a rollout are changed before it."""
    NOT_SERVED = "not served"
    """Skipped: the API server does not serve the kind, and the resource is left out until it does."""
    FAILED = "failed"
    """The attempt failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt to bring an object to its desired state; reading a read-only resource is not an attempt.

    Args:
        owner: The owner.
        component: Name of the component.
        resource: The object.
        label: Name of the resource in metrics; the same for all owners.
        operation: What the attempt did; None if it failed.
        why: Why the object was written or the write was skipped.
    """

    owner: ObjectKey
    component: str
    resource: ObjectKey
    label: str
    operation: ApplyOperation | None
    why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event about a change of an object, posted on its owner.

    Args:
        owner: The owner, which the event regards.
        owner_uid: UID of the owner.
        resource: The object.
        reason: Machine-readable reason in CamelCase, `UpdatedDeployment`.
        action: The action, `Update`.
        note: Human-readable sentence.
        type: `Normal`, or `Warning` if the user should act.
        owner_version: Resource version of the owner that the event is about; empty if that is not known. Events that
            differ only in it are equal, and one series.
    """

    owner: ObjectKey
    owner_uid: str
    resource: ObjectKey
    reason: str
    action: str
    note: str
    type: str = "Normal"
    owner_version: str = field(default="", compare=False)


class Recorder(Protocol):
    """Receives the records of a reconcile."""

    def attempted(self, attempt: Attempt) -> None:
        """Record an attempt, successful or not: exactly one for each managed resource that was reached.

        Args:
            attempt: The attempt.
        """

    def happened(self, event: Event) -> None:
        """Record an event: once for each real change.

        Args:
            event: The event.
        """

    def observed(self, owner: ObjectKey, conditions: Sequence[Manifest]) -> None:
        """Record all conditions of an owner, after its status is stored.

        Args:
            owner: The owner.
            conditions: All its conditions, including those of other controllers.
        """


class NullRecorder:
    """Recorder that discards all records."""

    def attempted(self, attempt: Attempt) -> None:
        """Discard the record."""

    def happened(self, event: Event) -> None:
        """Discard the record."""

    def observed(self, owner: ObjectKey, conditions: Sequence[Manifest]) -> None:
        """Discard the record."""
