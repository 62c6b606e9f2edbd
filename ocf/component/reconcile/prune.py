"""Deletion, orphaning and pruning of objects that a component does not manage any more.

Only objects that exist, belong to the component and are not being deleted are deleted, in the version that was read
(uid and resourceVersion). In a namespace that is being deleted, they are left to Kubernetes. An object that another
component of the owner applies now has moved there, and is kept. Every object is tried, and the errors are collected.

Scalers are deleted first. An autoscaler without its target would only report failures, and it would go on scaling a
target that a finalizer holds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from ocf.cluster import Propagation
from ocf.component.apply.deleter import OwnedObjectDeleter, kept_dependents
from ocf.component.apply.takeover import other_applier
from ocf.component.model.ownership import finalizers_of
from ocf.component.reconcile.resources import raise_all
from ocf.component.reconcile.run import ReconcileRun
from ocf.component.status.results import Action, ResourceOutcome, outcome_attributes, resource_span
from ocf.concepts.recorder import Why
from ocf.concepts.tracing import annotate_span, spanning
from ocf.errors import ConflictError, NotFoundError, OcfError, ReconcileError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.paths import get_field

if TYPE_CHECKING:
    from ocf.component.model.registration import Registration

__all__ = ["DeletionReason", "Pruner", "marked_kinds", "prunable_kinds", "reason_of"]

# A delete names the version that was read, so it conflicts whenever another writer changed the object meanwhile.
_TRIES: Final = 5
_LEFT: Final = "its namespace is being deleted"
_RECHECK: Final = timedelta(seconds=1)


class DeletionReason(NamedTuple):
    """Reason of a deletion.

    Args:
        detail: In a word or two, for the outcome.
        event: As it follows "deleted" in the event.
    """

    detail: str
    event: str


_UNREGISTERED: Final = DeletionReason("no longer registered", "because the component does not register it any more")
_FLAGGED: Final = DeletionReason("not wanted", "due to resource deletion flag")
_OWNER_DELETED: Final = DeletionReason("owner deleted", "because its owner is")
_GATED: Final = DeletionReason("gate closed", "due to closed resource gate")


def reason_of(entry: Registration | None) -> DeletionReason:
    """Return why an object is deleted: its resource is registered for deletion, or, for None, not registered."""
    if entry is None:
        return _UNREGISTERED
    return _GATED if entry.options.gate_closed else _FLAGGED


class Pruner:
    """Deletes, orphans and prunes objects in one reconcile, and collects outcomes and errors.

    Args:
        unregistered: What happens to the dependents of objects that are not registered.
    """

    def __init__(self, run: ReconcileRun, unregistered: Propagation = Propagation.BACKGROUND) -> None:
        self._run = run
        self._unregistered = unregistered
        self._deleter = OwnedObjectDeleter(run.component, run.context)
        self._outcomes: list[ResourceOutcome] = []
        self._errors: list[ReconcileError] = []
        self._done: set[tuple[str, str, str, str]] = set()

    def outcomes(self) -> list[ResourceOutcome]:
        """Return the outcomes, or raise every error, after every object was tried."""
        raise_all(self._run.component, self._errors)
        return self._outcomes

    def is_done(self, entry: Registration) -> bool:
        """Return whether the object of a resource is known to be gone, or was deleted before all others."""
        return entry.unversioned in self._done

    def note_absent(self, entry: Registration) -> None:
        """Keep the outcome of a resource whose object was looked for before all others, and does not exist."""
        self._done.add(entry.unversioned)
        self._outcomes.append(ResourceOutcome(resource=entry.identity, action=Action.ABSENT))

    async def delete_early(self, identity: str, live: Manifest, entry: Registration | None) -> Action | None:
        """Delete the object of a resource, or one that is not registered, before all others; return what was done.

        Returns:
            What was done; None if that failed, which `outcomes` raises.
        """
        self._done.add(ObjectKey.of(live).unversioned)
        why = reason_of(entry)
        return await self._gather(live, self._delete(identity, why, live, self.propagation_of(entry)))

    def propagation_of(self, entry: Registration | None) -> Propagation:
        """Return what happens to the dependents of an object; None stands for one that is not registered."""
        return self._unregistered if entry is None else entry.options.propagation

    async def delete(self, entries: Iterable[Registration], why: Callable[[Registration], DeletionReason]) -> None:
        """Delete the objects of resources, scalers first, else in order of registration."""
        for entry in _scalers_first(entries):
            if self.is_done(entry):
                continue
            if entry.options.updates_only:
                work = partial(self._release, entry.identity, why(entry))
            else:
                propagation = entry.options.propagation
                work = partial(self._delete, entry.identity, why(entry), propagation=propagation)
            await self._process(entry, work)

    async def orphan(self, entries: Iterable[Registration]) -> None:
        """Remove the owner reference from the objects of resources, and keep the objects."""
        for entry in entries:
            await self._process(entry, partial(self._orphan, entry.identity))

    async def prune(self, entries: Sequence[Registration], kinds: Sequence[tuple[str, str]] = ()) -> None:
        """Delete objects that this component applied for its owner earlier and does not register now.

        Kinds of which it registers a resource, and those that are named, are listed, with one request each, in the
        namespace of the owner. Only objects with a reference to the owner are found, so cluster-scoped objects of a
        namespaced owner are not pruned.
        """
        namespace = self._run.context.owned_by.key.namespace
        kept = self._done.union(entry.unversioned for entry in entries)
        registered = prunable_kinds(entries, namespace)

        async def owned(api_version: str, kind: str) -> list[Manifest]:
            if (api_version, kind) not in registered and not await self._deleter.may_own(api_version, kind):
                return []
            return await self._deleter.applied(api_version, kind, namespace)

        for api_version, kind in dict.fromkeys((*registered, *kinds)):
            for live in await self._listed(f"{api_version}/{kind}", owned(api_version, kind)):
                key = ObjectKey.of(live)
                if key.unversioned not in kept:
                    await self._gather(live, self._delete(str(key), _UNREGISTERED, live, self._unregistered))
        context = self._run.context
        itself = context.owned_by.key
        if itself.unversioned not in kept and self._deleter.has_fields(context.owner):
            await self._gather(context.owner, self._release(str(itself), _UNREGISTERED, context.owner))
        # Before the first object gets its mark, the owner gets this finalizer.
        if context.finalizers.cleanup in finalizers_of(context.owner):
            marked = marked_kinds(entries, kinds)
            await self.delete_marked(marked, _UNREGISTERED, kept=kept, propagation=self._unregistered)

    async def delete_marked(
        self,
        kinds: Iterable[tuple[str, str]],
        why: DeletionReason = _OWNER_DELETED,
        *,
        kept: Collection[object] = (),
        propagation: Propagation = Propagation.BACKGROUND,
        orphans: bool = False,
    ) -> tuple[ObjectKey, ...]:
        """Delete the objects, in all namespaces, that this component has marked as its owner's, or release its fields.

        Args:
            kept: Keys of objects that stay, without their version.
            propagation: What happens to the dependents of the objects.
            orphans: Whether the objects are kept, without their label.

        Returns:
            The objects that still exist, because a finalizer holds them.
        """
        remaining: list[ObjectKey] = []
        for api_version, kind in kinds:
            for live in await self._listed(f"{api_version}/{kind}", self._deleter.marked(api_version, kind)):
                key = ObjectKey.of(live)
                if key.unversioned in kept:
                    continue
                if self._deleter.has_fields(live):
                    await self._gather(live, self._release(str(key), why, live))
                elif orphans:
                    await self._gather(live, self._orphan(str(key), live))
                elif await self._still_exists(why, live, propagation):
                    remaining.append(key)
        return tuple(remaining)

    async def delete_applied(
        self, entries: Sequence[Registration], propagation: Propagation | None = None
    ) -> tuple[ObjectKey, ...]:
        """Delete all objects of the kinds of some resources that this component applied for its owner.

        Cluster-scoped kinds, and those of a cluster-scoped owner, are listed in every namespace, others in the
        namespace of the owner. Objects that the clean-up of the owner still needs are kept.

        Args:
            propagation: What happens to their dependents; by default as each resource says, but none is orphaned.

        Returns:
            The objects that still exist, because a finalizer or a dependent holds them.
        """
        remaining: list[ObjectKey] = []
        held_for_cleanup = {key.unversioned for key in self._run.context.held}
        owner = self._run.context.owned_by
        keys = [entry.key for entry in _scalers_first(entries)]
        stopping = {entry.unversioned: entry.options.stopping_propagation for entry in entries}
        kinds = dict.fromkeys((key.api_version, key.kind, owner.key.namespace and key.namespace) for key in keys)
        for api_version, kind, namespace in kinds:
            applied = self._deleter.applied(api_version, kind, namespace)
            for live in await self._listed(f"{api_version}/{kind}", applied):
                key = ObjectKey.of(live)
                if key.unversioned in held_for_cleanup:
                    continue
                policy = propagation or stopping.get(key.unversioned, Propagation.BACKGROUND)
                if await self._still_exists(_OWNER_DELETED, live, policy):
                    remaining.append(key)
        return tuple(remaining)

    async def _listed(self, kind: str, found: Awaitable[list[Manifest]]) -> list[Manifest]:
        """Return the objects of a kind; none if they cannot be listed, which is an error of `outcomes`."""
        try:
            return await found
        except OcfError as cause:
            error = ReconcileError(self._run.component, f"failed to list {kind} to find unregistered objects: {cause}")
            error.__cause__ = cause
            self._errors.append(error)
            return []

    async def _still_exists(self, why: DeletionReason, live: Manifest, propagation: Propagation) -> bool:
        """Delete an object; return whether a finalizer or a dependent holds it."""
        action = await self._gather(live, self._delete(str(ObjectKey.of(live)), why, live, propagation))
        # A foreground deletion sets a finalizer that the object, as it was listed, does not show yet.
        held = propagation is Propagation.FOREGROUND or get_field(live, ("metadata", "finalizers"))
        return action not in {Action.KEPT, Action.UPDATED} and bool(held)

    async def _process(self, entry: Registration, work: Callable[[Manifest], Awaitable[ResourceOutcome]]) -> None:
        """Work on the object of a resource, if it exists."""
        try:
            live = await self._run.applier(entry).get()
        except ReconcileError as error:
            self._errors.append(error)
            return
        if live is None:
            self._outcomes.append(ResourceOutcome(resource=entry.identity, action=Action.ABSENT))
        else:
            await self._gather(live, work(live))

    async def _gather(self, live: Manifest, work: Awaitable[ResourceOutcome]) -> Action | None:
        """Keep the outcome of work on an object, or its error; return what was done."""
        try:
            with spanning(resource_span, ObjectKey.of(live)):
                outcome = await work
                annotate_span(outcome_attributes, outcome)
        except ReconcileError as error:
            self._errors.append(error)
            return None
        self._outcomes.append(outcome)
        return outcome.action

    async def _delete(
        self, identity: str, why: DeletionReason, live: Manifest, propagation: Propagation
    ) -> ResourceOutcome:
        """Delete an object; one that was changed meanwhile is read and judged again, and a new one is kept."""
        for tries_left in reversed(range(_TRIES)):
            try:
                return await self._delete_as_read(identity, why, live, propagation)
            except ReconcileError as error:
                if not (tries_left and isinstance(error.__cause__, ConflictError)):
                    raise
                again = await self._read_again(ObjectKey.of(live))
                if again is None:
                    return ResourceOutcome(resource=identity, action=Action.ABSENT)
                if again["metadata"]["uid"] != live["metadata"]["uid"]:
                    raise
                live = again
        raise AssertionError("unreachable: the last try returns or raises")

    async def _read_again(self, key: ObjectKey) -> Manifest | None:
        try:
            return await self._run.cluster.get(key)
        except NotFoundError:
            return None
        except OcfError as error:
            problem = f"failed to delete resource {key}: {error}"
            raise ReconcileError(self._run.component, problem, resource=str(key)) from error

    async def _delete_as_read(
        self, identity: str, reason: DeletionReason, live: Manifest, propagation: Propagation
    ) -> ResourceOutcome:
        if get_field(live, ("metadata", "deletionTimestamp")) is not None:
            return ResourceOutcome(resource=identity, action=Action.UNCHANGED)
        why = self._deleter.reason_to_keep(live)
        if why:
            return self._kept(identity, live, why)
        if self._deleter.is_shared(live):
            return await self._release(identity, reason, live)
        held = self._deleter.held_back(live)
        if held is not None:
            return replace(self._kept(identity, live, held[0]), why=Why.BACKING_OFF, retry_after=held[1])
        if await self._deleter.is_left_to_kubernetes(live):
            return ResourceOutcome(resource=identity, action=Action.UNCHANGED, detail=_LEFT)
        await self._deleter.delete(live, propagation)
        kept = kept_dependents(propagation)
        self._run.reporter.deleted(ObjectKey.of(live), f"{reason.event}{kept}")
        detail = f"{reason.detail}{kept}"
        return ResourceOutcome(
            resource=identity, action=Action.DELETED, writes=1, detail=detail, retry_after=self._recheck(live)
        )

    async def _release(self, identity: str, reason: DeletionReason, live: Manifest) -> ResourceOutcome:
        if not await self._deleter.release_fields(live):
            return ResourceOutcome(resource=identity, action=Action.UNCHANGED)
        self._run.reporter.released(ObjectKey.of(live), reason.event)
        detail = f"fields released: {reason.detail}"
        return ResourceOutcome(
            resource=identity, action=Action.UPDATED, writes=1, detail=detail, retry_after=self._recheck(live)
        )

    def _recheck(self, live: Manifest) -> timedelta | None:
        """Return when the owner is looked at again: its finalizer, kept for a marked object, has then to be removed.

        The event of our own write may be part of what this reconcile has read after it decided about the finalizer.
        """
        labels = get_field(live, ("metadata", "labels")) or {}
        return _RECHECK if self._run.context.owned_by.mark in labels else None

    async def _orphan(self, identity: str, live: Manifest) -> ResourceOutcome:
        other = other_applier(live, self._run.component, self._run.context)
        if other:
            return self._kept(identity, live, f"applied by {other}")
        if not await self._deleter.orphan(live):
            return ResourceOutcome(resource=identity, action=Action.UNCHANGED)
        self._run.reporter.orphaned(ObjectKey.of(live))
        return ResourceOutcome(resource=identity, action=Action.ORPHANED, writes=1, detail="owner reference removed")

    def _kept(self, identity: str, live: Manifest, why: str) -> ResourceOutcome:
        self._run.reporter.kept(ObjectKey.of(live), why)
        return ResourceOutcome(resource=identity, action=Action.KEPT, detail=why)


def prunable_kinds(entries: Iterable[Registration], namespace: str) -> dict[tuple[str, str], None]:
    """Return the kinds whose objects a component prunes.

    Args:
        namespace: The namespace of the owner; empty for a cluster-scoped one.
    """
    # What is only updated was made by others, as objects of its kind may be.
    made = [entry for entry in entries if not entry.options.updates_only]
    keys = [entry.key for entry in _scalers_first(made)]
    return dict.fromkeys((key.api_version, key.kind) for key in keys if key.namespace or not namespace)


def marked_kinds(entries: Iterable[Registration], kinds: Iterable[tuple[str, str]] = ()) -> tuple[tuple[str, str], ...]:
    """Return the kinds of which a component may have marked objects as its owner's.

    Args:
        kinds: Those that are named, because the component may register no resource of them.
    """
    marked = ((entry.key.api_version, entry.key.kind) for entry in entries if entry.options.mark is not None)
    return tuple(dict.fromkeys((*marked, *kinds)))


def _scalers_first(entries: Iterable[Registration]) -> list[Registration]:
    return sorted(entries, key=lambda entry: entry.scaler is None)
