"""Many resources, one condition: how a component is reconciled, suspended and resumed.

A component is a value: it holds what was registered and nothing it learns, so it can be built anew for every pass or
kept. A pass works through the resources in order of registration and stops at the first one that is blocked; its only
memory is the owner's status and the cluster itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ocf.component.conditions import (
    SUSPENSION_REASONS,
    Condition,
    Observation,
    Reason,
    converging,
    failed,
    grace_remaining,
    suspending,
)
from ocf.component.context import ReconcileContext
from ocf.component.entries import Entry, fields_left, scale_targets, scalers_first
from ocf.component.managing import Applied, ManagedObject
from ocf.component.results import Action, Outcome, Result
from ocf.concepts import (
    GraceStatus,
    GuardStatus,
    Operation,
    ScaleTarget,
    StatusReport,
    Suspendable,
    SuspensionStatus,
    data_scope,
)
from ocf.errors import OcfError, ReconcileError
from ocf.objects import Manifest, get_field

__all__ = ["Component"]

# What a component waits for in these states may end without an event of any object that it watches.
_WAITING = frozenset({Reason.BLOCKED, Reason.SUSPENDING, Reason.PENDING_SUSPENSION})
_ACTIONS = {
    Operation.CREATED: Action.CREATED,
    Operation.UPDATED: Action.UPDATED,
    Operation.NONE: Action.UNCHANGED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A feature of a product: resources that are reconciled together and reported as one condition.

    Built by `Builder`.

    Args:
        name: What it is called; a part of the field manager's name, so renaming it hands every field to a new manager.
        condition_type: Type of its condition on the owner.
        entries: Its resources, in order of registration.
        suspended: Whether it is to be asleep.
        grace_period: How long it may take to become ready before it is called degraded or down; zero means for ever.
        poll_interval: When to look again while it is blocked or on its way to being suspended.
    """

    name: str
    condition_type: str
    entries: tuple[Entry, ...]
    suspended: bool
    grace_period: timedelta
    poll_interval: timedelta

    async def reconcile(self, context: ReconcileContext) -> Result:
        """Bring the component to its desired state, and stage its condition in the context.

        Args:
            context: The pass, from `reconciling`.

        Returns:
            The condition, what was done to each resource, and when to look again.

        Raises:
            ReconcileError: Naming the resource and the step that failed; the condition is then `Error` and says the
                same.
        """
        previous = context.condition(self.condition_type)
        with data_scope():
            try:
                targets = self._scale_targets()
                if self.suspended:
                    condition, outcomes = await self._suspend(context, previous, targets)
                else:
                    condition, outcomes = await self._converge(context, previous, targets)
            except Exception as error:
                # What nobody foresaw is named by its type alone: its text may hold anything.
                problem = error.problem if isinstance(error, ReconcileError) else f"unexpected {type(error).__name__}"
                generation = context.owned_by.generation
                context.set_condition(failed(problem, previous=previous, generation=generation, now=context.now))
                raise
        context.set_condition(condition)
        requeue = self._requeue(condition, context.now)
        return Result(condition=condition, outcomes=tuple(outcomes), requeue_after=requeue)

    def _requeue(self, condition: Condition, now: datetime) -> timedelta | None:
        poll = self.poll_interval if condition.reason in _WAITING else None
        grace = grace_remaining(condition, self.grace_period, now)
        return min((delay for delay in (poll, grace) if delay is not None), default=None)

    def _scale_targets(self) -> dict[str, ScaleTarget]:
        try:
            return scale_targets(self.entries)
        except OcfError as error:
            raise ReconcileError(self.name, f"failed to find scale targets: {error}") from error

    async def _converge(
        self, context: ReconcileContext, previous: Condition, targets: dict[str, ScaleTarget]
    ) -> tuple[Condition, list[Outcome]]:
        resuming = previous.reason in SUSPENSION_REASONS
        outcomes: list[Outcome] = []
        observations: list[Observation] = []
        for entry in scalers_first(self.entries, targets) if resuming else self.entries:
            outcome, live = await self._manage(entry, context, targets)
            outcomes.append(outcome)
            if outcome.report is not None:
                observations.append(self._observed(entry, outcome.report, live))
            if outcome.action is Action.BLOCKED:
                break
        condition = converging(
            observations,
            previous=previous,
            generation=context.owned_by.generation,
            now=context.now,
            grace_period=self.grace_period,
        )
        return condition, outcomes

    async def _manage(
        self, entry: Entry, context: ReconcileContext, targets: dict[str, ScaleTarget]
    ) -> tuple[Outcome, Manifest | None]:
        guard = self._guard(entry)
        if guard.status is GuardStatus.BLOCKED:
            return Outcome(resource=entry.identity, action=Action.BLOCKED, report=guard), None
        managed = ManagedObject(entry.resource, self.name, context, fields_left(entry, targets))
        applied = await managed.apply(await managed.get())
        report = self._status(entry, applied)
        self._extract(entry, applied.live)
        return _outcome(entry, applied, report), applied.live

    def _observed(self, entry: Entry, report: StatusReport[Any], live: Manifest | None) -> Observation:
        graceful = entry.graceful
        if graceful is None or live is None:
            return Observation(entry.identity, report)

        def grade() -> StatusReport[GraceStatus]:
            with self._failing("evaluate grace status for", entry):
                return graceful.grace_status(live)

        return Observation(entry.identity, report, grade)

    def _guard(self, entry: Entry) -> StatusReport[GuardStatus]:
        if entry.guardable is None:
            return StatusReport(GuardStatus.UNBLOCKED)
        with self._failing("evaluate guard for", entry):
            return entry.guardable.guard_status()

    def _status(self, entry: Entry, applied: Applied) -> StatusReport[Any] | None:
        with self._failing("determine converging status of", entry):
            if entry.alive is not None:
                return entry.alive.alive_status(applied.operation, applied.live)
            if entry.operational is not None:
                return entry.operational.operational_status(applied.operation, applied.live)
            if entry.completable is not None:
                return entry.completable.completion_status(applied.operation, applied.live)
        return None

    def _extract(self, entry: Entry, live: Manifest) -> None:
        if entry.producer is not None:
            with self._failing("extract data from", entry):
                entry.producer.extract_data(live)

    async def _suspend(
        self, context: ReconcileContext, previous: Condition, targets: dict[str, ScaleTarget]
    ) -> tuple[Condition, list[Outcome]]:
        outcomes: list[Outcome] = []
        errors: list[ReconcileError] = []
        for entry in scalers_first(self.entries, targets):
            if entry.suspendable is not None:
                managed = ManagedObject(entry.resource, self.name, context, fields_left(entry, targets))
                try:
                    outcomes.append(await self._put_to_sleep(entry, entry.suspendable, managed))
                except ReconcileError as error:
                    errors.append(error)
        if errors:
            raise _joined(self.name, errors) from errors[0]
        reports = [outcome.report for outcome in outcomes if outcome.report is not None]
        generation = context.owned_by.generation
        return suspending(reports, previous=previous, generation=generation, now=context.now), outcomes

    async def _put_to_sleep(self, entry: Entry, suspendable: Suspendable, managed: ManagedObject) -> Outcome:
        """Bring one resource into its suspended form, and delete it where that is what suspending means."""
        with self._failing("suspend", entry):
            deletes = suspendable.delete_on_suspend
        live = await managed.get()
        if deletes and live is None:
            report = StatusReport(SuspensionStatus.SUSPENDED, f"Resource {entry.identity} already deleted.")
            return Outcome(resource=entry.identity, action=Action.ABSENT, report=report)
        if deletes and live is not None and _is_going(live):
            return Outcome(resource=entry.identity, action=Action.UNCHANGED, report=_waiting_for_end(entry))
        applied = await managed.apply(live, suspended=True)
        with self._failing("determine suspension status of", entry):
            report = suspendable.suspension_status(applied.live)
        self._extract(entry, applied.live)
        if not deletes or report.status is not SuspensionStatus.SUSPENDED:
            return _outcome(entry, applied, report)
        await managed.delete(applied.live)
        if get_field(applied.live, ("metadata", "finalizers")):
            report = _waiting_for_end(entry)
        return Outcome(
            resource=entry.identity,
            action=Action.DELETED,
            report=report,
            writes=applied.writes + 1,
            reasons=(*applied.reasons, "suspended"),
        )

    @contextmanager
    def _failing(self, what: str, entry: Entry) -> Iterator[None]:
        """Name the resource and the step in whatever is raised."""
        try:
            yield
        except OcfError as error:
            detail = str(error).removeprefix(f"{entry.identity}: ")
            problem = f"failed to {what} resource {entry.identity}: {detail}"
            raise ReconcileError(self.name, problem, resource=entry.identity) from error


def _outcome(entry: Entry, applied: Applied, report: StatusReport[Any] | None) -> Outcome:
    return Outcome(
        resource=entry.identity,
        action=_ACTIONS[applied.operation],
        report=report,
        writes=applied.writes,
        reasons=applied.reasons,
    )


def _is_going(live: Manifest) -> bool:
    return get_field(live, ("metadata", "deletionTimestamp")) is not None


def _waiting_for_end(entry: Entry) -> StatusReport[SuspensionStatus]:
    return StatusReport(SuspensionStatus.SUSPENDING, f"Waiting for resource {entry.identity} to be deleted.")


def _joined(component: str, errors: Sequence[ReconcileError]) -> ReconcileError:
    resource = errors[0].resource if len(errors) == 1 else ""
    return ReconcileError(component, "; ".join(error.problem for error in errors), resource=resource)
