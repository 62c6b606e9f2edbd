"""Results of a reconcile: the writes of a controller, and when it reconciles the object again.

A reconcile function is pure: it reads a `ClusterView` and returns an `Outcome`. The runner sends the writes.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from ocf.objects import Manifest

__all__ = ["Action", "Event", "Outcome", "Write", "create", "delete", "update", "update_status"]

NORMAL: Final = "Normal"
WARNING: Final = "Warning"


class Write(StrEnum):
    """Kind of a write."""

    CREATE = "create"
    UPDATE = "update"
    STATUS = "status"
    APPLY_STATUS = "apply-status"
    BIND = "bind"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Event:
    """An event about an object.

    Args:
        message: Text; `{name}` stands for the name of the written object, `{error}` for the error of a failed write.
        warning: Whether it is a warning.
    """

    about: Manifest
    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Action:
    """One write.

    Args:
        manifest: The object; an update has the resourceVersion of the object that it was computed from, a delete
            needs only the identity.
        done: Event to record after success; None for none.
        failed: Event to record after a failure; None for none.
        force: Delete a pod immediately, as the kubelet does when its containers have stopped.
    """

    write: Write
    manifest: Manifest
    done: Event | None = None
    failed: Event | None = None
    force: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a reconcile.

    Args:
        actions: Writes, in order; the first one that fails ends the reconcile, which is then retried with backoff.
        at: When to reconcile again if nothing changes; None if only a change matters.
    """

    actions: tuple[Action, ...] = ()
    at: datetime | None = None
    events: tuple[Event, ...] = field(default=())


def create(manifest: Manifest, done: Event | None = None, failed: Event | None = None) -> Action:
    """Return the action that creates an object."""
    return Action(Write.CREATE, manifest, done, failed)


def update(manifest: Manifest, done: Event | None = None) -> Action:
    """Return the action that replaces an object."""
    return Action(Write.UPDATE, manifest, done)


def update_status(live: Manifest, status: Manifest) -> Iterable[Action]:
    """Return the action that replaces the status of an object, unless the status is the same.

    Args:
        live: The object as stored.
    """
    if status == live.get("status", {}):
        return ()
    return (Action(Write.STATUS, {**live, "status": status}),)


def delete(manifest: Manifest, done: Event | None = None, *, force: bool = False) -> Action:
    """Return the action that deletes an object if it is still the same one, by uid."""
    return Action(Write.DELETE, manifest, done, force=force)
