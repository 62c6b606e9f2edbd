"""Component: resources that are reconciled together and reported as one condition.

A component keeps no state between reconciles, so it can be kept or built anew for each of them; all state is in the
owner's status and in the cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from ocf.cluster import Propagation
from ocf.component import preview
from ocf.component.author_code import call_with_timeout
from ocf.component.context import ReconcileContext
from ocf.component.model.data_flow import DataFlow, data_flows
from ocf.component.model.ownership import Owner
from ocf.component.model.registration import (
    Registration,
    ScaleTargets,
    find_scale_targets,
    scalers_first,
    shared_problem,
)
from ocf.component.model.resource_options import Lifecycle
from ocf.component.reconcile.loop import ReconcileRun, converge, failing
from ocf.component.reconcile.prerequisites import DependsOn, Prerequisite, PrerequisiteStatus, check_prerequisite
from ocf.component.reconcile.prune import DeletionReason, Pruner
from ocf.component.reconcile.reporter import Reporter
from ocf.component.reconcile.suspend import suspend
from ocf.component.status.conditions import (
    Condition,
    ConditionContext,
    ResourceObservation,
    converging_condition,
    grace_is_over,
    grace_remaining,
    suspending_condition,
)
from ocf.component.status.reasons import SUSPENSION_REASONS, Reason
from ocf.component.status.results import Action, ResourceOutcome, Result
from ocf.concepts import Resource, data_scope
from ocf.concepts.provenance import Provenance
from ocf.concepts.tracing import SpanAttributes, SpanStart, annotate_span, spanning
from ocf.errors import OcfError, ReconcileError, failure_text
from ocf.feature import Gate
from ocf.objects import Manifest, ObjectKey

__all__ = ["Component"]

# In these states the component polls: what it waits for may come without an event of a watched object.
_WAITING: Final = frozenset({Reason.BLOCKED, Reason.PREREQUISITE_NOT_MET, Reason.SUSPENDING, Reason.PENDING_SUSPENSION})
# While one of these is stored, the component may not have passed its prerequisites.
_BEFORE_PREREQUISITES: Final = frozenset(
    {Reason.UNKNOWN, Reason.PREREQUISITE_NOT_MET, Reason.DISABLED, Reason.FEATURE_GATE_ERROR, Reason.ERROR}
)
_DISABLED: Final = DeletionReason("disabled", "due to disabled feature gate")
_FLAGGED: Final = DeletionReason("not wanted", "due to resource deletion flag")
_NO_TARGETS: Final = ScaleTargets({}, {}, {})
_GATED: Final = DeletionReason("gate closed", "due to closed resource gate")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Component:
    """Resources that are reconciled together and reported as one condition of their owner.

    Components are made by `Builder`. A component keeps no state between reconciles.

    Args:
        name: Name of the component; part of its field manager, so renaming it moves every field to a new manager.
        condition_type: Type of its condition on the owner.
        entries: Its resources, in order of registration.
        gate: Gate of the whole component; None for always on.
        prerequisites: What must be met before it does anything.
        suspended: Whether it is suspended.
        published: Whether its condition is written to the owner, or only returned and aggregated.
        prunes: Whether objects that it applied earlier and does not register now are deleted.
        former_managers: Field managers whose fields it takes over once, by name or pattern.
        grace_period: Time until a component that is not ready becomes degraded or down; zero for no limit.
        poll_interval: Time until the next reconcile while it waits for something that may come without an event.
        handler_timeout: Timeout of one handler call; None for no limit.
    """

    name: str
    condition_type: str
    entries: tuple[Registration, ...] = ()
    gate: Gate | None = None
    prerequisites: tuple[Prerequisite, ...] = ()
    suspended: bool = False
    published: bool = True
    prunes: bool = False
    former_managers: tuple[str, ...] = ()
    grace_period: timedelta = timedelta(0)
    poll_interval: timedelta = timedelta(seconds=10)
    handler_timeout: timedelta | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    async def reconcile(self, context: ReconcileContext) -> Result:
        """Reconcile the component, and stage its condition in the context.

        The first of these that applies decides:

        1. The gate. While it is closed, the component's objects are deleted.
        2. The prerequisites. While one is not met, no resource changes, and a suspension waits.
        3. Suspension. Every resource that can be suspended is.
        4. The resources, one after another.

        Nothing is done while the owner is being deleted, because the garbage collector deletes the objects that refer
        to it. `finalize` deletes the others. Nothing is done while the owner is paused either. If the owner is found to
        be gone or paused, the reconcile ends without an error.

        Args:
            context: The reconcile of the owner, from `reconciling`.

        Returns:
            The condition, the outcome of each resource, and the time until the next reconcile.

        Raises:
            ReconcileError: Names the resource and the step that failed. The condition has the same message, and the
                reason `Error` or a more precise one.
        """
        before = context.condition_context(self.condition_type)
        nothing = Result(condition=before.previous, outcomes=())
        if context.is_ending or context.is_over:
            return nothing
        self.announce(context)
        try:
            with data_scope(), spanning(_span, self.name):
                # 1. The gate.
                if not self._is_enabled(context):
                    outcomes = await self._disable(context)
                    return self._staged(
                        context, before.next(Reason.DISABLED, "Component is disabled.", ready=True), outcomes
                    )
                self._reject_shared_resources(context)
                # 2. The prerequisites.
                unmet = await self._unmet(context, before.previous)
                if unmet is not None:
                    return self._staged(context, before.next(Reason.PREREQUISITE_NOT_MET, unmet, ready=False), [])
                run = self._new_run(context, await self._scale_targets())
                entries = self._with(Lifecycle.MANAGED, Lifecycle.READ_ONLY)
                if self.suspended or before.previous.reason in SUSPENSION_REASONS:
                    entries = scalers_first(entries, run.scaling.targets)
                # 3. Suspension.
                if self.suspended:
                    # Any other state of the suspension, and any error, has another reason.
                    was_applied = before.previous.reason in {Reason.SUSPENDING, Reason.SUSPENDED}
                    outcomes = await suspend(entries, run, was_applied=was_applied)
                    reported = [ResourceObservation(one.resource, one.report) for one in outcomes if one.report]
                    condition = suspending_condition(reported, before)
                    return self._staged(context, condition, outcomes + await self._clean_up(run, prune=False))
                # 4. The resources.
                grading = grace_is_over(before.previous, self.grace_period, before.now)
                outcomes, observations = await converge(entries, run, grading=grading)
                condition = converging_condition(observations, before, grace_period=self.grace_period)
                blocked = any(outcome.action is Action.BLOCKED for outcome in outcomes)
                outcomes += await self._clean_up(run, prune=self.prunes and not blocked)
                return self._staged(context, condition, outcomes)
        except Exception as error:
            if context.is_over:
                return nothing
            self._stage_failure(context, before, error)
            raise

    def announce(self, context: ReconcileContext) -> None:
        """Record in a reconcile which objects the component manages; none while its gate is off."""
        context.claims.announce(self.name, [entry.unversioned for entry in self._managed(context)])

    def resource(self, identity: str) -> Resource | None:
        """Return a registered resource, whatever its lifecycle; None if the identity is not registered.

        Args:
            identity: Identity of the resource, `apps/v1/Deployment/shop/backend`.
        """
        return next((entry.resource for entry in self.entries if entry.identity == identity), None)

    def render(self) -> list[Manifest]:
        """Render the managed resources without a cluster, in order of registration.

        Guards are not evaluated and no data is extracted, so the caller seeds the data cells. The manifests have
        neither the owner reference nor ignored fields, and are not suspended.

        Raises:
            ConfigError: Naming the resource that cannot be rendered.
        """
        return preview.render(self.entries)

    def preview(self) -> list[Any]:
        """Render the managed resources as `render` does, each as the model that its own `preview` returns.

        Returns:
            Models of the client; a manifest for a resource of the user's own that has no `preview`.

        Raises:
            ConfigError: Naming the resource that cannot be rendered.
        """
        return preview.preview(self.entries)

    @property
    def registered_mutations(self) -> tuple[str, ...]:
        """Names of all mutations of the managed resources, each once, whether or not their gates are open."""
        return preview.registered_mutations(self.entries)

    def firing_set(self) -> tuple[str, ...]:
        """Return the names of the mutations of the managed resources whose gates are open, each once.

        Raises:
            ConfigError: If a gate fails; names the resource and the mutation.
        """
        return preview.firing_set(self.entries)

    def explain(self) -> tuple[Provenance, ...]:
        """Explain who set each field of what `render` returns: one explanation per managed resource, in the same order.

        Raises:
            ConfigError: Naming the resource that cannot be rendered.
        """
        return preview.explain(self.entries)

    @property
    def awaits(self) -> frozenset[str]:
        """Types of the conditions that its prerequisites wait for (`depends_on`)."""
        return frozenset(one.condition_type for one in self.prerequisites if isinstance(one, DependsOn))

    def owned_objects(self, owner: Owner) -> tuple[ObjectKey, ...]:
        """Return the objects that it manages and that refer to the owner."""
        made = self._with(Lifecycle.MANAGED)
        return tuple(entry.key for entry in made if owner.can_own(entry.key) and not entry.options.unowned)

    def objects_without_gc(self, context: ReconcileContext) -> tuple[ObjectKey, ...]:
        """Return the objects that the garbage collector does not delete with the owner."""
        return tuple(entry.key for entry in self._left_behind(context))

    def held_objects(self, context: ReconcileContext) -> tuple[ObjectKey, ...]:
        """Return the objects that are held until the owner is cleaned up; none while the gate is off."""
        managed = self._managed(context)
        return tuple(entry.key for entry in managed if entry.options.held_for_cleanup)

    async def delete_objects_without_gc(self, context: ReconcileContext) -> tuple[ObjectKey, ...]:
        """Delete every object that it applied for the owner and that the garbage collector does not delete.

        Returns:
            The objects that are being deleted, but still exist.

        Raises:
            ReconcileError: With every error, after every object was tried.
        """
        return await self._delete_applied(context, self._left_behind(context))

    async def delete_objects(self, context: ReconcileContext) -> tuple[ObjectKey, ...]:
        """Delete every object that it applied for the owner, with its dependents, such as the pods of a Deployment.

        Unowned objects are kept.

        Returns:
            The objects that still exist.

        Raises:
            ReconcileError: With every error, after every object was tried.
        """
        made = self._with(Lifecycle.MANAGED, Lifecycle.DELETED)
        owned = [entry for entry in made if not entry.options.unowned]
        return await self._delete_applied(context, owned, Propagation.FOREGROUND)

    @property
    def data_topology(self) -> tuple[DataFlow, ...]:
        """The resources that fill and read each data cell."""
        return data_flows(self.entries)

    def _managed(self, context: ReconcileContext) -> list[Registration]:
        try:
            return self._with(Lifecycle.MANAGED) if context.gates.is_open(self.gate) else []
        except OcfError:
            # The reconcile of the component reports the error, and leaves all objects as they are.
            return self._with(Lifecycle.MANAGED)

    def _with(self, *lifecycles: Lifecycle) -> list[Registration]:
        return [entry for entry in self.entries if entry.options.lifecycle in lifecycles]

    def _reject_shared_resources(self, context: ReconcileContext) -> None:
        for entry in self._with(Lifecycle.MANAGED):
            other = context.claims.other_than(self.name, entry.unversioned)
            if other:
                raise ReconcileError(self.name, shared_problem(entry, self.name, other), resource=entry.identity)

    def _new_run(self, context: ReconcileContext, scaling: ScaleTargets = _NO_TARGETS) -> ReconcileRun:
        reporter = Reporter(self.name, self.condition_type, context)
        return ReconcileRun(self.name, context, scaling, self.handler_timeout, reporter, self.former_managers)

    async def _scale_targets(self) -> ScaleTargets:
        naming = partial(failing, self.name, "find scale target of")
        timeout = self.handler_timeout
        if timeout is None:
            return find_scale_targets(self.entries, naming)
        return await call_with_timeout(timeout, find_scale_targets, self.entries, naming)

    def _is_enabled(self, context: ReconcileContext) -> bool:
        try:
            return context.gates.is_open(self.gate)
        except OcfError as error:
            raise _PreciseError(self.name, str(error), Reason.FEATURE_GATE_ERROR) from error

    async def _disable(self, context: ReconcileContext) -> list[ResourceOutcome]:
        """Delete or orphan the objects of the component; read-only resources are not touched."""
        work = Pruner(self._new_run(context))
        managed = self._with(Lifecycle.MANAGED, Lifecycle.DELETED)
        await work.delete(managed, lambda _entry: _DISABLED)
        return await self._orphan_and_prune(work, prune=self.prunes)

    async def _clean_up(self, run: ReconcileRun, *, prune: bool) -> list[ResourceOutcome]:
        deleted = self._with(Lifecycle.DELETED)
        if not (deleted or self._with(Lifecycle.ORPHANED) or prune):
            return []
        work = Pruner(run)
        await work.delete(deleted, lambda entry: _GATED if entry.options.gate_closed else _FLAGGED)
        return await self._orphan_and_prune(work, prune=prune)

    async def _orphan_and_prune(self, work: Pruner, *, prune: bool) -> list[ResourceOutcome]:
        await work.orphan(self._with(Lifecycle.ORPHANED))
        if prune:
            await work.prune(self.entries)
        return work.outcomes()

    async def _unmet(self, context: ReconcileContext, previous: Condition) -> str | None:
        """Return the reason of the first prerequisite that is not met; None if all are met or were met before."""
        if previous.reason not in _BEFORE_PREREQUISITES:
            return None
        for prerequisite in self.prerequisites:
            try:
                report = await check_prerequisite(prerequisite, context, self.handler_timeout)
            except OcfError as error:
                raise _PreciseError(self.name, str(error), Reason.PREREQUISITE_NOT_MET) from error
            if report.status is PrerequisiteStatus.NOT_MET:
                return report.reason
        return None

    async def _delete_applied(
        self,
        context: ReconcileContext,
        entries: Sequence[Registration],
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> tuple[ObjectKey, ...]:
        work = Pruner(self._new_run(context))
        remaining = await work.delete_applied(entries, propagation)
        work.outcomes()
        return remaining

    def _left_behind(self, context: ReconcileContext) -> Sequence[Registration]:
        if not context.owned_by.key.namespace:
            return []
        made = self._with(Lifecycle.MANAGED, Lifecycle.DELETED)
        return [entry for entry in made if not (entry.key.namespace or entry.options.unowned)]

    def _staged(self, context: ReconcileContext, condition: Condition, outcomes: Sequence[ResourceOutcome]) -> Result:
        """Stage the condition, and return the result of the reconcile."""
        result = Result(
            condition=condition,
            outcomes=tuple(outcomes),
            requeue_after=self._requeue(condition, outcomes, context.now),
        )
        annotate_span(_result_attributes, result)
        context.stage(condition, published=self.published)
        return result

    def _stage_failure(self, context: ReconcileContext, before: ConditionContext, error: Exception) -> None:
        reason = error.reason if isinstance(error, _PreciseError) else Reason.ERROR
        problem = failure_text(error)
        context.fail([self.condition_type] if self.published else [], problem, reason=reason)
        if not self.published:
            context.stage(before.failed(problem, reason=reason), published=False)

    def _requeue(self, condition: Condition, outcomes: Sequence[ResourceOutcome], now: datetime) -> timedelta | None:
        poll = self.poll_interval if condition.reason in _WAITING else None
        grace = grace_remaining(condition, self.grace_period, now)
        delays = [poll, grace, *(outcome.retry_after for outcome in outcomes)]
        return min((delay for delay in delays if delay is not None), default=None)


def _span(name: str) -> SpanStart:
    return SpanStart(name=f"component {name}", attributes={"ocf.component": name})


def _result_attributes(result: Result) -> SpanAttributes:
    """Return what a reconcile of a component led to, without the value of any field."""
    condition = result.condition
    return {
        "ocf.condition.type": condition.type,
        "ocf.condition.status": str(condition.status),
        "ocf.condition.reason": str(condition.reason),
        "ocf.writes": result.writes,
    }


class _PreciseError(ReconcileError):
    """An error with a more precise reason than `Error`."""

    def __init__(self, component: str, problem: str, reason: Reason) -> None:
        super().__init__(component, problem)
        self.reason = reason
