"""Component: resources that are reconciled together and reported as one condition.

It keeps no state, so it can be kept or built anew for each reconcile: all is in the owner's status and the cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from ocf.cluster import Propagation
from ocf.cluster.impersonation import Impersonation
from ocf.component import preview
from ocf.component.apply.deleter import OwnedObjectDeleter
from ocf.component.author_code import call_with_timeout
from ocf.component.context import ReconcileContext
from ocf.component.model.data_flow import DataFlow, data_flows
from ocf.component.model.ownership import Owner, finalizers_of
from ocf.component.model.registration import (
    Registration,
    ScaleTargets,
    find_scale_targets,
    scalers_first,
    shared_problem,
)
from ocf.component.model.resource_options import Lifecycle
from ocf.component.reconcile.external_removal import is_removed, pending_removals, remove_all, remove_unwanted
from ocf.component.reconcile.former_scalers import FormerScalers
from ocf.component.reconcile.prerequisites import DependsOn, Prerequisite, PrerequisiteStatus, check_prerequisite
from ocf.component.reconcile.prune import DeletionReason, Pruner, marked_kinds, reason_of
from ocf.component.reconcile.reporter import Reporter
from ocf.component.reconcile.resources import converge
from ocf.component.reconcile.run import ReconcileRun, failing
from ocf.component.reconcile.served import left_out, naming_left_out
from ocf.component.reconcile.suspend import is_suspended, suspend, suspending_removals
from ocf.component.status.conditions import (
    Condition,
    ConditionContext,
    ResourceObservation,
    converging_condition,
    grace_is_over,
    grace_remaining,
    suspending_condition,
    waits_longer,
)
from ocf.component.status.reasons import SUSPENSION_REASONS, Reason
from ocf.component.status.results import Action, ResourceOutcome, Result, component_span, result_attributes
from ocf.concepts import Resource, data_scope
from ocf.concepts.external import Client
from ocf.concepts.provenance import Provenance
from ocf.concepts.recorder import Why
from ocf.concepts.tracing import annotate_span, spanning
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
_REACHED: Final = frozenset({Lifecycle.MANAGED, Lifecycle.READ_ONLY})
_NO_TARGETS: Final = ScaleTargets({}, {}, {})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Component:
    """Resources that are reconciled together and reported as one condition of their owner.

    Components are made by `Builder`.

    Args:
        name: Name of the component; part of its field manager, so renaming it moves every field to a new manager.
        condition_type: Type of its condition on the owner.
        entries: Its resources in the cluster, in order of registration.
        external: Its external resources, one for each target, in order of registration.
        gate: Gate of the whole component; None for always on.
        prerequisites: What must be met before it does anything.
        suspended: Whether it is suspended.
        published: Whether its condition is written to the owner, or only returned and aggregated.
        prunes: Whether objects that it applied earlier and does not register now are deleted.
        prune_kinds: Kinds of which such objects are looked for, although no resource of them is registered.
        prune_external: Clients of external resources of which the same holds.
        prunes_while_blocked: Whether they are deleted also while a resource is blocked.
        prune_propagation: What happens to their dependents.
        former_managers: Field managers whose fields it takes over once, by name or pattern.
        grace_period: Time until a component that is not ready becomes degraded or down; zero for no limit.
        poll_interval: Time until the next reconcile while it waits for something that may come without an event.
        handler_timeout: Timeout of one handler call; None for no limit.
        reads_pods: Whether the pods of workloads that are not ready are read, for the message of the condition.
        acting_as: The user as whom its objects are read and written; None for the user of the operator.
    """

    name: str
    condition_type: str
    entries: tuple[Registration, ...] = ()
    external: tuple[Registration, ...] = ()
    gate: Gate | None = None
    prerequisites: tuple[Prerequisite, ...] = ()
    suspended: bool = False
    published: bool = True
    prunes: bool = False
    prunes_while_blocked: bool = False
    prune_kinds: tuple[tuple[str, str], ...] = ()
    prune_external: tuple[Client[Any, Any], ...] = ()
    prune_propagation: Propagation = Propagation.BACKGROUND
    former_managers: tuple[str, ...] = ()
    grace_period: timedelta = timedelta(0)
    poll_interval: timedelta = timedelta(seconds=10)
    handler_timeout: timedelta | None = None
    reads_pods: bool = False
    acting_as: Impersonation | None = None

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
        context.outcomes[self.name] = {}
        try:
            with data_scope(), spanning(component_span, self.name):
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
                entries = self._with(Lifecycle.MANAGED, Lifecycle.READ_ONLY)
                skipped = await left_out(entries, self._new_run(context))
                outside = [one for one in self.external if one.options.lifecycle in _REACHED and not one.is_nowhere]
                outside += [one for one in entries if one.identity not in skipped]
                entries = sorted(outside, key=lambda one: one.place)
                run = self._new_run(context, await self._scale_targets(skipped))
                if self.suspended or before.previous.reason in SUSPENSION_REASONS:
                    entries = scalers_first(entries, run.scaling.targets)
                work = Pruner(run, self.prune_propagation)
                former = FormerScalers(work, run, self.entries, prunes=self.prunes)
                await former.delete_without_successor()
                # 3. Suspension.
                if self.suspended:
                    # Any other state of the suspension, and any error, has another reason.
                    was_applied = before.previous.reason in {Reason.SUSPENDING, Reason.SUSPENDED}
                    outcomes = [
                        *skipped.values(),
                        *await suspend(entries, run, former.delete_before, was_applied=was_applied),
                    ]
                    cleaned = await self._clean_up(work, run, outcomes)
                    reported = [
                        *(ResourceObservation(one.resource, one.report) for one in outcomes if one.report),
                        *suspending_removals(cleaned),
                    ]
                    condition = naming_left_out(suspending_condition(reported, before), outcomes)
                    return self._staged(context, condition, outcomes + cleaned)
                # 4. The resources.
                grading = grace_is_over(before.previous, self.grace_period, before.now)
                explaining = self.reads_pods and waits_longer(before.previous, self.poll_interval, before.now)
                updating = before.previous.reason is Reason.UPDATING
                converged = await converge(
                    entries, run, former.delete_before, grading=grading, explaining=explaining, updating=updating
                )
                if converged.has_begun and not all(one.is_ready for one in converged.observations):
                    # Each member has the whole grace period.
                    before = replace(before, previous=replace(before.previous, last_transition_time=""))
                outcomes = [*skipped.values(), *converged.outcomes]
                cleaned = await self._clean_up(work, run, outcomes)
                observations = [*converged.observations, *pending_removals(cleaned)]
                condition = converging_condition(observations, before, grace_period=self.grace_period)
                condition = naming_left_out(condition, outcomes)
                outcomes += cleaned
                return self._staged(context, condition, outcomes)
        except Exception as error:
            if context.is_over:
                return nothing
            self._stage_failure(context, before, error)
            raise

    def announce(self, context: ReconcileContext) -> None:
        """Record in a reconcile which objects the component manages; none while its gate is off."""
        managed = [*self._managed(context), *self._managed(context, self.external)]
        context.claims.announce(self.name, [entry.unversioned for entry in managed])

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

    def render_external(self) -> list[Manifest]:
        """Return what is desired of its external resources, in the form of objects, without calling their systems.

        Raises:
            ConfigError: Naming the resource that cannot be rendered.
        """
        return preview.render_external(self.external)

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
        """Return the objects that the garbage collector does not delete with the owner; the owner itself just goes."""
        made, is_owner = self._with(Lifecycle.MANAGED, Lifecycle.DELETED), context.owned_by.is_object
        marked = [entry for entry in made if entry.options.mark and not is_owner(entry.key)]
        return tuple(entry.key for entry in (*self._left_behind(context), *marked))

    def held_objects(self, context: ReconcileContext) -> tuple[ObjectKey, ...]:
        """Return the objects that are held until the owner is cleaned up; none while the gate is off."""
        managed = self._managed(context)
        return tuple(entry.key for entry in managed if entry.options.held_for_cleanup)

    async def delete_objects_without_gc(self, context: ReconcileContext) -> tuple[ObjectKey, ...]:
        """Delete every object that it applied for the owner and that the garbage collector does not delete.

        Fields that it has set in objects of other writers are released.

        Returns:
            The objects that are being deleted, but still exist.

        Raises:
            ReconcileError: With every error, after every object was tried.
        """
        return await self._delete_applied(context, self._left_behind(context))

    @property
    def makes_external(self) -> bool:
        """Whether it makes external resources, which have to be deleted before the owner is gone."""
        return any(entry.options.lifecycle is not Lifecycle.READ_ONLY for entry in self.external)

    async def delete_external(self, context: ReconcileContext, names: Collection[str]) -> list[ResourceOutcome]:
        """Delete every external resource that it has made for the owner; return those that still exist, and why.

        Args:
            names: The names of all components of the owner: what another one has made that is not among them is
                deleted, too.
        """
        with data_scope():
            removed = await remove_all(self.external, self.prune_external, self._new_run(context), names)
        return [outcome for outcome in removed if not is_removed(outcome)]

    async def orphan_objects_without_gc(self, context: ReconcileContext) -> None:
        """Remove the label from all objects that it has marked as the owner's, and release its fields in others.

        Raises:
            ReconcileError: With every error, after every object was tried.
        """
        work = Pruner(self._new_run(context))
        await work.delete_marked(marked_kinds(self.entries, self.prune_kinds), orphans=True)
        work.outcomes()

    async def has_marked(self, context: ReconcileContext) -> bool:
        """Return whether objects exist that it has marked as the owner's, and may not register any more."""
        deleter = OwnedObjectDeleter(self.name, self._new_run(context).context)
        kinds = marked_kinds(self.entries, self.prune_kinds)
        return any([bool(await deleter.marked(*kind)) for kind in kinds])

    async def delete_objects(self, context: ReconcileContext) -> tuple[ObjectKey, ...]:
        """Delete every object that it applied for the owner, with its dependents, such as the pods of a Deployment.

        Unowned objects are kept, unless they are registered to be deleted with the owner.

        Returns:
            The objects that still exist.

        Raises:
            ReconcileError: With every error, after every object was tried.
        """
        made = self._with(Lifecycle.MANAGED, Lifecycle.DELETED)
        owned = [entry for entry in made if not entry.options.unowned]
        if context.finalizers.cleanup not in finalizers_of(context.owner):
            # Then nothing is left that cannot refer to the owner, or it was orphaned.
            owned = [entry for entry in owned if context.owned_by.can_own(entry.key)]
        return await self._delete_applied(context, owned, Propagation.FOREGROUND)

    @property
    def data_topology(self) -> tuple[DataFlow, ...]:
        """The resources that fill and read each data cell."""
        return data_flows(self.entries)

    def _managed(self, context: ReconcileContext, entries: Sequence[Registration] | None = None) -> list[Registration]:
        managed = [
            entry
            for entry in (self.entries if entries is None else entries)
            if entry.options.lifecycle is Lifecycle.MANAGED
        ]
        try:
            return managed if context.gates.is_open(self.gate) else []
        except OcfError:
            # The reconcile of the component reports the error, and leaves all objects as they are.
            return managed

    def _with(self, *lifecycles: Lifecycle) -> list[Registration]:
        return [entry for entry in self.entries if entry.options.lifecycle in lifecycles]

    def _reject_shared_resources(self, context: ReconcileContext) -> None:
        outside = [entry for entry in self.external if entry.options.lifecycle is Lifecycle.MANAGED]
        for entry in (*self._with(Lifecycle.MANAGED), *outside):
            other = context.claims.other_than(self.name, entry.unversioned)
            if other:
                raise ReconcileError(self.name, shared_problem(entry, self.name, other), resource=entry.identity)

    def _new_run(self, context: ReconcileContext, scaling: ScaleTargets = _NO_TARGETS) -> ReconcileRun:
        context.act(self.name, self.acting_as)
        reporter = Reporter(self.name, self.condition_type, context)
        return ReconcileRun(self.name, context, scaling, self.handler_timeout, reporter, self.former_managers)

    async def _scale_targets(self, skipped: Collection[str]) -> ScaleTargets:
        naming = partial(failing, self.name, "find scale target of")
        entries, timeout = [entry for entry in self.entries if entry.identity not in skipped], self.handler_timeout
        if timeout is None:
            return find_scale_targets(entries, naming)
        return await call_with_timeout(timeout, find_scale_targets, entries, naming)

    def _is_enabled(self, context: ReconcileContext) -> bool:
        try:
            return context.gates.is_open(self.gate)
        except OcfError as error:
            raise _PreciseError(self.name, str(error), Reason.FEATURE_GATE_ERROR) from error

    async def _disable(self, context: ReconcileContext) -> list[ResourceOutcome]:
        """Delete or orphan the objects of the component; read-only resources are not touched."""
        work = Pruner(self._new_run(context), self.prune_propagation)
        managed = self._with(Lifecycle.MANAGED, Lifecycle.DELETED)
        await work.delete(managed, lambda _entry: _DISABLED)
        run, outside = self._new_run(context), self.external
        removed = await remove_unwanted(outside, self.prune_external, run, _DISABLED.event, prunes=self.prunes)
        return [*await self._orphan_and_prune(work, prune=self.prunes), *removed]

    async def _clean_up(self, work: Pruner, run: ReconcileRun, made: list[ResourceOutcome]) -> list[ResourceOutcome]:
        prune = self.prunes and (self.prunes_while_blocked or all(one.action is not Action.BLOCKED for one in made))
        await work.delete(self._with(Lifecycle.DELETED), reason_of)
        # A former name is given up once the new one is made, which a suspension makes only where it has a form for it.
        unmade = {one.key.kind for one in self.external if self.suspended and not is_suspended(one)}
        removed = await remove_unwanted(self.external, self.prune_external, run, prunes=prune, kept=unmade)
        return [*await self._orphan_and_prune(work, prune=prune and not self.suspended), *removed]

    async def _orphan_and_prune(self, work: Pruner, *, prune: bool) -> list[ResourceOutcome]:
        await work.orphan(self._with(Lifecycle.ORPHANED))
        if prune:
            await work.prune(self.entries, self.prune_kinds)
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
        propagation: Propagation | None = None,
    ) -> tuple[ObjectKey, ...]:
        work = Pruner(self._new_run(context))
        applied, kinds = await work.delete_applied(entries, propagation), marked_kinds(self.entries, self.prune_kinds)
        kept = [key.unversioned for key in context.held]
        marked = await work.delete_marked(kinds, kept=kept, propagation=propagation or Propagation.BACKGROUND)
        work.outcomes()
        return (*applied, *marked)

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
        annotate_span(result_attributes, result)
        context.stage(condition, published=self.published)
        context.results[self.name] = result
        context.outcomes[self.name] = {outcome.resource: outcome for outcome in outcomes}
        return result

    def _stage_failure(self, context: ReconcileContext, before: ConditionContext, error: Exception) -> None:
        reason = error.reason if isinstance(error, _PreciseError) else Reason.ERROR
        problem = failure_text(error)
        context.fail([self.condition_type] if self.published else [], problem, reason=reason)
        if not self.published:
            context.stage(before.failed(problem, reason=reason), published=False)

    def _requeue(self, condition: Condition, outcomes: Sequence[ResourceOutcome], now: datetime) -> timedelta | None:
        # A change of a pod is often not a change of its workload.
        # And a kind need not report the change that a member of a rollout waits for.
        reads = self.reads_pods and not condition.status
        rolls = any(outcome.why is Why.WAITING for outcome in outcomes)
        poll = self.poll_interval if reads or rolls or condition.reason in _WAITING else None
        grace = grace_remaining(condition, self.grace_period, now)
        delays = [poll, grace, *(outcome.retry_after for outcome in outcomes)]
        return min((delay for delay in delays if delay is not None), default=None)


class _PreciseError(ReconcileError):
    """An error with a more precise reason than `Error`."""

    def __init__(self, component: str, problem: str, reason: Reason) -> None:
        super().__init__(component, problem)
        self.reason = reason
