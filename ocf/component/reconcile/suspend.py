"""Suspension of a component: every resource that can be suspended, scalers before their targets.

The suspended form may need data from other resources. A resource that cannot be suspended is not applied; it is only
read if a suspended resource needs its data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ocf.component.apply.deleter import OWNER_ITSELF, OwnedObjectDeleter
from ocf.component.model.resource_options import Lifecycle
from ocf.component.reconcile.run import RECREATED, ReconcileRun, raise_all
from ocf.component.reconcile.spans import resource_outcome, resource_span
from ocf.component.status.results import Action, ResourceOutcome
from ocf.concepts import Data, StatusReport, SuspensionStatus, Why
from ocf.concepts.tracing import traced
from ocf.errors import NotReadyError, ReconcileError
from ocf.objects import get_field

if TYPE_CHECKING:
    from ocf.component.apply.applier import Applier, ApplyResult
    from ocf.component.model.registration import Registration
    from ocf.concepts import Suspendable
    from ocf.objects import Manifest

__all__ = ["suspend"]


async def suspend(entries: Sequence[Registration], run: ReconcileRun) -> list[ResourceOutcome]:
    """Suspend every resource that can be suspended; guards are not evaluated.

    Args:
        entries: The managed and read-only resources, scalers first.
        run: The reconcile.

    Returns:
        The outcomes.

    Raises:
        ReconcileError: With every error, after all other resources were suspended.
    """
    needed = frozenset[Data[Any]]().union(*(entry.cells_read for entry in entries if _is_suspended(entry)))
    outcomes: list[ResourceOutcome] = []
    errors: list[ReconcileError] = []
    for entry in entries:
        try:
            if _is_suspended(entry) and entry.suspendable is not None:
                outcomes.append(await _suspend_one(entry, entry.suspendable, run))
            elif not needed.isdisjoint(entry.cells_filled):
                await _read(entry, run)
        except ReconcileError as error:
            errors.append(error)
    raise_all(run.component, errors)
    return outcomes


def _is_suspended(entry: Registration) -> bool:
    return entry.options.lifecycle is Lifecycle.MANAGED and entry.suspendable is not None


async def _read(entry: Registration, run: ReconcileRun) -> None:
    """Extract the data of a resource that is not suspended."""
    live = await run.object_of(entry).get()
    if live is not None:
        await run.extract(entry, live)


@traced(resource_span, resource_outcome)
async def _suspend_one(entry: Registration, suspendable: Suspendable, run: ReconcileRun) -> ResourceOutcome:
    """Apply the suspended form of a resource, or delete its object if it is deleted on suspension."""
    managed = run.object_of(entry)
    deletes = await _deletes(entry, suspendable, run)
    try:
        live = await managed.get()
        done = _needs_nothing(entry, live, run, deletes=deletes)
        if done is not None:
            return done
        applied = await _applied(managed, live)
        if applied is None:
            return _absent(entry, f"Resource {entry.identity} does not exist.")
        if applied.waiting:
            if applied.writes:
                run.reporter.deleted(entry.key, RECREATED)
            report = StatusReport(SuspensionStatus.SUSPENDING, applied.waiting)
            return run.finished(entry, applied, report)
        if applied.writes:
            run.reporter.applied(entry, applied)
        step = "determine suspension status of"
        report = await run.ask(step, entry, suspendable.suspension_status, applied.live)
    except Exception:
        run.reporter.attempted(entry, None, Why.FAILED)
        raise
    outcome = run.finished(entry, applied, report)
    if entry.cells_filled:
        await run.extract(entry, applied.live)
    if not deletes or report.status is not SuspensionStatus.SUSPENDED:
        return outcome
    await OwnedObjectDeleter(run.component, run.context).delete(applied.live)
    run.reporter.deleted(entry.key, "on suspension")
    if get_field(applied.live, ("metadata", "finalizers")):
        report = _waiting_for_deletion(entry)
    return ResourceOutcome(
        resource=entry.identity,
        action=Action.DELETED,
        report=report,
        writes=applied.writes + 1,
        reasons=applied.reasons,
        detail="suspended",
    )


async def _deletes(entry: Registration, suspendable: Suspendable, run: ReconcileRun) -> bool:
    """Return whether the object is deleted on suspension; the owner itself never is."""
    deletes = await run.ask("suspend", entry, suspendable.delete_on_suspend)
    if deletes and run.context.owned_by.is_object(entry.key):
        run.reporter.kept(entry.key, OWNER_ITSELF)
        return False
    return deletes


async def _applied(managed: Applier, live: Manifest | None) -> ApplyResult | None:
    """Apply the suspended form; None if the object does not exist and data for rendering it is missing."""
    try:
        return await managed.apply(live, suspended=True)
    except ReconcileError as error:
        if live is None and _lacks_data(error):
            return None
        raise


def _needs_nothing(
    entry: Registration, live: Manifest | None, run: ReconcileRun, *, deletes: bool
) -> ResourceOutcome | None:
    """Return the outcome of a resource whose object is deleted, being deleted, or controlled by another owner."""
    if live is None:
        if not deletes:
            return None
        return _absent(entry, f"Resource {entry.identity} already deleted.")
    # An object that another owner controls is never deleted, whatever the options.
    if deletes or entry.options.block_on_foreign_controller:
        controller = run.context.owned_by.foreign_controller(live)
        if controller:
            report = StatusReport(SuspensionStatus.SUSPENDED, f"controlled by {controller}")
            return ResourceOutcome(resource=entry.identity, action=Action.KEPT, report=report)
    if deletes and get_field(live, ("metadata", "deletionTimestamp")) is not None:
        return ResourceOutcome(resource=entry.identity, action=Action.UNCHANGED, report=_waiting_for_deletion(entry))
    return None


def _absent(entry: Registration, reason: str) -> ResourceOutcome:
    report = StatusReport(SuspensionStatus.SUSPENDED, reason)
    return ResourceOutcome(resource=entry.identity, action=Action.ABSENT, report=report)


def _lacks_data(error: BaseException | None) -> bool:
    """Return whether an object cannot be rendered because data is missing."""
    while error is not None and not isinstance(error, NotReadyError):
        error = error.__cause__
    return error is not None


def _waiting_for_deletion(entry: Registration) -> StatusReport[SuspensionStatus]:
    return StatusReport(SuspensionStatus.SUSPENDING, f"Waiting for resource {entry.identity} to be deleted.")
