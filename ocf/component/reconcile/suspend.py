"""Putting a component to sleep: as many of its resources as possible, scalers before what they scale.

Rendering the suspended form may need data that other resources produce. Those that cannot be suspended themselves
are not applied, only read, and only if somebody needs their data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ocf.component.apply.deleter import OwnedObjectDeleter
from ocf.component.model.resource_options import Lifecycle
from ocf.component.reconcile.run import ReconcileRun, raise_all
from ocf.component.status.results import Action, ResourceOutcome
from ocf.concepts import Data, StatusReport, SuspensionStatus, Why
from ocf.errors import NotReadyError, ReconcileError
from ocf.objects import get_field

if TYPE_CHECKING:
    from ocf.component.apply.applier import Applier, ApplyResult
    from ocf.component.model.registration import Registration
    from ocf.concepts import Suspendable
    from ocf.objects import Manifest

__all__ = ["suspend"]


async def suspend(entries: Sequence[Registration], current: ReconcileRun) -> list[ResourceOutcome]:
    """Bring every resource that can be suspended into its suspended form; guards are not asked.

    Args:
        entries: The managed and read-only resources, scalers first.
        current: The pass.

    Returns:
        What was done.

    Raises:
        ReconcileError: With every error, after all the others were suspended.
    """
    needed = frozenset[Data[Any]]().union(*(entry.cells_read for entry in entries if _is_suspended(entry)))
    outcomes: list[ResourceOutcome] = []
    errors: list[ReconcileError] = []
    for entry in entries:
        try:
            if _is_suspended(entry) and entry.suspendable is not None:
                outcomes.append(await _one(entry, entry.suspendable, current))
            elif not needed.isdisjoint(entry.cells_filled):
                await _read(entry, current)
        except ReconcileError as error:
            errors.append(error)
    raise_all(current.component, errors)
    return outcomes


def _is_suspended(entry: Registration) -> bool:
    return entry.options.lifecycle is Lifecycle.MANAGED and entry.suspendable is not None


async def _read(entry: Registration, current: ReconcileRun) -> None:
    """Get the data of a resource that stays as it is."""
    live = await current.object_of(entry).get()
    if live is not None:
        await current.extract(entry, live)


async def _one(entry: Registration, suspendable: Suspendable, current: ReconcileRun) -> ResourceOutcome:
    """Bring one resource into its suspended form, and delete it where that is what suspending means."""
    managed = current.object_of(entry)
    deletes = await current.ask("suspend", entry, suspendable.delete_on_suspend)
    try:
        live = await managed.get()
        already = _needs_nothing(entry, live, current, deletes=deletes)
        if already is not None:
            return already
        applied = await _applied(managed, live)
        if applied is None:
            return _absent(entry, f"Resource {entry.identity} does not exist.")
        if applied.writes:
            current.reporter.applied(entry, applied)
        asked = "determine suspension status of"
        report = await current.ask(asked, entry, suspendable.suspension_status, applied.live)
    except Exception:
        current.reporter.attempted(entry, None, Why.FAILED)
        raise
    outcome = current.finished(entry, applied, report)
    if entry.cells_filled:
        await current.extract(entry, applied.live)
    if not deletes or report.status is not SuspensionStatus.SUSPENDED:
        return outcome
    await OwnedObjectDeleter(current.component, current.context).delete(applied.live)
    current.reporter.deleted(entry.key, "on suspension")
    if get_field(applied.live, ("metadata", "finalizers")):
        report = _waiting_for_end(entry)
    return ResourceOutcome(
        resource=entry.identity,
        action=Action.DELETED,
        report=report,
        writes=applied.writes + 1,
        reasons=applied.reasons,
        detail="suspended",
    )


async def _applied(managed: Applier, live: Manifest | None) -> ApplyResult | None:
    """Apply the suspended form; None where it cannot be rendered yet, and so there is nothing to put to sleep."""
    try:
        return await managed.apply(live, suspended=True)
    except ReconcileError as error:
        if live is None and _lacks_data(error):
            return None
        raise


def _needs_nothing(
    entry: Registration, live: Manifest | None, current: ReconcileRun, *, deletes: bool
) -> ResourceOutcome | None:
    """Return the outcome of a resource that is not to be touched: gone, going, or somebody else's."""
    if live is None:
        if not deletes:
            return None
        return _absent(entry, f"Resource {entry.identity} already deleted.")
    # What another owner controls is never deleted, whatever the options say.
    if deletes or entry.options.block_on_foreign_controller:
        controller = current.context.owned_by.foreign_controller(live)
        if controller:
            report = StatusReport(SuspensionStatus.SUSPENDED, f"controlled by {controller}")
            return ResourceOutcome(resource=entry.identity, action=Action.KEPT, report=report)
    if deletes and get_field(live, ("metadata", "deletionTimestamp")) is not None:
        return ResourceOutcome(resource=entry.identity, action=Action.UNCHANGED, report=_waiting_for_end(entry))
    return None


def _absent(entry: Registration, reason: str) -> ResourceOutcome:
    report = StatusReport(SuspensionStatus.SUSPENDED, reason)
    return ResourceOutcome(resource=entry.identity, action=Action.ABSENT, report=report)


def _lacks_data(error: BaseException | None) -> bool:
    """Tell whether an object cannot be rendered yet."""
    while error is not None and not isinstance(error, NotReadyError):
        error = error.__cause__
    return error is not None


def _waiting_for_end(entry: Registration) -> StatusReport[SuspensionStatus]:
    return StatusReport(SuspensionStatus.SUSPENDING, f"Waiting for resource {entry.identity} to be deleted.")
