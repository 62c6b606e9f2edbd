"""What is logged and recorded about one reconcile of a component."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ocf.component.status.results import DRY_RUN
from ocf.concepts import ApplyOperation, Attempt
from ocf.concepts.recorder import Why

if TYPE_CHECKING:
    from ocf.component.apply.apply_result import ApplyResult
    from ocf.component.context import ReconcileContext
    from ocf.component.model.registration import Registration
    from ocf.objects import ObjectKey

__all__ = ["Reporter"]

_log: Final = logging.getLogger("ocf.component")
_EVENT_ACTIONS: Final = {ApplyOperation.CREATED: "Create", ApplyOperation.UPDATED: "Update"}


class Reporter:
    """Logs what one reconcile of one component does, and sends it to the recorder.

    Values of fields are never logged or recorded.

    Args:
        component: Name of the component.
        condition: Type of its condition.
        context: The reconcile of the owner.
    """

    def __init__(self, component: str, condition: str, context: ReconcileContext) -> None:
        self._component = component
        self._condition = condition
        self._context = context

    def applied(self, entry: Registration, applied: ApplyResult) -> None:
        """Report the writes of an apply."""
        key, operation = entry.key, applied.operation
        if applied.why in {Why.NOT_ADOPTED, Why.NOT_OURS}:
            # All that is written in such an object is the release of fields.
            if applied.writes:
                self.released(key, "because the component does not take the object over")
            return
        reasons = "; ".join(map(str, applied.reasons))
        self._emit(logging.INFO, "%s %s: %s", operation.lower(), key, reasons, resource=str(key))
        if operation is ApplyOperation.NONE:
            return
        note = f"{operation} {self._context.owned_by.named(key)}"
        self._record(key, f"{operation}{key.kind}", _EVENT_ACTIONS[operation], note)
        owner = self._context.owned_by.key
        if owner.namespace and not key.namespace and not entry.options.unowned:
            text = "no owner reference on %s: it has no namespace, so it is not collected when %s is deleted"
            self._emit(logging.INFO, text, key, owner, resource=str(key))

    def deleted(self, key: ObjectKey, why: str) -> None:
        """Report that an object was deleted."""
        note = f"Resource {key} deleted {why}"
        self._emit(logging.INFO, "%s", note, resource=str(key))
        self._record(key, "ResourceDeleted", "Delete", note)

    def orphaned(self, key: ObjectKey) -> None:
        """Report that an object was orphaned."""
        note = f"Resource {key} orphaned: owner reference removed"
        self._emit(logging.INFO, "%s", note, resource=str(key))
        self._record(key, "ResourceOrphaned", "Orphan", note)

    def released(self, key: ObjectKey, why: str) -> None:
        """Report that the fields were released that the component had set in an object of another writer."""
        note = f"Fields of {key} released {why}"
        self._emit(logging.INFO, "%s", note, resource=str(key))
        self._record(key, "FieldsReleased", "Release", note)

    def external(self, entry: Registration, action: str, why: str, *, warning: bool = False) -> None:
        """Report what was done with an external resource, or, as a warning, why a call failed."""
        key = entry.key
        note = f"Call for {key} failed: {why}" if warning else f"External resource {key} {why}"
        reason = "ExternalCallFailed"
        if action in {"Create", "Update"}:
            reason, note = f"{action}d{key.kind}", f"{action}d {key.kind} '{key.name}'"
        elif action == "Delete":
            reason, note = "ResourceDeleted", f"Resource {key} deleted {why}"
        elif not warning:
            reason = f"Resource{action}ed"
        self._emit(logging.WARNING if warning else logging.INFO, "%s", note, resource=str(key))
        owner = self._context.owned_by
        event = owner.event(owner.key, reason, note, action=action)
        self._context.recorder.happened(replace(event, type="Warning") if warning else event)

    def kept(self, key: ObjectKey, why: str) -> None:
        """Report that an object was not deleted, because another controller or user made it."""
        self._emit(logging.INFO, "%s is not deleted: %s", key, why, resource=str(key), controller=why)

    def inconsistent(self, entry: Registration, converging: str, grace: str) -> None:
        """Report that a resource is not ready, although its grace status is Healthy."""
        if entry.options.suppress_grace_warning:
            return
        resource = entry.identity
        text = "%s is %s, and its grace status is %s: the grace period ends without a verdict"
        fields = {"resource": resource, "convergeStatus": converging, "graceStatus": grace}
        self._emit(logging.INFO, text, resource, converging, grace, **fields)

    def ungraded(self, entry: Registration, problem: str) -> None:
        """Report that a grace handler failed."""
        self._emit(logging.ERROR, "%s", problem, resource=entry.identity)

    @contextmanager
    def failures_attempted(self, entry: Registration) -> Iterator[None]:
        """Record a failed attempt if the block raises an error, unless that is because the owner is paused."""
        try:
            yield
        except Exception:
            if self._context.pause is None:
                self.attempted(entry, None, Why.FAILED)
            raise

    def attempted(self, entry: Registration, operation: ApplyOperation | None, why: Why) -> None:
        """Record an attempt to apply a resource."""
        self._context.recorder.attempted(
            Attempt(
                owner=self._context.owned_by.key,
                component=self._component,
                resource=entry.key,
                label=entry.label,
                operation=operation,
                why=why,
            )
        )

    def _record(self, key: ObjectKey, reason: str, action: str, note: str) -> None:
        self._context.recorder.happened(self._context.owned_by.event(key, reason, note, action=action))

    def _emit(self, level: int, text: str, *args: object, **fields: str) -> None:
        if _log.isEnabledFor(level):
            common = {
                "component": self._component,
                "condition": self._condition,
                "owner": str(self._context.owned_by.key),
            }
            _log.log(level, f"{DRY_RUN if self._context.dry_run else ''}{text}", *args, extra=common | fields)
