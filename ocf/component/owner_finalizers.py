"""Finalizers of an owner: it is held until what Kubernetes does not delete is deleted.

That is what `on_delete` deletes, outside of the cluster, and the cluster-scoped objects of a namespaced owner, which
cannot refer to it. An owner without both gets no finalizer, and its namespace can be deleted without an operator.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final, TypeAlias

from ocf.cluster import PatchOptions, PatchType
from ocf.cluster.retry import retry_on_conflict
from ocf.component import held_objects
from ocf.component.component import Component
from ocf.component.context import ReconcileContext
from ocf.component.external.records import Record, records_of
from ocf.component.model.ownership import Owner, finalizers_of, is_ending
from ocf.component.model.write_backoff import is_older, record_revert, wait, written
from ocf.component.owner_deletion import (
    SKIP_CLEANUP,
    CleanupPending,
    CleanupReason,
    DeletionOrder,
    DeletionStep,
    condition_type,
    decide,
    is_held,
)
from ocf.component.owner_status import FINALIZER_EVENT, owner_event
from ocf.component.reconcile.external_removal import without_client
from ocf.concepts import AliveStatus
from ocf.concepts.external import GROUP
from ocf.errors import NotFoundError, ReconcileError, RetryError, failure_text
from ocf.objects import Manifest, ObjectKey
from ocf.objects.conditions import ConditionStatus
from ocf.objects.managed_fields import ManagedFields
from ocf.objects.paths import get_field

__all__ = ["FinalizationResult", "Finalizer", "OnDelete", "finalize"]

_log: Final = logging.getLogger("ocf.component")

OnDelete: TypeAlias = Callable[[ReconcileContext], Awaitable[CleanupPending | None]]
"""Deletes what was made for an owner outside of the cluster; returns None when that does not exist any more."""

# Set by a delete that orphans the dependents; the garbage collector removes it.
_ORPHANING: Final = "orphan"
_ORPHANING_POLL: Final = timedelta(seconds=10)
_UNTIL_ORPHANED: Final = "Waiting until the garbage collector has orphaned the objects of the owner."
# Number of objects that the message of the condition names.
_NAMED: Final = 5
_RELEASED: Final = "The operator does not select the owner any more: its finalizers are removed, its objects stay"
_DIGESTS: Final = {True: b"set", False: b"removed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalizationResult:
    """State of an owner that is being deleted.

    Args:
        remaining: Objects that are being deleted, and hold the owner.
        pending: The result of an `on_delete` that has not finished; None otherwise.
        requeue_after: Time until the next reconcile; None once the finalizer is removed.
    """

    remaining: tuple[ObjectKey, ...] = ()
    pending: CleanupPending | None = None
    requeue_after: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finalizer:
    """The finalizers of one operator on its owners, and the clean-up that they wait for.

    They have the operator's name, so each operator of an owner has its own.

    Args:
        on_delete: Deletes what was made for an owner outside of the cluster. It is called in every reconcile of an
            owner that is being deleted, until it has returned None; it must succeed if there is nothing left to delete.
        order: Whether `on_delete` is called before or after the objects of the components are deleted.
        orphans: Whether the owner was seen with the finalizer `orphan`, which may be gone again: its objects are kept,
            those that cannot refer to it as well.
    """

    on_delete: OnDelete | None = None
    order: DeletionOrder = DeletionOrder.EXTERNAL_FIRST
    orphans: bool = False

    async def begin(self, context: ReconcileContext) -> bool:
        """Set the finalizer for external resources if there is an `on_delete`; remove it if there is none any more.

        If a user asked to skip the clean-up of an owner that is being deleted, all our finalizers are removed.

        Call it first in a reconcile: before the owner is read by its model, which may fail, and before anything is made
        for the owner.

        Args:
            context: The reconcile of the owner.

        Returns:
            Whether there is something to do: False if the owner is paused, if it was deleted meanwhile, or if it is
            being deleted and no finalizer of a controller holds it.

        Raises:
            ReconcileError: If another process removes the finalizer again and again, so that it is not set now.
            ApiError: If the finalizer cannot be set or removed.
        """
        if context.pause is not None:
            return False
        names, owner = context.finalizers, context.owner
        match self._decide(context):
            case DeletionStep.HOLD:
                # In one write: the owner is held all the time.
                return await _set_finalizers(context, names.external, wanted=True, replaced=names.former_of(owner))
            case DeletionStep.RELEASE:
                if await _set_finalizers(context, *names.external_of(owner), wanted=False) and context.is_ending:
                    self._stage(context, CleanupReason.SKIPPED, "The operator has no on_delete any more.")
            case DeletionStep.RECONCILE if former := names.former_of(owner):
                await _set_finalizers(context, *former, wanted=False)
            case DeletionStep.SKIP:
                await self._skip(context)
            case _:
                pass
        return not context.is_gone and (not context.is_ending or is_held(context.owner))

    async def release(self, context: ReconcileContext) -> None:
        """Remove our finalizers from an owner that the operator does not select any more, and from its held objects.

        Args:
            context: The reconcile of the owner.

        Raises:
            ApiError: If a finalizer cannot be removed.
        """
        if context.pause is None:
            await self._release_objects(context)
            if await _set_finalizers(context, *context.finalizers.own_of(context.owner), wanted=False):
                _record(context, "Released", _RELEASED)

    async def run(
        self, context: ReconcileContext, components: Callable[[], Awaitable[Sequence[Component]]]
    ) -> FinalizationResult | None:
        """Set or remove the finalizer as components need it; while the owner is being deleted, clean up first.

        Args:
            context: The reconcile of the owner.
            components: Returns all components of the owner; called only where they are needed.

        Returns:
            What the owner waits for if it is being deleted; then there is nothing to reconcile. None otherwise.

        Raises:
            ReconcileError: If an object cannot be deleted.
            ApiError: If the finalizer cannot be set or removed.
            Exception: The error of `on_delete` or `components`. While the owner is being deleted, the condition
                `<operator>/CleanedUp` has it, too.
        """
        if not context.is_ending:
            made = _announced(context, await components())
            named = [key for one in made for key in one.held_objects(context)]
            outside = any(one.makes_external for one in made) or bool(_records(context))
            held = frozenset(named) if self.on_delete is not None or outside else frozenset()
            needed = bool(held) or outside or any(one.objects_without_gc(context) for one in made)
            # An owner that was deleted meanwhile must not get objects that would never be deleted.
            name = context.finalizers.cleanup
            if not needed and name in finalizers_of(context.owner):
                needed = any([await one.has_marked(context) for one in made])
            if needed and not await _set_finalizers(context, name, wanted=True):
                return FinalizationResult()
            await held_objects.update(context, held)
            if context.is_gone or (not needed and not await _set_finalizers(context, name, wanted=False)):
                return FinalizationResult()
            return None
        if self._decide(context) in {DeletionStep.SKIP, DeletionStep.CLEANED}:
            return FinalizationResult()
        return await self._clean_up(context, components)

    def cleans_up(self, context: ReconcileContext) -> bool:
        """Return whether the owner is being deleted, and waits for the clean-up.

        Args:
            context: The reconcile of the owner.
        """
        return self._decide(context) is DeletionStep.CLEAN_UP

    def fail(self, context: ReconcileContext, problem: str) -> str:
        """Stage a failure in the condition of the clean-up, unless this reconcile has staged one already.

        Args:
            context: The reconcile of the owner.
            problem: The message, without the values of Secrets; see `ocf.errors.failure_text`.

        Returns:
            The message of the condition, which also names the annotation that skips the clean-up.
        """
        name = condition_type(context.owned_by.operator)
        if name not in context.staged:
            hint = f'the annotation {SKIP_CLEANUP}: "true" deletes the owner without clean-up'
            context.fail([name], f"{problem}; {hint}")
        return context.condition(name).message

    async def _clean_up(
        self, context: ReconcileContext, components: Callable[[], Awaitable[Sequence[Component]]]
    ) -> FinalizationResult:
        steps: dict[str, Callable[[], Awaitable[FinalizationResult | None]]] = {
            "on_delete": partial(self._delete_external, context),
            "deleting external resources": partial(self._delete_external_resources, context, components),
            "releasing objects": partial(self._release_objects, context),
            "deleting objects": partial(self._delete_objects, context, components),
        }
        # The credentials of `on_delete` go once it has succeeded, and what only the operator deletes goes last.
        order = ["deleting objects", *steps] if self.order is DeletionOrder.COMPONENTS_FIRST else [*steps]
        holding = finalizers_of(context.owner)
        if context.finalizers.cleanup in holding and (self.orphans or _ORPHANING in holding):
            # At once, because nothing shows later how the owner was deleted.
            steps["orphaning objects"] = partial(self._orphan_objects, context, components)
            # What is outside of the cluster is deleted in any case, and the finalizer waits for it.
            order.remove("deleting external resources")
            order[:0] = ["deleting external resources", "orphaning objects"]
        for step in order:
            try:
                waiting = await steps[step]()
            except RetryError as error:
                self._stage(context, CleanupReason.PENDING, str(error))
                raise
            except Exception as error:
                if context.pause is not None:
                    raise
                self.fail(context, f"{step} failed: {failure_text(error)}")
                raise
            if waiting is not None:
                return waiting
        self._stage(context, CleanupReason.COMPLETED, "Clean-up has succeeded.")
        return FinalizationResult()

    async def _delete_external(self, context: ReconcileContext) -> FinalizationResult | None:
        """Call `on_delete`, and remove its finalizer; return None once that is done."""
        if self.on_delete is None or not self._holds_external(context):
            return None
        # It may have been paused since, and what `on_delete` writes outside of the cluster goes through no cluster.
        context.require_running()
        pending = await self.on_delete(context)
        if pending is not None:
            self._stage(context, CleanupReason.PENDING, pending.message or "Clean-up has not finished.")
            return FinalizationResult(pending=pending, requeue_after=pending.requeue_after)
        if await _set_finalizers(context, *context.finalizers.external_of(context.owner), wanted=False):
            _record(context, "CleanedUp", "Clean-up has succeeded")
        return None

    async def _delete_external_resources(
        self, context: ReconcileContext, components: Callable[[], Awaitable[Sequence[Component]]]
    ) -> FinalizationResult | None:
        """Delete the external resources of all components; return None once they do not exist."""
        if context.finalizers.cleanup not in finalizers_of(context.owner):
            return None
        context.require_running()
        made = _announced(context, await components())
        names = {one.name for one in made}
        left = [outcome for one in made for outcome in await one.delete_external(context, names)]
        seen = {outcome.resource.removeprefix(f"{GROUP}/") for outcome in left}
        left += without_client(one for place, one in _records(context).items() if place not in seen)
        if not left:
            return None
        texts = [str(outcome.report.reason) for outcome in left if outcome.report is not None]
        message = f"Waiting until external resources are deleted ({len(left)}): {'; '.join(texts[:_NAMED])}"
        if any(outcome.report is not None and outcome.report.status is AliveStatus.FAILING for outcome in left):
            self.fail(context, message)
        else:
            self._stage(context, CleanupReason.PENDING, message)
        delays = [outcome.retry_after for outcome in left if outcome.retry_after is not None]
        remaining = tuple(ObjectKey(*outcome.resource.split("/", 2)) for outcome in left)
        return FinalizationResult(remaining=remaining, requeue_after=min(delays, default=_ORPHANING_POLL))

    async def _delete_objects(
        self, context: ReconcileContext, components: Callable[[], Awaitable[Sequence[Component]]]
    ) -> FinalizationResult | None:
        """Delete the objects that have to be deleted before the owner; return None once they do not exist."""
        name = context.finalizers.cleanup
        outside = bool(_records(context))
        everything = self.order is DeletionOrder.COMPONENTS_FIRST and (self._holds_external(context) or outside)
        # Otherwise the garbage collector deletes all of them, and what `components` reads may be deleted already.
        if not everything and name not in finalizers_of(context.owner):
            return None
        if everything and _ORPHANING in finalizers_of(context.owner):
            self._stage(context, CleanupReason.OBJECTS_REMAINING, _UNTIL_ORPHANED)
            return FinalizationResult(requeue_after=_ORPHANING_POLL)
        made = _announced(context, await components())
        deletes = [one.delete_objects if everything else one.delete_objects_without_gc for one in made]
        remaining = tuple([key for delete in deletes for key in await delete(context)])
        if not remaining:
            if not (context.held or outside):
                await _set_finalizers(context, name, wanted=False)
            return None
        named = ", ".join(map(str, remaining[:_NAMED])) + (", ..." if len(remaining) > _NAMED else "")
        message = f"Waiting until objects are deleted ({len(remaining)}): {named}"
        self._stage(context, CleanupReason.OBJECTS_REMAINING, message)
        return FinalizationResult(remaining=remaining, requeue_after=min(one.poll_interval for one in made))

    async def _orphan_objects(
        self, context: ReconcileContext, components: Callable[[], Awaitable[Sequence[Component]]]
    ) -> None:
        """Keep the objects that the garbage collector does not delete, as the delete of the owner requests."""
        for one in _announced(context, await components()):
            await one.orphan_objects_without_gc(context)
        await _set_finalizers(context, context.finalizers.cleanup, wanted=False)

    async def _release_objects(self, context: ReconcileContext) -> None:
        """Release the objects that `on_delete` needed; until its finalizer is removed, it may be called again."""
        await held_objects.release(context, context.held)
        context.held = frozenset()

    async def _skip(self, context: ReconcileContext) -> None:
        """Remove the finalizers without a clean-up, as the annotation of the owner requests."""
        names = context.finalizers
        await self._release_objects(context)
        if await _set_finalizers(context, names.cleanup, *names.external_of(context.owner), wanted=False):
            note = f'Clean-up skipped, as the annotation {SKIP_CLEANUP}: "true" requests'
            self._stage(context, CleanupReason.SKIPPED, note)
            _record(context, "CleanupSkipped", note, warning=True)

    def _decide(self, context: ReconcileContext) -> DeletionStep:
        return decide(context.owner, context.finalizers, external=self.on_delete is not None)

    def _holds_external(self, context: ReconcileContext) -> bool:
        return self.on_delete is not None and bool(context.finalizers.external_of(context.owner))

    def _stage(self, context: ReconcileContext, reason: CleanupReason, message: str) -> None:
        status = ConditionStatus.of(reason is CleanupReason.COMPLETED)
        name = condition_type(context.owned_by.operator)
        context.set_condition(name, status=status, reason=reason, message=message)


def _records(context: ReconcileContext) -> dict[str, Record]:
    """Return the records of the external resources of this operator."""
    return records_of(context.status, context.owned_by.operator)


def _announced(context: ReconcileContext, components: Sequence[Component]) -> Sequence[Component]:
    """Return all components of the owner, after what they manage is known to each other."""
    for component in components:
        component.announce(context)
    context.claims.complete()
    return components


def _record(context: ReconcileContext, reason: str, note: str, *, warning: bool = False) -> None:
    owner = context.owned_by
    (_log.warning if warning else _log.info)("%s: %s", owner.key, note, extra={"owner": str(owner.key)})
    context.recorder.happened(owner_event(owner, reason, note, action="CleanUp", warning=warning))


async def _set_finalizers(context: ReconcileContext, *names: str, wanted: bool, replaced: Collection[str] = ()) -> bool:
    """Set or remove finalizers of an owner; return False if it was deleted meanwhile, and cannot get them.

    Finalizers of others are kept, and nothing is written where it is so already. Two versions of an operator that run
    at once may disagree about a finalizer, so these writes back off as those of objects do.

    Args:
        replaced: Finalizers that are removed in the same write.
    """
    owner = context.owned_by

    async def write(live: Manifest) -> bool:
        if live["metadata"].get("uid") != owner.uid:
            context.owner_removed()
            return False
        others = [name for name in finalizers_of(live) if name not in names and name not in replaced]
        finalizers = [*others, *names] if wanted else others
        if set(finalizers) == set(finalizers_of(live)):
            return True
        if wanted and is_ending(live):
            return False
        # While the owner is being deleted, the API server accepts no new finalizer, and a removal is final.
        if not is_ending(live) and _is_held_back(context, live, names, wanted=wanted):
            return True
        patched = await _patch_finalizers(context, live, finalizers)
        context.owner_changed(patched)
        _note_finalizers(context, patched, names, wanted=wanted)
        return True

    try:
        return await retry_on_conflict(lambda: context.cluster.get(owner.key), write, live=context.owner)
    except NotFoundError:
        context.owner_removed()
        return False


async def _patch_finalizers(context: ReconcileContext, live: Manifest, finalizers: list[str]) -> Manifest:
    patch = {"metadata": {"resourceVersion": live["metadata"]["resourceVersion"], "finalizers": finalizers}}
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager=context.owned_by.field_manager("finalizer"))
    # A patch, because an apply would create an owner again that was just deleted.
    return await context.cluster.patch(context.owned_by.key, patch, options)


def _is_held_back(context: ReconcileContext, live: Manifest, names: tuple[str, ...], *, wanted: bool) -> bool:
    """Return whether a removal waits, because another process sets the finalizers again and again.

    Raises:
        ReconcileError: If setting them waits: without them, nothing may be made for the owner.
    """
    owner, cache = context.owned_by, context.cluster.apply_cache
    last = cache.last_write(owner.key, _write_of(owner, names))
    if last is None or is_older(str(live["metadata"].get("resourceVersion") or ""), last):
        return False
    reverted = record_revert(last, _DIGESTS[wanted], context.elapsed)
    rest = wait(reverted, _DIGESTS[wanted], context.elapsed)
    if reverted is None:
        return False
    cache.note_write(owner.key, _write_of(owner, names), reverted)
    if rest is None:
        return False
    undone, again = ("removed", "set") if wanted else ("set", "removed")
    # Without the time, which would make it another message, and so another value of the condition, in each reconcile.
    problem = (
        f"finalizer {' and '.join(names)} is {undone} again and again, {_other_writer(live, owner, names)}: "
        f"before it is {again} again, the operator waits"
    )
    if wanted:
        raise ReconcileError(owner.operator, problem)
    context.hold_back(FINALIZER_EVENT, "" if reverted is last else problem, rest)
    return True


def _note_finalizers(context: ReconcileContext, patched: Manifest, names: tuple[str, ...], *, wanted: bool) -> None:
    owner, cache = context.owned_by, context.cluster.apply_cache
    last, version = cache.last_write(owner.key, _write_of(owner, names)), str(patched["metadata"]["resourceVersion"])
    write = written(last, _DIGESTS[wanted], context.elapsed, version)
    cache.note_write(owner.key, _write_of(owner, names), write)


def _write_of(owner: Owner, names: tuple[str, ...]) -> str:
    return f"{owner.field_manager('finalizer')}#{' '.join(names)}"


def _other_writer(live: Manifest, owner: Owner, names: tuple[str, ...]) -> str:
    ours = owner.field_manager("finalizer")
    for entry in ManagedFields.of(live).entries:
        listed = get_field(entry.fields, ("f:metadata", "f:finalizers")) or {}
        if entry.manager.name != ours and any(f'v:"{name}"' in listed for name in names):
            return f'by "{entry.manager.name}"'
    # What is removed has no owner any more, and all processes of an operator write under one name.
    return f'by another process of the operator "{owner.operator}", or by a client that changes finalizers'


async def finalize(
    context: ReconcileContext, *components: Component, finalizer: Finalizer | None = None
) -> FinalizationResult | None:
    """Set or remove the finalizer of an owner; call it first in a reconcile.

    An owner gets a finalizer if it has an `on_delete`, or if it is namespaced and one of its components applies
    cluster-scoped objects. Once the owner is being deleted, `on_delete` is called, these objects are deleted, and then
    the finalizer is removed.

    The objects are found by kind, of every cluster-scoped kind that the components register, and by our field manager.
    Unowned objects are kept.

    All components are known from then on in this reconcile: an object that none of them manages may be deleted by the
    one that registers it with `delete_when`, whichever component has applied it.

    Args:
        context: The reconcile of the owner, from `reconciling`.
        components: All components of the owner.
        finalizer: The finalizer; by default one without `on_delete`.

    Returns:
        What the owner waits for if it is being deleted; then there is nothing to reconcile. None otherwise.

    Raises:
        ReconcileError: If an object cannot be deleted.
        ApiError: If the finalizer cannot be set or removed.
        Exception: The error of `on_delete`.
    """

    async def found() -> tuple[Component, ...]:
        return components

    ours = finalizer or Finalizer()
    return await ours.run(context, found) if await ours.begin(context) else FinalizationResult()
