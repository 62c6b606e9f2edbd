"""Deletion, orphaning and pruning of objects that a component does not manage any more.

Only objects that exist, belong to the component and are not being deleted are deleted, in the version that was read
(uid and resourceVersion). In a namespace that is being deleted, they are left to Kubernetes. An object that another
component of the owner applies now has moved there, and is kept. Every object is tried, and the errors are collected.

Scalers are deleted first. An autoscaler without its target would only report failures, and it would go on scaling a
target that a finalizer holds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from ocf.cluster import ListOptions, Propagation
from ocf.component.apply.deleter import OwnedObjectDeleter
from ocf.component.apply.takeover import other_applier
from ocf.component.reconcile.loop import ReconcileRun, outcome_attributes, raise_all, resource_span
from ocf.component.status.results import Action, ResourceOutcome
from ocf.concepts.recorder import Why
from ocf.concepts.tracing import annotate_span, spanning
from ocf.errors import ConflictError, NotFoundError, OcfError, ReconcileError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.paths import get_field

if TYPE_CHECKING:
    from ocf.component.model.registration import Registration

__all__ = ["DeletionReason", "Pruner"]

# A delete names the version that was read, so it conflicts whenever another writer changed the object meanwhile.
_TRIES: Final = 5
_LEFT: Final = "its namespace is being deleted"
_UNREGISTERED: Final = "because the component does not register it any more"


class DeletionReason(NamedTuple):
    """Reason of a deletion.

    Args:
        detail: In a word or two, for the outcome.
        event: As it follows "deleted" in the event.
    """

    detail: str
    event: str


class Pruner:
    """Deletes, orphans and prunes objects in one reconcile, and collects outcomes and errors."""

    def __init__(self, run: ReconcileRun) -> None:
        self._run = run
        self._deleter = OwnedObjectDeleter(run.component, run.context)
        self._outcomes: list[ResourceOutcome] = []
        self._errors: list[ReconcileError] = []

    def outcomes(self) -> list[ResourceOutcome]:
        """Return the outcomes, or raise every error, after every object was tried."""
        raise_all(self._run.component, self._errors)
        return self._outcomes

    async def delete(self, entries: Iterable[Registration], why: Callable[[Registration], DeletionReason]) -> None:
        """Delete the objects of resources, scalers first, else in order of registration."""
        for entry in _scalers_first(entries):
            detail, reason = why(entry)
            await self._process(entry, partial(self._delete, entry.identity, detail, reason))

    async def orphan(self, entries: Iterable[Registration]) -> None:
        """Remove the owner reference from the objects of resources, and keep the objects."""
        for entry in entries:
            await self._process(entry, partial(self._orphan, entry.identity))

    async def prune(self, entries: Sequence[Registration]) -> None:
        """Delete objects that this component applied for its owner earlier and does not register now.

        Only kinds of which it still registers a resource are listed, with one request each, in the namespace of the
        owner. Only objects with a reference to the owner are found, so cluster-scoped objects of a namespaced owner are
        not pruned.
        """
        namespace = self._run.context.owned_by.key.namespace
        registered = {entry.unversioned for entry in entries}
        keys = [entry.key for entry in _scalers_first(entries)]
        kinds = dict.fromkeys((key.api_version, key.kind) for key in keys if key.namespace or not namespace)
        for api_version, kind in kinds:
            try:
                found = await self._applied(api_version, kind, namespace)
            except OcfError as error:
                self._errors.append(self._list_error(f"{api_version}/{kind}", error))
                continue
            for live in found:
                key = ObjectKey.of(live)
                if key.unversioned not in registered:
                    await self._gather(live, self._delete(str(key), "no longer registered", _UNREGISTERED, live))

    async def delete_applied(
        self, entries: Iterable[Registration], propagation: Propagation = Propagation.BACKGROUND
    ) -> tuple[ObjectKey, ...]:
        """Delete all objects of the kinds of some resources that this component applied for its owner.

        Cluster-scoped kinds, and those of a cluster-scoped owner, are listed in every namespace, others in the
        namespace of the owner. Objects that the clean-up of the owner still needs are kept.

        Returns:
            The objects that still exist, because a finalizer or a dependent holds them.
        """
        remaining: list[ObjectKey] = []
        held_for_cleanup = {key.unversioned for key in self._run.context.held}
        owner = self._run.context.owned_by
        keys = [entry.key for entry in _scalers_first(entries)]
        kinds = dict.fromkeys((key.api_version, key.kind, owner.key.namespace and key.namespace) for key in keys)
        for api_version, kind, namespace in kinds:
            try:
                found = await self._applied(api_version, kind, namespace)
            except OcfError as error:
                self._errors.append(self._list_error(f"{api_version}/{kind}", error))
                continue
            for live in found:
                key = ObjectKey.of(live)
                if key.unversioned in held_for_cleanup:
                    continue
                delete = self._delete(str(key), "owner deleted", "because its owner is", live, propagation)
                held = propagation is Propagation.FOREGROUND or get_field(live, ("metadata", "finalizers"))
                if await self._gather(live, delete) is not Action.KEPT and held:
                    remaining.append(key)
        return tuple(remaining)

    async def _applied(self, api_version: str, kind: str, namespace: str) -> list[Manifest]:
        """List the objects that this component applied for its owner; empty for a kind that is not served.

        An object that can refer to the owner does, or it was orphaned; a cluster-scoped one may not be able to.
        """
        context = self._run.context
        try:
            found = await context.unobserved.list(api_version, kind, ListOptions(namespace=namespace))
        except NotFoundError:
            return []
        ours = self._deleter.is_applied_by_us
        refers = context.owned_by.references
        unable = bool(context.owned_by.key.namespace) and not namespace
        return [live for live in found.items if ours(live) and (unable or refers(live))]

    def _list_error(self, kind: str, cause: OcfError) -> ReconcileError:
        error = ReconcileError(self._run.component, f"failed to list {kind} to find unregistered objects: {cause}")
        error.__cause__ = cause
        return error

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
        self, identity: str, detail: str, reason: str, live: Manifest, propagation: Propagation = Propagation.BACKGROUND
    ) -> ResourceOutcome:
        """Delete an object; one that was changed meanwhile is read and judged again, and a new one is kept."""
        for tries_left in reversed(range(_TRIES)):
            try:
                return await self._delete_as_read(identity, detail, reason, live, propagation)
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
            return await self._run.context.cluster.get(key)
        except NotFoundError:
            return None
        except OcfError as error:
            problem = f"failed to delete resource {key}: {error}"
            raise ReconcileError(self._run.component, problem, resource=str(key)) from error

    async def _delete_as_read(
        self, identity: str, detail: str, reason: str, live: Manifest, propagation: Propagation
    ) -> ResourceOutcome:
        if get_field(live, ("metadata", "deletionTimestamp")) is not None:
            return ResourceOutcome(resource=identity, action=Action.UNCHANGED)
        why = self._deleter.reason_to_keep(live)
        if why:
            return self._kept(identity, live, why)
        held = self._deleter.held_back(live)
        if held is not None:
            return replace(self._kept(identity, live, held[0]), why=Why.BACKING_OFF, retry_after=held[1])
        if await self._deleter.is_left_to_kubernetes(live):
            return ResourceOutcome(resource=identity, action=Action.UNCHANGED, detail=_LEFT)
        await self._deleter.delete(live, propagation)
        self._run.reporter.deleted(ObjectKey.of(live), reason)
        return ResourceOutcome(resource=identity, action=Action.DELETED, writes=1, detail=detail)

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


def _scalers_first(entries: Iterable[Registration]) -> list[Registration]:
    return sorted(entries, key=lambda entry: entry.scaler is None)
