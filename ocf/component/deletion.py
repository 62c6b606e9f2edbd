"""Decisions about an owner that is, or may be, deleted: functions of its manifest, without a cluster.

Two finalizers of ours hold an owner while something is left that Kubernetes does not delete: one for external
resources, which `on_delete` deletes, and one for cluster-scoped objects of a namespaced owner, which the garbage
collector leaves behind, and for objects that were held for the clean-up and have to be released. Each is removed when
its part is done, so a part that is done is not done again, and where only one part exists, the other one cannot hold
the owner.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from ocf.component.model.ownership import finalizers_of, is_ending
from ocf.objects import Manifest
from ocf.objects.manifest import PREFIX
from ocf.objects.paths import get_field

__all__ = [
    "SKIP_CLEANUP",
    "CleanupPending",
    "CleanupReason",
    "DeletionOrder",
    "DeletionStep",
    "cleanup_finalizer",
    "condition_type",
    "decide",
    "external_finalizer",
    "is_held",
]

SKIP_CLEANUP: Final = f"{PREFIX}/skip-cleanup"
"""Annotation of an owner: with the value `true`, its deletion does not wait for a clean-up."""


class DeletionOrder(StrEnum):
    """Order in which a deletion cleans up."""

    EXTERNAL_FIRST = "external first"
    """`on_delete` is called first. Objects that refer to the owner are deleted by Kubernetes: after the owner, or, in a
    foreground deletion and with the namespace, at the same time, unless they are held for the clean-up. The others are
    deleted after `on_delete` has succeeded."""
    COMPONENTS_FIRST = "components first"
    """The objects of the components are deleted, with their pods, and `on_delete` is called once they do not exist."""


class DeletionStep(StrEnum):
    """What the deletion state of an owner requires first."""

    HOLD = "hold"
    """It is not being deleted, and the finalizer for external resources must be set before anything is made."""
    RELEASE = "release"
    """It has the finalizer for external resources, and there is no `on_delete` any more."""
    RECONCILE = "reconcile"
    """It is not being deleted, and that finalizer is as it should be."""
    CLEAN_UP = "clean up"
    """It is being deleted, and a finalizer of ours holds it."""
    SKIP = "skip"
    """It is being deleted, a finalizer of ours holds it, and a user asked to skip the clean-up."""
    CLEANED = "cleaned"
    """It is being deleted, and no finalizer of ours holds it: nothing was made, or everything is cleaned up."""


class CleanupReason(StrEnum):
    """Reason of the condition `<operator>/CleanedUp`."""

    PENDING = "CleanupPending"
    """`on_delete` has not finished."""
    OBJECTS_REMAINING = "ObjectsRemaining"
    """Objects are being deleted."""
    ERROR = "Error"
    """A step failed; it is tried again."""
    SKIPPED = "CleanupSkipped"
    """A user asked to skip the clean-up, or there is no `on_delete` any more."""
    COMPLETED = "Completed"
    """Everything is deleted; another finalizer holds the owner."""


@dataclass(frozen=True, slots=True)
class CleanupPending:
    """Result of an `on_delete` that has not finished: it is called again, and the owner is held until then.

    Args:
        requeue_after: Time until the next call; an event may cause it earlier. An operator waits at least 100
            milliseconds.
        message: The progress, for the message of the condition `<operator>/CleanedUp`.

    Example:
        >>> CleanupPending(timedelta(seconds=10), "database shop is being dropped").message
        'database shop is being dropped'
    """

    requeue_after: timedelta
    message: str = ""


def decide(owner: Manifest, operator: str, *, external: bool) -> DeletionStep:
    """Return what the deletion state of an owner requires first.

    An owner that is being deleted cannot get a finalizer any more: the API server rejects it. So one that was deleted
    before its finalizer was set is not cleaned up, and does not have to be, because nothing was made for it.

    Example:
        >>> decide({"metadata": {"name": "corner"}}, "shops", external=True)
        <DeletionStep.HOLD: 'hold'>
    """
    held = external_finalizer(operator) in finalizers_of(owner)
    if not is_ending(owner):
        if held is external:
            return DeletionStep.RECONCILE
        return DeletionStep.HOLD if external else DeletionStep.RELEASE
    if not held and cleanup_finalizer(operator) not in finalizers_of(owner):
        return DeletionStep.CLEANED
    if get_field(owner, ("metadata", "annotations", SKIP_CLEANUP)) == "true":
        return DeletionStep.SKIP
    return DeletionStep.CLEAN_UP if external or not held else DeletionStep.RELEASE


def cleanup_finalizer(operator: str) -> str:
    """Return the finalizer that holds an owner until its objects without garbage collection are deleted.

    The operator is a label of its domain, so that every name of an operator gives a valid one.

    Args:
        operator: Name of the operator.

    Example:
        >>> cleanup_finalizer("shops")
        'shops.ocf.dev/cleanup'
    """
    return f"{operator}.{PREFIX}/cleanup"


def external_finalizer(operator: str) -> str:
    """Return the finalizer that holds an owner until the operator's `on_delete` has succeeded.

    Args:
        operator: Name of the operator.

    Example:
        >>> external_finalizer("shops")
        'shops.ocf.dev/cleanup-external'
    """
    return f"{cleanup_finalizer(operator)}-external"


def condition_type(operator: str) -> str:
    """Return the type of the condition of an owner whose deletion waits for the clean-up of an operator.

    Example:
        >>> condition_type("shops")
        'shops/CleanedUp'
    """
    return f"{operator}/CleanedUp"


def is_held(owner: Manifest) -> bool:
    """Return whether a controller holds an owner: the finalizers of Kubernetes itself have no domain.

    Example:
        >>> [is_held({"metadata": {"finalizers": [name]}}) for name in ("foregroundDeletion", "example.com/hold")]
        [False, True]
    """
    return any("/" in name for name in finalizers_of(owner))
