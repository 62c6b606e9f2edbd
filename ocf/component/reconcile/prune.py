"""Taking away what a component no longer wants: deleting what is ours, and letting go of what is to stay.

Nothing is deleted that does not exist, that is going already, or that is not ours; and what is deleted is the very
object that was looked at, by its uid and resourceVersion. Every object is tried; the errors are gathered.

Scalers are deleted before everything else. An autoscaler whose target is already gone would only report failures; and
where a finalizer holds the target, it would go on scaling what is on its way out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ocf.cluster import ListOptions
from ocf.component.apply.deleter import OwnedObjectDeleter
from ocf.component.reconcile.run import ReconcileRun, raise_all
from ocf.component.status.results import Action, ResourceOutcome
from ocf.errors import NotFoundError, OcfError, ReconcileError
from ocf.objects import Manifest, ObjectKey, get_field

if TYPE_CHECKING:
    from ocf.component.model.registration import Registration

__all__ = ["Pruner"]

_UNREGISTERED: Final = "because the component does not register it any more"


class Pruner:
    """What a pass takes away, and what went wrong on the way.

    Args:
        current: The pass.
    """

    def __init__(self, current: ReconcileRun) -> None:
        self._current = current
        self._removal = OwnedObjectDeleter(current.component, current.context)
        self._outcomes: list[ResourceOutcome] = []
        self._errors: list[ReconcileError] = []

    def done(self) -> list[ResourceOutcome]:
        """Return what was done.

        Raises:
            ReconcileError: With every error, after every object was tried.
        """
        raise_all(self._current.component, self._errors)
        return self._outcomes

    async def delete(self, entries: Iterable[Registration], reason: str, told: str) -> None:
        """Delete the objects of resources, scalers first, else in order of registration.

        Args:
            entries: The resources.
            reason: Why, in a word or two.
            told: The same, as it follows "deleted".
        """
        for entry in _scalers_first(entries):
            await self._try(entry, partial(self._delete, entry.identity, reason, told))

    async def orphan(self, entries: Iterable[Registration]) -> None:
        """Take our owner reference off the objects of resources, and keep them.

        Args:
            entries: The resources.
        """
        for entry in entries:
            await self._try(entry, partial(self._orphan, entry.identity))

    async def prune(self, entries: Sequence[Registration]) -> None:
        """Delete what this component applied for its owner in earlier passes and does not register any more.

        Only kinds of which it still registers a resource are looked through, each with one list, in the namespace of
        the owner. What carries no reference to the owner is never found, so cluster-scoped objects of an owner in a
        namespace are left out.

        Args:
            entries: All resources of the component.
        """
        namespace = self._current.context.owned_by.key.namespace
        registered = {entry.key.unversioned for entry in entries}
        keys = [entry.key for entry in _scalers_first(entries)]
        kinds = dict.fromkeys((key.api_version, key.kind) for key in keys if key.namespace or not namespace)
        for api_version, kind in kinds:
            try:
                found = await self._applied(api_version, kind, namespace)
            except OcfError as error:
                self._errors.append(self._unlisted(f"{api_version}/{kind}", error))
                continue
            for live in found:
                key = ObjectKey.of(live)
                if key.unversioned not in registered:
                    await self._gather(self._delete(str(key), "no longer registered", _UNREGISTERED, live))

    async def delete_applied(self, entries: Iterable[Registration]) -> tuple[ObjectKey, ...]:
        """Delete all objects of some kinds that this component applied for its owner, in any namespace or none.

        Args:
            entries: Resources of these kinds.

        Returns:
            The objects that are not gone yet, because a finalizer holds them.
        """
        remaining: list[ObjectKey] = []
        keys = [entry.key for entry in _scalers_first(entries)]
        for api_version, kind in dict.fromkeys((key.api_version, key.kind) for key in keys):
            try:
                found = await self._current.context.cluster.list(api_version, kind)
            except NotFoundError:
                continue
            except OcfError as error:
                self._errors.append(self._unlisted(f"{api_version}/{kind}", error))
                continue
            for live in filter(self._removal.is_applied_by_us, found.items):
                key = ObjectKey.of(live)
                if get_field(live, ("metadata", "finalizers")):
                    remaining.append(key)
                await self._gather(self._delete(str(key), "owner deleted", "because its owner is", live))
        return tuple(remaining)

    async def _applied(self, api_version: str, kind: str, namespace: str) -> list[Manifest]:
        """Find what this component applied for its owner; a kind that is not served has no objects."""
        context = self._current.context
        try:
            found = await context.cluster.list(api_version, kind, ListOptions(namespace=namespace))
        except NotFoundError:
            return []
        ours = self._removal.is_applied_by_us
        return [live for live in found.items if context.owned_by.references(live) and ours(live)]

    def _unlisted(self, kind: str, cause: OcfError) -> ReconcileError:
        error = ReconcileError(
            self._current.component, f"failed to list {kind} to find what is no longer wanted: {cause}"
        )
        error.__cause__ = cause
        return error

    async def _try(self, entry: Registration, work: Callable[[Manifest], Awaitable[ResourceOutcome]]) -> None:
        async def look() -> ResourceOutcome:
            live = await self._current.object_of(entry).get()
            return ResourceOutcome(resource=entry.identity, action=Action.ABSENT) if live is None else await work(live)

        await self._gather(look())

    async def _gather(self, work: Awaitable[ResourceOutcome]) -> None:
        try:
            self._outcomes.append(await work)
        except ReconcileError as error:
            self._errors.append(error)

    async def _delete(self, identity: str, reason: str, told: str, live: Manifest) -> ResourceOutcome:
        if get_field(live, ("metadata", "deletionTimestamp")) is not None:
            return ResourceOutcome(resource=identity, action=Action.UNCHANGED)
        if not self._removal.is_ours(live):
            controller = self._current.context.owned_by.foreign_controller(live)
            why = f"controlled by {controller}" if controller else "not ours"
            self._current.reporter.kept(ObjectKey.of(live), why)
            return ResourceOutcome(resource=identity, action=Action.KEPT, detail=why)
        await self._removal.delete(live)
        self._current.reporter.deleted(ObjectKey.of(live), told)
        return ResourceOutcome(resource=identity, action=Action.DELETED, writes=1, detail=reason)

    async def _orphan(self, identity: str, live: Manifest) -> ResourceOutcome:
        if not await self._removal.orphan(live):
            return ResourceOutcome(resource=identity, action=Action.UNCHANGED)
        self._current.reporter.orphaned(ObjectKey.of(live))
        return ResourceOutcome(resource=identity, action=Action.ORPHANED, writes=1, detail="owner reference removed")


def _scalers_first(entries: Iterable[Registration]) -> list[Registration]:
    return sorted(entries, key=lambda entry: entry.scaler is None)
