"""One reconcile of a component: what its steps share, and what is logged and recorded about them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from ocf.component.apply.applier import Applier, ApplyResult
from ocf.component.model.registration import Registration, ScaleTargets
from ocf.component.model.timeouts import call_with_timeout
from ocf.component.status.results import Action, ResourceOutcome
from ocf.concepts import ApplyOperation, Attempt, Event, StatusReport, Why
from ocf.concepts.data import mark_derived
from ocf.errors import OcfError, ReconcileError

if TYPE_CHECKING:
    from ocf.component.model.context import ReconcileContext
    from ocf.objects import Manifest, ObjectKey

__all__ = ["RECREATED", "ReconcileRun", "Reporter", "failing", "raise_all"]

P = ParamSpec("P")
T = TypeVar("T")

RECREATED: Final = "to be created again, because a changed field is immutable"
"""Why an object was deleted, as it follows "deleted" in its event."""

_log: Final = logging.getLogger("ocf.component")
_ACTIONS: Final = {
    ApplyOperation.CREATED: Action.CREATED,
    ApplyOperation.UPDATED: Action.UPDATED,
    ApplyOperation.NONE: Action.UNCHANGED,
}
_EVENT_ACTIONS: Final = {ApplyOperation.CREATED: "Create", ApplyOperation.UPDATED: "Update"}


@dataclass(frozen=True, slots=True)
class ReconcileRun:
    """One reconcile of one component.

    Args:
        component: Name of the component.
        manager: Field manager of the component.
        context: The reconcile of its owner.
        scaling: Targets of the component's scalers.
        timeout: Timeout of one handler call; None for no limit.
        reporter: Logs and records what is done.
    """

    component: str
    manager: str
    context: ReconcileContext
    scaling: ScaleTargets
    timeout: timedelta | None
    reporter: Reporter

    def object_of(self, entry: Registration) -> Applier:
        """Return the object of a resource.

        Args:
            entry: The resource.
        """
        identity = entry.identity
        ignore_fields = self.scaling.ignored.get(identity, entry.options.ignore_fields)
        rendered = self.scaling.rendered.get(identity)
        return Applier(
            entry,
            self.component,
            self.manager,
            self.context,
            ignore_fields,
            rendered=rendered,
            timeout=self.timeout,
        )

    async def ask(
        self, what: str, entry: Registration, handler: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a handler of a resource.

        Args:
            what: The step, as it follows "failed to" in an error.
            entry: The resource.
            handler: A plain function.
            args: Its positional arguments.
            kwargs: Its keyword arguments.

        Raises:
            ReconcileError: If it fails or exceeds the timeout; names the resource and the step.
        """
        try:
            # Most components have no timeout, and handlers are called many times a second.
            return (
                handler(*args, **kwargs)
                if self.timeout is None
                else await call_with_timeout(self.timeout, handler, *args, **kwargs)
            )
        except OcfError as error:
            raise _named(self.component, what, entry, error) from error

    async def extract(self, entry: Registration, live: Manifest) -> None:
        """Fill the data cells that a resource produces.

        Args:
            entry: The resource.
            live: Its live object.
        """
        if entry.producer is not None:
            await self.ask("extract data from", entry, entry.producer.extract_data, live)
            mark_derived(entry.cells_filled, entry.cells_read)

    def finished(self, entry: Registration, applied: ApplyResult, report: StatusReport[Any] | None) -> ResourceOutcome:
        """Record an attempt that succeeded, and return its outcome.

        Args:
            entry: The resource.
            applied: What applying it did.
            report: Its status report; None for a static resource.
        """
        self.reporter.attempted(entry, applied.operation, applied.why)
        return ResourceOutcome(
            resource=entry.identity,
            action=_ACTIONS[applied.operation] if applied.retry_after is None else Action.HELD_BACK,
            report=report,
            writes=applied.writes,
            reasons=applied.reasons,
            why=applied.why,
            retry_after=applied.retry_after,
        )


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
        """Report the writes of an apply.

        Args:
            entry: The resource.
            applied: What it did.
        """
        key, operation = entry.key, applied.operation
        reasons = "; ".join(map(str, applied.reasons))
        self._emit(logging.INFO, "%s %s: %s", operation.lower(), key, reasons, resource=str(key))
        if operation is ApplyOperation.NONE:
            return
        note = f"{operation} {key.kind} '{key.name}'"
        self._record(key, f"{operation}{key.kind}", _EVENT_ACTIONS[operation], note)
        owner = self._context.owned_by.key
        if owner.namespace and not key.namespace and not entry.options.unowned:
            text = "no owner reference on %s: it has no namespace, so it is not collected when %s is deleted"
            self._emit(logging.INFO, text, key, owner, resource=str(key))

    def deleted(self, key: ObjectKey, why: str) -> None:
        """Report that an object was deleted.

        Args:
            key: The object.
            why: The reason, as it follows "deleted".
        """
        note = f"Resource {key} deleted {why}"
        self._emit(logging.INFO, "%s", note, resource=str(key))
        self._record(key, "ResourceDeleted", "Delete", note)

    def orphaned(self, key: ObjectKey) -> None:
        """Report that an object was orphaned.

        Args:
            key: The object.
        """
        note = f"Resource {key} orphaned: owner reference removed"
        self._emit(logging.INFO, "%s", note, resource=str(key))
        self._record(key, "ResourceOrphaned", "Orphan", note)

    def kept(self, key: ObjectKey, why: str) -> None:
        """Report that an object was not deleted, because another controller or user made it.

        Args:
            key: The object.
            why: Why it is kept.
        """
        self._emit(logging.INFO, "%s is not deleted: %s", key, why, resource=str(key), controller=why)

    def inconsistent(self, entry: Registration, converging: str, grace: str) -> None:
        """Report that a resource is not ready, although its grace status is Healthy.

        Args:
            entry: The resource.
            converging: Its status.
            grace: Its grace status.
        """
        if entry.options.suppress_grace_warning:
            return
        resource = entry.identity
        text = "%s is %s, and its grace status is %s: the grace period ends without a verdict"
        fields = {"resource": resource, "convergeStatus": converging, "graceStatus": grace}
        self._emit(logging.INFO, text, resource, converging, grace, **fields)

    def ungraded(self, entry: Registration, problem: str) -> None:
        """Report that a grace handler failed.

        Args:
            entry: Its resource.
            problem: The error.
        """
        self._emit(logging.ERROR, "%s", problem, resource=entry.identity)

    def attempted(self, entry: Registration, operation: ApplyOperation | None, why: Why) -> None:
        """Record an attempt to apply a resource.

        Args:
            entry: The resource.
            operation: What it did; None if it failed.
            why: Why the object was written, or why not.
        """
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
        owner = self._context.owned_by
        event = Event(owner=owner.key, owner_uid=owner.uid, resource=key, reason=reason, action=action, note=note)
        self._context.recorder.happened(event)

    def _emit(self, level: int, text: str, *args: object, **fields: str) -> None:
        if _log.isEnabledFor(level):
            common = {
                "component": self._component,
                "condition": self._condition,
                "owner": str(self._context.owned_by.key),
            }
            _log.log(level, text, *args, extra=common | fields)


@contextmanager
def failing(component: str, what: str, entry: Registration) -> Iterator[None]:
    """Name the component, the resource and the step in an error that is raised in the block.

    Args:
        component: Name of the component.
        what: The step, as it follows "failed to".
        entry: The resource.

    Raises:
        ReconcileError: In place of any `OcfError`.
    """
    try:
        yield
    except OcfError as error:
        raise _named(component, what, entry, error) from error


def _named(component: str, what: str, entry: Registration, error: OcfError) -> ReconcileError:
    detail = str(error).removeprefix(f"{entry.identity}: ")
    problem = f"failed to {what} resource {entry.identity}: {detail}"
    return ReconcileError(component, problem, resource=entry.identity)


def raise_all(component: str, errors: Sequence[ReconcileError]) -> None:
    """Raise collected errors: a single one unchanged, several as one.

    Args:
        component: Name of the component.
        errors: The errors; without any, nothing is raised.
    """
    if len(errors) == 1:
        raise errors[0]
    if errors:
        problem = "; ".join(error.problem for error in errors)
        raise ReconcileError(component, problem) from ExceptionGroup(f'component "{component}"', errors)
