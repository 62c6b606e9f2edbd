"""What a pass over a component tells about itself: attempts and events for the recorder, lines for the log.

Nothing told here holds the value of a field.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Self

from ocf.concepts import ApplyOperation, Attempt, Event, Why

if TYPE_CHECKING:
    from ocf.component.apply.applier import ApplyResult
    from ocf.component.model.context import ReconcileContext
    from ocf.component.model.registration import Registration
    from ocf.objects import ObjectKey

__all__ = ["ApplyAttempt", "Reporter"]

_log: Final = logging.getLogger("ocf.component")
_ACTIONS: Final = {ApplyOperation.CREATED: "Create", ApplyOperation.UPDATED: "Update"}


class ApplyAttempt:
    """An attempt that is under way; told of once, at its end, if it failed or brought the object to its desired state.

    Args:
        journal: Tells of it.
        entry: The resource.
    """

    __slots__ = ("_entry", "_journal", "applied")

    def __init__(self, journal: Reporter, entry: Registration) -> None:
        self._journal = journal
        self._entry = entry
        self.applied: ApplyResult | None = None

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Tell how it ended; a pass that is cancelled tells nothing."""
        if isinstance(error, Exception):
            self._journal.attempted(self._entry, None, Why.FAILED)
        elif error is None and self.applied is not None:
            self._journal.attempted(self._entry, self.applied.operation, self.applied.why)


class Reporter:
    """Tells what one pass over one component does.

    Args:
        component: Name of the component.
        condition: Type of its condition.
        context: The pass over the owner.
    """

    def __init__(self, component: str, condition: str, context: ReconcileContext) -> None:
        self._component = component
        self._condition = condition
        self._context = context

    def attempt(self, entry: Registration) -> ApplyAttempt:
        """Begin an attempt.

        Args:
            entry: The resource.
        """
        return ApplyAttempt(self, entry)

    def applied(self, entry: Registration, trial: ApplyAttempt, applied: ApplyResult) -> None:
        """Tell what an apply changed.

        Args:
            entry: The resource.
            trial: The attempt it is part of.
            applied: What it did.
        """
        trial.applied = applied
        key, operation = entry.resource.key, applied.operation
        if applied.writes:
            text = "%s %s: %s"
            self._say(
                logging.INFO, text, operation.lower(), key, "; ".join(map(str, applied.reasons)), resource=str(key)
            )
        if operation is ApplyOperation.NONE:
            return
        self._happened(key, f"{operation}{key.kind}", _ACTIONS[operation], f"{operation} {key.kind} '{key.name}'")
        owner = self._context.owned_by.key
        if owner.namespace and not key.namespace and not entry.options.unowned:
            text = "no owner reference on %s: it has no namespace, so it is not collected when %s is deleted"
            self._say(logging.INFO, text, key, owner, resource=str(key))

    def deleted(self, key: ObjectKey, why: str) -> None:
        """Tell that an object was deleted.

        Args:
            key: The object.
            why: As it follows "deleted".
        """
        note = f"Resource {key} deleted {why}"
        self._say(logging.INFO, "%s", note, resource=str(key))
        self._happened(key, "ResourceDeleted", "Delete", note)

    def orphaned(self, key: ObjectKey) -> None:
        """Tell that an object was let go of.

        Args:
            key: The object.
        """
        note = f"Resource {key} orphaned: owner reference removed"
        self._say(logging.INFO, "%s", note, resource=str(key))
        self._happened(key, "ResourceOrphaned", "Orphan", note)

    def kept(self, key: ObjectKey, why: str) -> None:
        """Tell that an object was not deleted, because it is somebody else's.

        Args:
            key: The object.
            why: Whose.
        """
        self._say(logging.INFO, "%s is not deleted: %s", key, why, resource=str(key), controller=why)

    def inconsistent(self, entry: Registration, converging: str, grace: str) -> None:
        """Tell that a resource is not ready, although its grace handler calls it healthy.

        Args:
            entry: The resource.
            converging: What it reports.
            grace: What its grace handler says.
        """
        if entry.options.suppress_grace_warning:
            return
        resource = entry.identity
        text = "%s is %s, and its grace status is %s: the grace period ends without a verdict"
        fields = {"resource": resource, "convergeStatus": converging, "graceStatus": grace}
        self._say(logging.INFO, text, resource, converging, grace, **fields)

    def ungraded(self, entry: Registration, problem: str) -> None:
        """Tell that a grace handler failed.

        Args:
            entry: Its resource.
            problem: What is wrong.
        """
        self._say(logging.ERROR, "%s", problem, resource=entry.identity)

    def attempted(self, entry: Registration, operation: ApplyOperation | None, why: Why) -> None:
        """Tell how an attempt ended.

        Args:
            entry: The resource.
            operation: What it did; None if it failed.
            why: Why the object was written, or why not.
        """
        key = entry.resource.key
        self._context.recorder.attempted(
            Attempt(
                owner=self._context.owned_by.key,
                component=self._component,
                resource=key,
                label=entry.label,
                operation=operation,
                why=why,
            )
        )

    def _happened(self, key: ObjectKey, reason: str, action: str, note: str) -> None:
        owner = self._context.owned_by
        event = Event(owner=owner.key, owner_uid=owner.uid, resource=key, reason=reason, action=action, note=note)
        self._context.recorder.happened(event)

    def _say(self, level: int, text: str, *args: object, **fields: str) -> None:
        if _log.isEnabledFor(level):
            told = {
                "component": self._component,
                "condition": self._condition,
                "owner": str(self._context.owned_by.key),
            }
            _log.log(level, text, *args, extra=told | fields)
