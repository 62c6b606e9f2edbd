"""Resource loop: what one reconcile of a component does with each resource, in the order of the documentation.

Independent resources are reconciled concurrently with the others, which are reconciled in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ocf.component.apply.applier import Applier
from ocf.component.apply.apply_result import ApplyResult
from ocf.component.apply.recreation import waiting_text
from ocf.component.model.ownership import is_ending
from ocf.component.model.registration import Registration
from ocf.component.model.resource_options import Lifecycle, Participation
from ocf.component.reconcile.external_apply import ExternalApplier
from ocf.component.reconcile.once import OnceRun
from ocf.component.reconcile.pod_causes import with_cause
from ocf.component.reconcile.rollout import Reached, RolloutRun
from ocf.component.reconcile.run import ReconcileRun, failing
from ocf.component.reconcile.served import left_out_by
from ocf.component.status.conditions import ResourceObservation
from ocf.component.status.reasons import READY, Reason
from ocf.component.status.results import Action, ResourceOutcome, outcome_attributes, resource_span
from ocf.concepts import ApplyOperation, GraceStatus, GuardStatus, StatusReport
from ocf.concepts.recorder import Why
from ocf.concepts.tracing import annotate_span, spanning
from ocf.errors import ReconcileError, failure_text

if TYPE_CHECKING:
    from ocf.component.model.rollout import Rollout
    from ocf.concepts.external import ExternalResource
    from ocf.objects import Manifest

__all__ = [
    "MakeWay",
    "converge",
    "raise_all",
    "reconcile_one",
]

MakeWay: TypeAlias = Callable[[Registration, Applier, "Manifest | None"], Awaitable[str]]
"""Deletes what goes before an object is applied, given its live object; returns what is waited for, or nothing."""


class Converged(NamedTuple):
    """What a reconcile of resources has led to.

    Attributes:
        observations: What counts for the condition.
        has_begun: Whether the update of another member of a rollout has begun, and the grace period with it.
    """

    outcomes: list[ResourceOutcome]
    observations: list[ResourceObservation]
    has_begun: bool = False


async def converge(
    entries: Sequence[Registration],
    run: ReconcileRun,
    make_way: MakeWay,
    *,
    grading: bool = False,
    explaining: bool = False,
    updating: bool = False,
) -> Converged:
    """Reconcile the resources in order, up to the first that is blocked, and independent ones concurrently.

    If the grace period is over, resources that are not ready are graded; if requested, their pods explain why. An
    error names the resources that failed: the first of those in order, after which no later one is reached, and every
    independent one.

    Args:
        updating: Whether the component was updating before, for its rollouts.
    """
    reached, rollouts = await _reach_all(entries, run, make_way)
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
        partly = [entry.external for one, entry, _ in counting if entry.external is not None and one.is_ready]
        observations = [_graded_target(one[0], one[1], partly) or await _graded(*one, run) for one in counting]
    if explaining:
        graded = zip(observations, counting, strict=True)
        observations = [await _explained(one, entry, live, run) for one, (_, entry, live) in graded]
    for one in rollouts:
        observations = one.observations(observations, updating=updating)
    return Converged(outcomes, observations, any(one.has_begun for one in rollouts))


async def _reach_all(
    entries: Sequence[Registration], run: ReconcileRun, make_way: MakeWay
) -> tuple[dict[str, Reached], list[RolloutRun]]:
    """Reconcile the resources; return outcomes and live objects of those that were reached, and the rollouts."""
    reached: dict[str, Reached] = {}
    rollouts: list[RolloutRun] = []

    async def reach_one(entry: Registration) -> Reached:
        return await _reached(entry, run, make_way)

    async def reach_into(entry: Registration) -> None:
        reached[entry.identity] = await reach_one(entry)

    async def reach(*ordered: Registration) -> None:
        for rollout, members in _steps(ordered):
            if rollout is not None:
                rollouts.append(RolloutRun(members, rollout, run, reach_one))
                await rollouts[-1].start()
                reached.update(rollouts[-1].reached)
                is_blocked = rollouts[-1].is_blocked
            else:
                # Only an external resource has several: one target never holds up another one.
                await (_gather(run.component, [*map(reach_into, members)]) if members[1:] else reach_into(members[0]))
                is_blocked = all(reached[one.identity][0].action is Action.BLOCKED for one in members)
            if is_blocked:
                break

    independent = [entry for entry in entries if entry.options.independent]
    in_order = reach(*(entry for entry in entries if not entry.options.independent))
    if independent:
        await _gather(run.component, [in_order, *map(reach, independent)])
    else:
        await in_order
    return reached, rollouts


def _steps(ordered: Sequence[Registration]) -> Iterator[tuple[Rollout | None, list[Registration]]]:
    """Yield single resources, and together the members of each rollout, and the targets of an external resource.

    The members of a rollout are where the last of them is.
    """
    groups: dict[int, list[Registration]] = {}
    for entry in ordered:
        if entry.options.rollout is not None:
            groups.setdefault(id(entry.options.rollout), []).append(entry)
    for entry in ordered:
        rollout = entry.options.rollout
        if entry.external is not None:
            targets = [one for one in ordered if one.external is not None and one.external.is_same(entry.external)]
            if targets[0] is entry:
                yield None, targets
        elif rollout is None:
            yield None, [entry]
        elif groups[id(rollout)][-1] is entry:
            yield rollout, groups[id(rollout)]


async def _reached(
    entry: Registration, run: ReconcileRun, make_way: MakeWay
) -> tuple[ResourceOutcome, Manifest | None]:
    try:
        async with run.context.slots:
            return await reconcile_one(entry, run, make_way)
    except ReconcileError as error:
        skipped = left_out_by(error, entry)
        if skipped is None:
            raise
        return skipped, None


async def reconcile_one(
    entry: Registration, run: ReconcileRun, make_way: MakeWay
) -> tuple[ResourceOutcome, Manifest | None]:
    """Reconcile one managed or read-only resource; an error names it and the step that failed.

    Args:
        make_way: Called before a resource is applied.

    Returns:
        The outcome; and the live object, None if the resource is blocked or its object does not exist.
    """
    outcomes = run.context.outcomes.setdefault(run.component, {})
    with spanning(resource_span, entry.key):
        try:
            outcome, live = await _reconcile(entry, run, make_way)
        except Exception as error:
            # The error may end the reconcile of the component before its result; then only this shows the others.
            outcomes[entry.identity] = ResourceOutcome(
                resource=entry.identity, action=Action.FAILED, detail=failure_text(error)
            )
            raise
        outcomes[entry.identity] = outcome
        annotate_span(outcome_attributes, outcome)
        return outcome, live


async def _reconcile(
    entry: Registration, run: ReconcileRun, make_way: MakeWay
) -> tuple[ResourceOutcome, Manifest | None]:
    # 1. Its guard.
    if entry.guardable is not None:
        guard = await run.ask("evaluate guard for", entry, entry.guardable.guard_status)
        if guard.status is GuardStatus.BLOCKED:
            return _blocked(entry, guard.reason), None
    if entry.external is not None:
        # 2. What is outside of the cluster, with its record, its status and its data.
        external = ExternalApplier(entry, run)
        if entry.options.lifecycle is not Lifecycle.READ_ONLY:
            return await external.apply(), None
        read = await external.read_only()
        return read or _absent(entry, run), None
    applier = run.applier(entry)
    if entry.options.lifecycle is Lifecycle.READ_ONLY:
        # 2. Its live object, which only others write, 3. its status, 4. its data.
        found = await applier.get()
        if found is None:
            return _absent(entry, run), None
        report = await run.status(entry, ApplyOperation.NONE, found)
        await run.extract(entry, found)
        return ResourceOutcome(resource=entry.identity, action=Action.UNCHANGED, report=report), found
    with run.reporter.failures_attempted(entry):
        # 2. Its live object, which is applied unless this would change nothing, 3. its status.
        outcome, live = await _applied(entry, applier, run, make_way)
    # 4. Its data.
    if live is not None and entry.cells_filled:
        await run.extract(entry, live)
    return outcome, live


async def _applied(
    entry: Registration, applier: Applier, run: ReconcileRun, make_way: MakeWay
) -> tuple[ResourceOutcome, Manifest | None]:
    """Apply a resource and judge the answer; without an object, it is blocked or its run is over."""
    live = await applier.get()
    obstacle = await _obstacle(entry, applier, live, run, make_way)
    if obstacle:
        return _blocked(entry, obstacle), None
    once = OnceRun.of(entry, run)
    past = await once.before_apply(live, applier) if once is not None else None
    if past is not None:
        return past, None if past.action is Action.BLOCKED else live
    applied = await applier.apply(live)
    if applied.why is Why.NOT_CREATED:
        return _absent(entry, run), None
    if applied.waiting:
        return _waiting(entry, applied, run), None
    if applied.writes:
        run.reporter.applied(entry, applied)
    report: StatusReport[Any] | None
    # One whose writes are being reverted is blocked, whatever its status.
    if applied.revert_message:
        reverted = f"{entry.identity}: {applied.revert_message}"
        report = StatusReport(GuardStatus.BLOCKED, reverted)
    else:
        report = await run.status(entry, applied.operation, applied.live)
        if report is not None and is_ending(applied.live) and Reason(report.status) not in READY:
            awaited = f"{report.reason or report.status}; {waiting_text(applied.live)}"
            report = replace(report, reason=awaited)
    outcome = run.finished(entry, applied, report)
    return outcome if once is None else once.after_apply(applied.live, outcome), applied.live


async def _obstacle(
    entry: Registration, applier: Applier, live: Manifest | None, run: ReconcileRun, make_way: MakeWay
) -> str:
    """Return why a resource is not applied now; empty if it is."""
    controller = run.blocking_controller(entry, live)
    return f"controlled by {controller}" if controller else await make_way(entry, applier, live)


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


def _absent(entry: Registration, run: ReconcileRun) -> ResourceOutcome:
    """Return the outcome of a resource whose object only others make, and which does not exist."""
    if entry.options.ignore_if_absent:
        return ResourceOutcome(resource=entry.identity, action=Action.ABSENT)
    if entry.options.block_on_absence or entry.options.updates_only:
        return _blocked(entry, f"waiting for {entry.identity}")
    problem = f"failed to read resource {entry.identity}: it does not exist"
    raise ReconcileError(run.component, problem, resource=entry.identity)


def _waiting(entry: Registration, applied: ApplyResult, run: ReconcileRun) -> ResourceOutcome:
    """Return the outcome of a resource whose object cannot be created yet, or must not be adopted."""
    run.reporter.attempted(entry, applied.operation, applied.why)
    if applied.why is Why.NOT_ADOPTED:
        run.reporter.applied(entry, applied)
    if applied.deleted_because:
        run.reporter.deleted(entry.key, applied.deleted_because)
    blocked = _blocked(entry, applied.waiting)
    return replace(
        blocked,
        writes=applied.writes,
        reasons=applied.reasons,
        detail=applied.deleted_because,
        why=applied.why,
        retry_after=applied.retry_after,
    )


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


def _graded_target(
    observation: ResourceObservation, entry: Registration, ready: Sequence[ExternalResource[Any, Any]]
) -> ResourceObservation | None:
    """Grade an external resource: one that is ready at another target is degraded, and not down; None for an object."""
    resource = entry.external
    if resource is None:
        return None
    if observation.is_ready or observation.is_blocked:
        return observation
    elsewhere = any(other.is_same(resource) for other in ready)
    status = GraceStatus.DEGRADED if elsewhere else GraceStatus.DOWN
    return replace(observation, grade=StatusReport(status, observation.report.reason))


async def _explained(
    observation: ResourceObservation, entry: Registration, live: Manifest | None, run: ReconcileRun
) -> ResourceObservation:
    """Add why the pods of a resource that is not ready are not."""
    with failing(run.component, "read the pods of", entry):
        return await with_cause(observation, entry, live, run.context)


def _blocked(entry: Registration, reason: str) -> ResourceOutcome:
    return ResourceOutcome(
        resource=entry.identity, action=Action.BLOCKED, report=StatusReport(GuardStatus.BLOCKED, reason)
    )


def raise_all(component: str, errors: Sequence[ReconcileError]) -> None:
    """Raise collected errors: a single one unchanged, several as one, and nothing without any."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        problem = "; ".join(error.problem for error in errors)
        raise ReconcileError(component, problem) from ExceptionGroup(f'component "{component}"', errors)
