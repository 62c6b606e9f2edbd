"""The resource loop: each resource in its turn is guarded, applied or read, judged, and asked for its data.

Resources that were registered as independent are worked on together with the others: they wait for nobody, and nobody
waits for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ocf.component.model.resource_options import Lifecycle, Participation
from ocf.component.reconcile.run import ReconcileRun, raise_all
from ocf.component.status.conditions import ResourceObservation
from ocf.component.status.results import Action, ResourceOutcome
from ocf.concepts import ApplyOperation, GraceStatus, GuardStatus, StatusReport, Why
from ocf.errors import ReconcileError

if TYPE_CHECKING:
    from ocf.component.apply.applier import Applier, ApplyResult
    from ocf.component.model.registration import Registration
    from ocf.objects import Manifest

__all__ = ["converge"]


async def converge(
    entries: Sequence[Registration], current: ReconcileRun, *, grading: bool = False
) -> tuple[list[ResourceOutcome], list[ResourceObservation]]:
    """Work through the resources: strictly in order, up to the first that is blocked; independent ones beside them.

    Args:
        entries: The managed and read-only resources.
        current: The pass.
        grading: Whether what is not ready is judged, because the grace period is over.

    Returns:
        What was done, and the reports that count for the condition.

    Raises:
        ReconcileError: Naming what failed: of the resources in order the first, after which no later one is reached,
            and every independent one.
    """
    loop = _Loop(current)
    independent = [entry for entry in entries if entry.options.independent]
    in_order = loop.in_order([entry for entry in entries if not entry.options.independent])
    if independent:
        await _all(current.component, [in_order, *(loop.step(entry) for entry in independent)])
    else:
        await in_order
    reached = [(entry, *loop.reached[entry.identity]) for entry in entries if entry.identity in loop.reached]
    counting = [
        (ResourceObservation(entry.identity, outcome.report), entry, live)
        for entry, outcome, live in reached
        if outcome.report is not None and _counts(entry, outcome.report)
    ]
    if grading and not all(observation.is_ready for observation, _, _ in counting):
        observations = [await _graded(observation, entry, live, current) for observation, entry, live in counting]
    else:
        observations = [observation for observation, _, _ in counting]
    return [outcome for _, outcome, _ in reached], observations


@dataclass(slots=True)
class _Loop:
    """The resources that were reached so far: what was done, and the live object."""

    current: ReconcileRun
    reached: dict[str, tuple[ResourceOutcome, Manifest | None]] = field(default_factory=dict)

    async def in_order(self, entries: Sequence[Registration]) -> None:
        for entry in entries:
            outcome = await self.step(entry)
            if outcome.action is Action.BLOCKED:
                break

    async def step(self, entry: Registration) -> ResourceOutcome:
        outcome, live = await _one(entry, self.current)
        self.reached[entry.identity] = outcome, live
        return outcome


async def _all(component: str, work: Sequence[Coroutine[Any, Any, object]]) -> None:
    """Do everything, and raise what failed only then."""
    answers = await asyncio.gather(*work, return_exceptions=True)
    problems = [answer for answer in answers if isinstance(answer, BaseException)]
    for problem in problems:
        if not isinstance(problem, ReconcileError):
            raise problem
    raise_all(component, [problem for problem in problems if isinstance(problem, ReconcileError)])


def _counts(entry: Registration, report: StatusReport[Any]) -> bool:
    return report.status == GuardStatus.BLOCKED or entry.options.participation is Participation.REQUIRED


async def _one(entry: Registration, current: ReconcileRun) -> tuple[ResourceOutcome, Manifest | None]:
    if entry.guardable is not None:
        guard = await current.ask("evaluate guard for", entry, entry.guardable.guard_status)
        if guard.status is GuardStatus.BLOCKED:
            return _blocked(entry, guard.reason), None
    managed = current.object_of(entry)
    if entry.options.lifecycle is Lifecycle.READ_ONLY:
        return await _read(entry, await managed.get(), current)
    return await _managed(entry, managed, current)


async def _read(
    entry: Registration, live: Manifest | None, current: ReconcileRun
) -> tuple[ResourceOutcome, Manifest | None]:
    if live is None:
        if entry.options.ignore_if_absent:
            return ResourceOutcome(resource=entry.identity, action=Action.ABSENT), None
        if entry.options.block_on_absence:
            return _blocked(entry, f"waiting for {entry.identity}"), None
        problem = f"failed to read resource {entry.identity}: it does not exist"
        raise ReconcileError(current.component, problem, resource=entry.identity)
    report = await _status(entry, ApplyOperation.NONE, live, current)
    await current.extract(entry, live)
    return ResourceOutcome(resource=entry.identity, action=Action.UNCHANGED, report=report), live


async def _managed(
    entry: Registration, managed: Applier, current: ReconcileRun
) -> tuple[ResourceOutcome, Manifest | None]:
    try:
        live = await managed.get()
        if live is not None and entry.options.block_on_foreign_controller:
            controller = current.context.owned_by.foreign_controller(live)
            if controller:
                return _blocked(entry, f"controlled by {controller}"), None
        applied = await managed.apply(live)
        if applied.writes:
            current.reporter.applied(entry, applied)
        report = await _reported(entry, applied, current)
    except Exception:
        current.reporter.attempted(entry, None, Why.FAILED)
        raise
    outcome = current.finished(entry, applied, report)
    if entry.cells_filled:
        await current.extract(entry, applied.live)
    return outcome, applied.live


async def _reported(entry: Registration, applied: ApplyResult, current: ReconcileRun) -> StatusReport[Any] | None:
    """Return what the resource reports; what cannot be brought to its desired state is blocked, whatever it reports."""
    if applied.revert_message:
        return StatusReport(GuardStatus.BLOCKED, f"{entry.identity}: {applied.revert_message}")
    return await _status(entry, applied.operation, applied.live, current)


async def _status(
    entry: Registration, operation: ApplyOperation, live: Manifest, current: ReconcileRun
) -> StatusReport[Any] | None:
    asked = "determine converging status of"
    if entry.alive is not None:
        return await current.ask(asked, entry, entry.alive.alive_status, operation, live)
    if entry.operational is not None:
        return await current.ask(asked, entry, entry.operational.operational_status, operation, live)
    if entry.completable is not None:
        return await current.ask(asked, entry, entry.completable.completion_status, operation, live)
    return None


async def _graded(
    observation: ResourceObservation, entry: Registration, live: Manifest | None, current: ReconcileRun
) -> ResourceObservation:
    """Let the resource be judged, if it can be."""
    if observation.is_blocked or entry.graceful is None or live is None:
        return observation
    try:
        grade = await current.ask("evaluate grace status for", entry, entry.graceful.grace_status, live)
    except ReconcileError as error:
        current.reporter.ungraded(entry, error.problem)
        raise
    if grade.status is GraceStatus.HEALTHY and not observation.is_ready:
        current.reporter.inconsistent(entry, observation.report.status, grade.status)
    return replace(observation, grade=grade)


def _blocked(entry: Registration, reason: str) -> ResourceOutcome:
    return ResourceOutcome(
        resource=entry.identity, action=Action.BLOCKED, report=StatusReport(GuardStatus.BLOCKED, reason)
    )
