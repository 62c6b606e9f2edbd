"""Resource loop: check the guard of each resource, apply or read it, get its status, and extract its data.

Independent resources are reconciled concurrently with the others, which are reconciled in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ocf.component.model.resource_options import Lifecycle, Participation
from ocf.component.reconcile.run import RECREATED, ReconcileRun, raise_all
from ocf.component.reconcile.spans import resource_outcome, resource_span
from ocf.component.status.conditions import ResourceObservation
from ocf.component.status.results import Action, ResourceOutcome
from ocf.concepts import ApplyOperation, GraceStatus, GuardStatus, StatusReport, Why
from ocf.concepts.tracing import traced
from ocf.errors import ReconcileError

if TYPE_CHECKING:
    from ocf.component.apply.applier import ApplyResult
    from ocf.component.model.registration import Registration
    from ocf.objects import Manifest

__all__ = ["converge", "reconcile_one"]


async def converge(
    entries: Sequence[Registration], run: ReconcileRun, *, grading: bool = False
) -> tuple[list[ResourceOutcome], list[ResourceObservation]]:
    """Reconcile the resources in order, up to the first that is blocked, and independent ones concurrently.

    Args:
        entries: The managed and read-only resources.
        run: The reconcile.
        grading: Whether the grace status is evaluated, because the grace period is over.

    Returns:
        The outcomes, and the observations that count for the condition.

    Raises:
        ReconcileError: Names the resource that failed: the first of those in order, after which no later one is
            reached, and every independent one.
    """
    loop = _Loop(run)
    independent = [entry for entry in entries if entry.options.independent]
    in_order = loop.in_order([entry for entry in entries if not entry.options.independent])
    if independent:
        await _gather(run.component, [in_order, *(loop.step(entry) for entry in independent)])
    else:
        await in_order
    reached = [(entry, *loop.reached[entry.identity]) for entry in entries if entry.identity in loop.reached]
    counting = [
        (ResourceObservation(entry.identity, outcome.report), entry, live)
        for entry, outcome, live in reached
        if outcome.report is not None and _counts(entry, outcome.report)
    ]
    if grading and not all(observation.is_ready for observation, _, _ in counting):
        observations = [await _graded(observation, entry, live, run) for observation, entry, live in counting]
    else:
        observations = [observation for observation, _, _ in counting]
    return [outcome for _, outcome, _ in reached], observations


@dataclass(slots=True)
class _Loop:
    """Outcomes and live objects of the resources that were reached so far."""

    run: ReconcileRun
    reached: dict[str, tuple[ResourceOutcome, Manifest | None]] = field(default_factory=dict)

    async def in_order(self, entries: Sequence[Registration]) -> None:
        for entry in entries:
            outcome = await self.step(entry)
            if outcome.action is Action.BLOCKED:
                break

    async def step(self, entry: Registration) -> ResourceOutcome:
        outcome, live = await reconcile_one(entry, self.run)
        self.reached[entry.identity] = outcome, live
        return outcome


async def _gather(component: str, work: Sequence[Coroutine[Any, Any, object]]) -> None:
    """Run everything to its end, and raise all errors after that."""
    results = await asyncio.gather(*work, return_exceptions=True)
    problems = [result for result in results if isinstance(result, BaseException)]
    for problem in problems:
        if not isinstance(problem, ReconcileError):
            raise problem
    raise_all(component, [problem for problem in problems if isinstance(problem, ReconcileError)])


def _counts(entry: Registration, report: StatusReport[Any]) -> bool:
    return report.status == GuardStatus.BLOCKED or entry.options.participation is Participation.REQUIRED


@traced(resource_span, lambda reached: resource_outcome(reached[0]))
async def reconcile_one(entry: Registration, run: ReconcileRun) -> tuple[ResourceOutcome, Manifest | None]:
    """Reconcile one resource, unless its guard blocks it.

    Args:
        entry: A managed or read-only resource.
        run: The reconcile.

    Returns:
        The outcome; and the live object, None if the resource is blocked or its object does not exist.

    Raises:
        ReconcileError: Names the resource and the step that failed.
    """
    if entry.guardable is not None:
        guard = await run.ask("evaluate guard for", entry, entry.guardable.guard_status)
        if guard.status is GuardStatus.BLOCKED:
            return _blocked(entry, guard.reason), None
    if entry.options.lifecycle is Lifecycle.READ_ONLY:
        return await _read(entry, await run.object_of(entry).get(), run)
    return await _managed(entry, run)


async def _read(
    entry: Registration, live: Manifest | None, run: ReconcileRun
) -> tuple[ResourceOutcome, Manifest | None]:
    if live is None:
        if entry.options.ignore_if_absent:
            return ResourceOutcome(resource=entry.identity, action=Action.ABSENT), None
        if entry.options.block_on_absence:
            return _blocked(entry, f"waiting for {entry.identity}"), None
        problem = f"failed to read resource {entry.identity}: it does not exist"
        raise ReconcileError(run.component, problem, resource=entry.identity)
    report = await _status(entry, ApplyOperation.NONE, live, run)
    await run.extract(entry, live)
    return ResourceOutcome(resource=entry.identity, action=Action.UNCHANGED, report=report), live


async def _managed(entry: Registration, run: ReconcileRun) -> tuple[ResourceOutcome, Manifest | None]:
    managed = run.object_of(entry)
    try:
        live = await managed.get()
        if live is not None and entry.options.block_on_foreign_controller:
            controller = run.context.owned_by.foreign_controller(live)
            if controller:
                return _blocked(entry, f"controlled by {controller}"), None
        applied = await managed.apply(live)
        if applied.waiting:
            return _recreating(entry, applied, run), None
        if applied.writes:
            run.reporter.applied(entry, applied)
        report = await _reported(entry, applied, run)
    except Exception:
        run.reporter.attempted(entry, None, Why.FAILED)
        raise
    outcome = run.finished(entry, applied, report)
    if entry.cells_filled:
        await run.extract(entry, applied.live)
    return outcome, applied.live


def _recreating(entry: Registration, applied: ApplyResult, run: ReconcileRun) -> ResourceOutcome:
    """Return the outcome of a resource whose object is deleted, to be created again later."""
    run.reporter.attempted(entry, applied.operation, applied.why)
    if applied.writes:
        run.reporter.deleted(entry.key, RECREATED)
    blocked = _blocked(entry, applied.waiting)
    return replace(blocked, writes=applied.writes, reasons=applied.reasons, retry_after=applied.retry_after)


async def _reported(entry: Registration, applied: ApplyResult, run: ReconcileRun) -> StatusReport[Any] | None:
    """Return the status of a resource; one whose writes are being reverted is blocked, whatever its status."""
    if applied.revert_message:
        return StatusReport(GuardStatus.BLOCKED, f"{entry.identity}: {applied.revert_message}")
    return await _status(entry, applied.operation, applied.live, run)


async def _status(
    entry: Registration, operation: ApplyOperation, live: Manifest, run: ReconcileRun
) -> StatusReport[Any] | None:
    step = "determine converging status of"
    if entry.alive is not None:
        return await run.ask(step, entry, entry.alive.alive_status, operation, live)
    if entry.operational is not None:
        return await run.ask(step, entry, entry.operational.operational_status, operation, live)
    if entry.completable is not None:
        return await run.ask(step, entry, entry.completable.completion_status, operation, live)
    return None


async def _graded(
    observation: ResourceObservation, entry: Registration, live: Manifest | None, run: ReconcileRun
) -> ResourceObservation:
    """Add the grace status of a resource that has one."""
    if observation.is_blocked or entry.graceful is None or live is None:
        return observation
    try:
        grade = await run.ask("evaluate grace status for", entry, entry.graceful.grace_status, live)
    except ReconcileError as error:
        run.reporter.ungraded(entry, error.problem)
        raise
    if grade.status is GraceStatus.HEALTHY and not observation.is_ready:
        run.reporter.inconsistent(entry, observation.report.status, grade.status)
    return replace(observation, grade=grade)


def _blocked(entry: Registration, reason: str) -> ResourceOutcome:
    return ResourceOutcome(
        resource=entry.identity, action=Action.BLOCKED, report=StatusReport(GuardStatus.BLOCKED, reason)
    )
