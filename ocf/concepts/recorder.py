"""What a reconcile tells about itself, for whoever counts it, posts it or keeps it.

A recorder is told values and does no more than take them: whoever posts events to a cluster, or serves metrics, does
so outside the pass. Nothing that is told holds a value of a field, so nothing secret can get out this way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from ocf.concepts.status import ApplyOperation
from ocf.objects import Manifest, ObjectKey

__all__ = ["Attempt", "Event", "NullRecorder", "Recorder", "Why"]


class Why(StrEnum):
    """Why an object was written, or why a write was left out."""

    ABSENT = "absent"
    """Written: there was no object."""
    CHANGED = "changed"
    """Written: a value is another one."""
    NOT_OWNED = "not owned"
    """Written: a field, or the whole object, was not ours."""
    NO_LONGER_DECLARED = "no longer declared"
    """Written: a field of ours is wanted no more."""
    REORDERED = "in another order"
    """Written: a list of ours has another order."""
    HANDED_OVER = "handed over"
    """Written: a field was left to somebody else."""
    EQUAL = "equal"
    """Left out: compared field by field, an apply would change nothing."""
    IN_SYNC = "in sync"
    """Left out: nothing was to be done in this very version of the object, and nothing else is wanted."""
    BACKING_OFF = "backing off"
    """Left out: somebody undid our last writes, so the next one waits."""
    FAILED = "failed"
    """The attempt failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt to bring an object to its desired state; a resource that is only read is never one.

    Args:
        owner: The owner.
        component: Name of the component.
        resource: The object.
        label: What the resource is called in metrics; the same for every owner.
        operation: What it did; None if it failed.
        why: Why the object was written, or why not.
    """

    owner: ObjectKey
    component: str
    resource: ObjectKey
    label: str
    operation: ApplyOperation | None
    why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that was done to an object, to be told on its owner.

    Args:
        owner: The owner, on which it is told.
        owner_uid: Its uid.
        resource: The object.
        reason: One word in capitals, `UpdatedDeployment`.
        action: What was done, `Update`.
        note: A sentence for people.
        type: `Normal`, or `Warning` for what somebody should look at.
    """

    owner: ObjectKey
    owner_uid: str
    resource: ObjectKey
    reason: str
    action: str
    note: str
    type: str = "Normal"


class Recorder(Protocol):
    """Takes what a pass tells."""

    def attempted(self, attempt: Attempt) -> None:
        """Take an attempt, successful or not: exactly one per managed resource that was reached.

        Args:
            attempt: What was tried.
        """

    def happened(self, event: Event) -> None:
        """Take an event: once per real change.

        Args:
            event: What was done.
        """

    def observed(self, owner: ObjectKey, conditions: Sequence[Manifest]) -> None:
        """Take all conditions of an owner, after its status is known to be stored.

        Args:
            owner: The owner.
            conditions: All of them, those of others included.
        """


class NullRecorder:
    """Takes everything, and keeps nothing."""

    def attempted(self, attempt: Attempt) -> None:
        """Keep nothing."""

    def happened(self, event: Event) -> None:
        """Keep nothing."""

    def observed(self, owner: ObjectKey, conditions: Sequence[Manifest]) -> None:
        """Keep nothing."""
