"""Result of applying one object."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from ocf.component.status.results import Drift
from ocf.concepts import ApplyOperation
from ocf.concepts.recorder import Why
from ocf.errors import MutationError, OcfError, ReconcileError
from ocf.objects import Manifest

__all__ = ["ApplyResult", "failed"]


class ApplyResult(NamedTuple):
    """Result of applying one object.

    Attributes:
        live: The object as stored now.
        operation: What changed.
        why: Why it was written, or why not.
        writes: Number of write requests that were sent.
        reasons: The drift that was found, also if the write is held back.
        revert_message: Message about the field manager that reverts the component's writes; empty if there is
            none.
        retry_after: Time until a write that is held back is sent; None otherwise.
        waiting: Message about an object that is not applied now, because it is deleted or being deleted, must not be
            adopted, or cannot be created in a namespace that is being deleted; empty otherwise.
        deleted_because: Why it was deleted to be created again, as it follows "deleted" in its event; empty if it was
            not.
    """

    live: Manifest
    operation: ApplyOperation
    why: Why
    writes: int = 0
    reasons: tuple[Drift, ...] = ()
    revert_message: str = ""
    retry_after: timedelta | None = None
    waiting: str = ""
    deleted_because: str = ""


def failed(what: str, error: OcfError, *, component: str, identity: str) -> ReconcileError:
    """Return an error that names the resource and the failed step once, as it follows "failed to"."""
    problem = error.problem if isinstance(error, MutationError | ReconcileError) else str(error)
    return ReconcileError(component, f"failed to {what} resource {identity}: {problem}", resource=identity)
