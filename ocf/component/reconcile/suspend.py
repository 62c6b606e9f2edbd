"""Suspension of a component: every resource that can be suspended, scalers before their targets.

The suspended form may need data from other resources. A resource that cannot be suspended is only looked at if a
suspended resource needs its data, directly or through another one. Then it is read, and applied only if its object or
its data is gone, because what a user has deleted must not keep a workload running. What only others can make is waited
for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster import Propagation
from ocf.component.apply.deleter import OWNER_ITSELF, OwnedObjectDeleter
from ocf.component.model.resource_options import Lifecycle, Writes
from ocf.component.reconcile.external_apply import ExternalApplier
from ocf.component.reconcile.once import OnceRun
from ocf.component.reconcile.resources import (
    MakeWay,
    raise_all,
    reconcile_one,
)
from ocf.component.reconcile.run import ReconcileRun
from ocf.component.status.conditions import ResourceObservation
from ocf.component.status.results import Action, ResourceOutcome, outcome_attributes, resource_span
from ocf.concepts import AliveStatus, Data, StatusReport, SuspensionStatus
from ocf.concepts.recorder import Why
from ocf.concepts.tracing import annotate_span, spanning
from ocf.errors import NotReadyError, ReconcileError
from ocf.objects.paths import get_field

if TYPE_CHECKING:
    from ocf.component.apply.applier import Applier
    from ocf.component.model.registration import Registration
    from ocf.concepts import Suspendable
    from ocf.objects import Manifest

__all__ = ["is_suspended", "suspend", "suspending_removals"]

_RUN_FINISHED: Final = StatusReport(SuspensionStatus.SUSPENDED, "Its run has finished.")


async def suspend(
    entries: Sequence[Registration], run: ReconcileRun, make_way: MakeWay, *, was_applied: bool = False
) -> list[ResourceOutcome]:
    """Suspend every resource that can be suspended, without asking its guard.

    Args:
        entries: The managed and read-only resources, scalers first.
        run: The reconcile.
        make_way: Called before a resource is suspended.
        was_applied: Whether an earlier reconcile of this suspension has applied the suspended form of all of them.

    Raises:
        ReconcileError: With every error, after all other resources were suspended.
    """
    suspension = _Suspension(run, make_way, was_applied)
    needed = _needed_data(entries)
    outcomes: list[ResourceOutcome] = []
    errors: list[ReconcileError] = []
    for entry in entries:
        try:
            if entry.external is not None:
                outcomes += await _suspend_external(entry, suspension, needed)
            elif is_suspended(entry) and entry.suspendable is not None:
                with spanning(resource_span, entry.key):
                    outcomes.append(await _suspend_one(entry, entry.suspendable, suspension))
                    annotate_span(outcome_attributes, outcomes[-1])
            elif not needed.isdisjoint(entry.cells_filled):
                outcomes += await _provide(entry, suspension)
        except ReconcileError as error:
            errors.append(error)
    raise_all(run.component, errors)
    return outcomes


@dataclass(frozen=True, slots=True)
class _Suspension:
    """One reconcile of a suspended component.

    Args:
        make_way: Called before a resource is suspended.
        was_applied: Whether an earlier reconcile of this suspension has applied the suspended forms.
        missing: Why data is missing, one text per resource that should have provided it.
    """

    run: ReconcileRun
    make_way: MakeWay
    was_applied: bool
    missing: list[str] = field(default_factory=list)


def is_suspended(entry: Registration) -> bool:
    """Return whether a suspension changes an object: not one that is only created, nor one of others."""
    if entry.external is not None:
        return entry.options.lifecycle is Lifecycle.MANAGED and entry.external.suspended is not None
    if entry.options.writes is not Writes.ALL:
        return False
    return entry.options.lifecycle is Lifecycle.MANAGED and entry.suspendable is not None


def _needed_data(entries: Sequence[Registration]) -> set[Data[Any]]:
    """Return the data cells that the suspended forms need, and the resources that fill those."""
    needed: set[Data[Any]] = set()
    for entry in reversed(entries):
        if is_suspended(entry) or not needed.isdisjoint(entry.cells_filled):
            needed |= entry.cells_read
    return needed


async def _provide(entry: Registration, suspension: _Suspension) -> list[ResourceOutcome]:
    """Extract the data of a resource that is not suspended; a managed one that has none is applied, after its guard."""
    run = suspension.run
    is_ours = entry.options.lifecycle is Lifecycle.MANAGED
    live = await run.applier(entry).get()
    if live is not None:
        try:
            await run.extract(entry, live)
        except ReconcileError:
            if not is_ours:
                raise
        else:
            return []
    if not is_ours:
        suspension.missing.append(entry.identity)
        return []
    outcome, _ = await reconcile_one(entry, run, suspension.make_way)
    if outcome.action is Action.BLOCKED:
        why = outcome.report.reason if outcome.report is not None else ""
        suspension.missing.append(f"{entry.identity} ({why})" if why else entry.identity)
        return []
    # It takes part with its data, and not with its health.
    return [replace(outcome, report=None)]


def suspending_removals(outcomes: Iterable[ResourceOutcome]) -> list[ResourceObservation]:
    """Return what external resources mean for the condition that have to be removed and are still there."""
    return [ResourceObservation(one.resource, _external_report(one)) for one in outcomes if one.report is not None]


async def _suspend_external(
    entry: Registration, suspension: _Suspension, needed: set[Data[Any]]
) -> list[ResourceOutcome]:
    """Apply the suspended form of an external resource; one without is only read, if its data is needed."""
    external = ExternalApplier(entry, suspension.run)
    if is_suspended(entry):
        outcome = await external.apply(suspended=True)
        return [replace(outcome, report=_external_report(outcome))]
    if not needed.isdisjoint(entry.cells_filled):
        outcome_read = await external.read_only()
        if outcome_read is None or any(not cell.is_set for cell in entry.cells_filled):
            suspension.missing.append(entry.identity)
    return []


async def _suspend_one(entry: Registration, suspendable: Suspendable, suspension: _Suspension) -> ResourceOutcome:
    """Apply the suspended form of a resource, or delete its object if it is deleted on suspension."""
    run = suspension.run
    managed = run.applier(entry)
    deletes = await _deletes(entry, suspendable, run)
    deleter = OwnedObjectDeleter(run.component, run.context)
    with run.reporter.failures_attempted(entry):
        live = await managed.get()
        once = OnceRun.of(entry, run)
        past = await once.finished(live) if once is not None else None
        # A finished run is left as it is: it does not run again when the component is resumed.
        done = (
            _finished(past)
            or await _awaiting(entry, managed, live, suspension)
            or _needs_nothing(entry, live, run, deletes=deletes)
        )
        if done is not None:
            return done
        held = deleter.held_back(live) if deletes and live is not None else None
        if held is not None:
            report = StatusReport(SuspensionStatus.SUSPENDING, f"{entry.identity}: {held[0]}")
            return ResourceOutcome(
                resource=entry.identity,
                action=Action.HELD_BACK,
                report=report,
                why=Why.BACKING_OFF,
                retry_after=held[1],
            )
        if deletes and live is not None and await _goes_straight(managed, deleter, live):
            report = await _status(entry, suspendable, live, run)
            outcome = ResourceOutcome(resource=entry.identity, action=Action.UNCHANGED, report=report)
        else:
            outcome, live = await _suspended(entry, suspendable, managed, live, suspension)
            past = await once.finished(live) if once is not None and live is not None else None
            if past is not None:
                # It has ended since it was read, so it is left as it is, too.
                outcome, deletes = replace(outcome, report=_RUN_FINISHED, retry_after=past.retry_after), False
    if live is None:
        return outcome
    if entry.cells_filled:
        await run.extract(entry, live)
    if not deletes or outcome.report is None or outcome.report.status is not SuspensionStatus.SUSPENDED:
        return outcome
    if await deleter.is_left_to_kubernetes(live):
        return replace(outcome, report=_waiting_for_deletion(entry))
    propagation = entry.options.stopping_propagation
    await deleter.delete(live, propagation)
    run.reporter.deleted(entry.key, "on suspension")
    stays = propagation is Propagation.FOREGROUND or get_field(live, ("metadata", "finalizers"))
    return ResourceOutcome(
        resource=entry.identity,
        action=Action.DELETED,
        report=_waiting_for_deletion(entry) if stays else outcome.report,
        writes=outcome.writes + 1,
        reasons=outcome.reasons,
        detail="suspended",
    )


async def _awaiting(
    entry: Registration, managed: Applier, live: Manifest | None, suspension: _Suspension
) -> ResourceOutcome | None:
    """Return the outcome of a scaler whose target another one, which is being deleted, still scales."""
    awaited = await suspension.make_way(entry, managed, live)
    if not awaited:
        return None
    report = StatusReport(SuspensionStatus.SUSPENDING, f"{entry.identity}: {awaited}")
    return ResourceOutcome(resource=entry.identity, action=Action.UNCHANGED, report=report)


async def _goes_straight(managed: Applier, deleter: OwnedObjectDeleter, live: Manifest) -> bool:
    """Return whether an object is deleted as it is: it is ours, and its suspension changes nothing in it.

    What else has changed would be applied only to be deleted, and an error in it would keep the object.
    """
    return not deleter.reason_to_keep(live) and not await managed.is_changed_by_suspension()


async def _suspended(
    entry: Registration,
    suspendable: Suspendable,
    managed: Applier,
    live: Manifest | None,
    suspension: _Suspension,
) -> tuple[ResourceOutcome, Manifest | None]:
    """Apply the suspended form of a resource; return its outcome, and its object unless there is nothing more to do."""
    run = suspension.run
    try:
        applied = await managed.apply(live, suspended=True)
    except ReconcileError as error:
        lacking = _lacking_data(error)
        if lacking is None:
            raise
        if live is None:
            return _absent(entry, f"Resource {entry.identity} does not exist."), None
        if not suspension.was_applied:
            waiting = f"waiting for {', '.join(suspension.missing) or lacking}"
            report = StatusReport(SuspensionStatus.PENDING, f"{entry.identity}: {waiting}")
            return ResourceOutcome(resource=entry.identity, action=Action.UNCHANGED, report=report), None
        return ResourceOutcome(
            resource=entry.identity, action=Action.UNCHANGED, report=await _status(entry, suspendable, live, run)
        ), live
    if applied.why is Why.NOT_ADOPTED:
        # As one that another owner controls: it is not the component's to suspend.
        run.reporter.applied(entry, applied)
        kept = ResourceOutcome(
            resource=entry.identity,
            action=Action.KEPT,
            report=StatusReport(SuspensionStatus.SUSPENDED, applied.waiting),
            writes=applied.writes,
            why=applied.why,
        )
        return kept, None
    if applied.waiting:
        if applied.deleted_because:
            run.reporter.deleted(entry.key, applied.deleted_because)
        return run.finished(entry, applied, StatusReport(SuspensionStatus.SUSPENDING, applied.waiting)), None
    if applied.writes:
        run.reporter.applied(entry, applied)
    if applied.revert_message:
        # Another writer resumes it, whatever its status shows so far.
        report = StatusReport(SuspensionStatus.SUSPENDING, f"{entry.identity}: {applied.revert_message}")
    else:
        report = await _status(entry, suspendable, applied.live, run)
    return run.finished(entry, applied, report), applied.live


async def _status(
    entry: Registration, suspendable: Suspendable, live: Manifest, run: ReconcileRun
) -> StatusReport[SuspensionStatus]:
    return await run.ask("determine suspension status of", entry, suspendable.suspension_status, live)


async def _deletes(entry: Registration, suspendable: Suspendable, run: ReconcileRun) -> bool:
    """Return whether the object is deleted on suspension; the owner itself never is."""
    deletes = await run.ask("suspend", entry, suspendable.delete_on_suspend)
    if deletes and run.context.owned_by.is_object(entry.key):
        run.reporter.kept(entry.key, OWNER_ITSELF)
        return False
    return deletes


def _needs_nothing(
    entry: Registration, live: Manifest | None, run: ReconcileRun, *, deletes: bool
) -> ResourceOutcome | None:
    """Return the outcome of a resource whose object is deleted, being deleted, or controlled by another owner."""
    if live is None:
        if not deletes:
            return None
        return _absent(entry, f"Resource {entry.identity} already deleted.")
    # An object that another owner controls is never deleted, whatever the options.
    owner = run.context.owned_by
    controller = owner.foreign_controller(live) if deletes else run.blocking_controller(entry, live)
    if controller:
        report = StatusReport(SuspensionStatus.SUSPENDED, f"controlled by {controller}")
        return ResourceOutcome(resource=entry.identity, action=Action.KEPT, report=report)
    if deletes and get_field(live, ("metadata", "deletionTimestamp")) is not None:
        return ResourceOutcome(resource=entry.identity, action=Action.UNCHANGED, report=_waiting_for_deletion(entry))
    return None


def _finished(past: ResourceOutcome | None) -> ResourceOutcome | None:
    """Return the outcome of a task whose run has finished, as one that is suspended."""
    return past and replace(past, report=_RUN_FINISHED)


def _absent(entry: Registration, reason: str) -> ResourceOutcome:
    report = StatusReport(SuspensionStatus.SUSPENDED, reason)
    return ResourceOutcome(resource=entry.identity, action=Action.ABSENT, report=report)


def _lacking_data(error: BaseException | None) -> NotReadyError | None:
    """Return why an object cannot be rendered yet, because data is missing; None for any other error."""
    while error is not None and not isinstance(error, NotReadyError):
        error = error.__cause__
    return error


def _waiting_for_deletion(entry: Registration) -> StatusReport[SuspensionStatus]:
    return StatusReport(SuspensionStatus.SUSPENDING, f"Waiting for resource {entry.identity} to be deleted.")


def _external_report(outcome: ResourceOutcome) -> StatusReport[SuspensionStatus]:
    """Return the report of an external resource whose suspended form was applied."""
    report: Any = outcome.report
    if report is None or report.status is AliveStatus.HEALTHY:
        return StatusReport(SuspensionStatus.SUSPENDED)
    return StatusReport(SuspensionStatus.SUSPENDING, report.reason or str(report.status))
