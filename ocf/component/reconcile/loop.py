"""Resource loop: what one reconcile of a component does with each resource, in the order of the documentation.

Independent resources are reconciled concurrently with the others, which are reconciled in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from ocf.component.apply.applier import Applier, ApplyResult
from ocf.component.author_code import call_with_timeout
from ocf.component.model.registration import Registration, ScaleTargets
from ocf.component.model.resource_options import Lifecycle, Participation
from ocf.component.reconcile.reporter import RECREATED, Reporter
from ocf.component.status.conditions import ResourceObservation
from ocf.component.status.results import Action, ResourceOutcome
from ocf.concepts import ApplyOperation, GraceStatus, GuardStatus, StatusReport
from ocf.concepts.data import mark_derived
from ocf.concepts.tracing import SpanAttributes, SpanStart, annotate_span, object_attributes, spanning
from ocf.errors import OcfError, ReconcileError

if TYPE_CHECKING:
    from ocf.component.context import ReconcileContext
    from ocf.objects import Manifest, ObjectKey

__all__ = [
    "ReconcileRun",
    "blocking_controller",
    "converge",
    "failing",
    "outcome_attributes",
    "raise_all",
    "reconcile_one",
    "resource_span",
]

P = ParamSpec("P")
T = TypeVar("T")

_ACTIONS: Final = {
    ApplyOperation.CREATED: Action.CREATED,
    ApplyOperation.UPDATED: Action.UPDATED,
    ApplyOperation.NONE: Action.UNCHANGED,
}


async def converge(
    entries: Sequence[Registration], run: ReconcileRun, *, grading: bool = False
) -> tuple[list[ResourceOutcome], list[ResourceObservation]]:
    """Reconcile the resources in order, up to the first that is blocked, and independent ones concurrently.

    If the grace period is over, resources that are not ready are graded. An error names the resources that failed: the
    first of those in order, after which no later one is reached, and every independent one.

    Returns:
        The outcomes, and the observations that count for the condition.
    """
    reached: dict[str, tuple[ResourceOutcome, Manifest | None]] = {}

    async def reach(*ordered: Registration) -> None:
        for entry in ordered:
            reached[entry.identity] = outcome, _ = await reconcile_one(entry, run)
            if outcome.action is Action.BLOCKED:
                break

    independent = [entry for entry in entries if entry.options.independent]
    in_order = reach(*(entry for entry in entries if not entry.options.independent))
    if independent:
        await _gather(run.component, [in_order, *map(reach, independent)])
    else:
        await in_order
    outcomes: list[ResourceOutcome] = []
    counting: list[tuple[ResourceObservation, Registration, Manifest | None]] = []
    for entry in entries:
        if entry.identity in reached:
            outcome, live = reached[entry.identity]
            outcomes.append(outcome)
            if outcome.report is not None and _counts(entry, outcome.report):
                counting.append((ResourceObservation(entry.identity, outcome.report), entry, live))
    observations = [observation for observation, _, _ in counting]
    if grading and not all(observation.is_ready for observation in observations):
        observations = [await _graded(*one, run) for one in counting]
    return outcomes, observations


async def reconcile_one(entry: Registration, run: ReconcileRun) -> tuple[ResourceOutcome, Manifest | None]:
    """Reconcile one managed or read-only resource; an error names it and the step that failed.

    Returns:
        The outcome; and the live object, None if the resource is blocked or its object does not exist.
    """
    with spanning(resource_span, entry.key):
        outcome, live = await _reconcile(entry, run)
        annotate_span(outcome_attributes, outcome)
        return outcome, live


async def _reconcile(entry: Registration, run: ReconcileRun) -> tuple[ResourceOutcome, Manifest | None]:
    # 1. Its guard.
    if entry.guardable is not None:
        guard = await run.ask("evaluate guard for", entry, entry.guardable.guard_status)
        if guard.status is GuardStatus.BLOCKED:
            return _blocked(entry, guard.reason), None
    applier = run.applier(entry)
    if entry.options.lifecycle is Lifecycle.READ_ONLY:
        # 2. Its live object, which only others write, 3. its status, 4. its data.
        found = await applier.get()
        if found is None:
            return _absent(entry, run), None
        report = await _status(entry, ApplyOperation.NONE, found, run)
        await run.extract(entry, found)
        return ResourceOutcome(resource=entry.identity, action=Action.UNCHANGED, report=report), found
    with run.reporter.failures_attempted(entry):
        # 2. Its live object, which is applied unless this would change nothing.
        live = await applier.get()
        controller = blocking_controller(entry, live, run)
        if controller:
            return _blocked(entry, f"controlled by {controller}"), None
        applied = await applier.apply(live)
        if applied.waiting:
            return _waiting(entry, applied, run), None
        if applied.writes:
            run.reporter.applied(entry, applied)
        # 3. Its status, from the answer. One whose writes are being reverted is blocked, whatever its status.
        if applied.revert_message:
            reverted = f"{entry.identity}: {applied.revert_message}"
            report = StatusReport(GuardStatus.BLOCKED, reverted)
        else:
            report = await _status(entry, applied.operation, applied.live, run)
    outcome = run.finished(entry, applied, report)
    # 4. Its data.
    if entry.cells_filled:
        await run.extract(entry, applied.live)
    return outcome, applied.live


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


def blocking_controller(entry: Registration, live: Manifest | None, run: ReconcileRun) -> str:
    """Return the other controller of an object that blocks its resource; empty if none does.

    The API server accepts one controller of an object, so an apply with our owner reference would be rejected. The
    reference of an earlier owner of the name is taken over.
    """
    owner, options = run.context.owned_by, entry.options
    if live is None:
        return ""
    if options.block_on_foreign_controller:
        return owner.foreign_controller(live)
    refers = owner.can_own(entry.key) and not options.unowned
    return owner.foreign_controller(live, owner.earlier_uids(live)) if refers else ""


def _absent(entry: Registration, run: ReconcileRun) -> ResourceOutcome:
    """Return the outcome of a read-only resource whose object does not exist."""
    if entry.options.ignore_if_absent:
        return ResourceOutcome(resource=entry.identity, action=Action.ABSENT)
    if entry.options.block_on_absence:
        return _blocked(entry, f"waiting for {entry.identity}")
    problem = f"failed to read resource {entry.identity}: it does not exist"
    raise ReconcileError(run.component, problem, resource=entry.identity)


def _waiting(entry: Registration, applied: ApplyResult, run: ReconcileRun) -> ResourceOutcome:
    """Return the outcome of a resource whose object cannot be created yet, or must not be adopted."""
    run.reporter.attempted(entry, applied.operation, applied.why)
    if applied.writes:
        run.reporter.deleted(entry.key, RECREATED)
    blocked = _blocked(entry, applied.waiting)
    return replace(
        blocked, writes=applied.writes, reasons=applied.reasons, why=applied.why, retry_after=applied.retry_after
    )


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


@dataclass(frozen=True, slots=True)
class ReconcileRun:
    """One reconcile of one component.

    Args:
        component: Name of the component.
        timeout: Timeout of one handler call; None for no limit.
        former_managers: Field managers whose fields the component takes over once, by name or pattern.
    """

    component: str
    context: ReconcileContext
    scaling: ScaleTargets
    timeout: timedelta | None
    reporter: Reporter
    former_managers: tuple[str, ...] = ()

    def applier(self, entry: Registration) -> Applier:
        """Return what reads and applies the object of a resource."""
        return Applier(
            entry,
            self.component,
            self.context,
            self.scaling.ignored.get(entry.identity, entry.options.ignore_fields),
            former_managers=(*self.former_managers, *self.context.former_managers),
            rendered=self.scaling.rendered.get(entry.identity),
            timeout=self.timeout,
        )

    async def ask(
        self, what: str, entry: Registration, handler: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a handler of a resource; an error names the resource and the step, as it follows "failed to"."""
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
        """Fill the data cells that a resource produces from its live object."""
        if entry.producer is not None:
            await self.ask("extract data from", entry, entry.producer.extract_data, live)
            mark_derived(entry.cells_filled, entry.cells_read)

    def finished(self, entry: Registration, applied: ApplyResult, report: StatusReport[Any] | None) -> ResourceOutcome:
        """Record an attempt that succeeded, and return its outcome."""
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


@contextmanager
def failing(component: str, what: str, entry: Registration) -> Iterator[None]:
    """Name the component, the resource and the step, as it follows "failed to", in an error of the block."""
    try:
        yield
    except OcfError as error:
        raise _named(component, what, entry, error) from error


def _named(component: str, what: str, entry: Registration, error: OcfError) -> ReconcileError:
    detail = str(error).removeprefix(f"{entry.identity}: ")
    problem = f"failed to {what} resource {entry.identity}: {detail}"
    return ReconcileError(component, problem, resource=entry.identity)


def raise_all(component: str, errors: Sequence[ReconcileError]) -> None:
    """Raise collected errors: a single one unchanged, several as one, and nothing without any."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        problem = "; ".join(error.problem for error in errors)
        raise ReconcileError(component, problem) from ExceptionGroup(f'component "{component}"', errors)


def resource_span(key: ObjectKey) -> SpanStart:
    """Return the span of a resource or an object: all that a reconcile does with it."""
    return SpanStart(name=f"resource {key.kind}", attributes=object_attributes("ocf.resource", key))


def outcome_attributes(outcome: ResourceOutcome) -> SpanAttributes:
    """Return what was done to an object, without the value of any field."""
    report: Any = outcome.report
    return {
        "ocf.resource.action": str(outcome.action),
        "ocf.resource.why": None if outcome.why is None else str(outcome.why),
        "ocf.resource.status": None if report is None else str(report.status),
        "ocf.resource.detail": outcome.detail or None,
        "ocf.writes": outcome.writes,
    }
