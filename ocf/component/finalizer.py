"""Finalizer for cluster-scoped objects of a namespaced owner, which the garbage collector does not delete.

A cluster-scoped object cannot refer to a namespaced owner. So a finalizer holds the owner until such objects are
deleted. An owner whose components have no such objects gets no finalizer, and its namespace can be deleted without an
operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from ocf.cluster import PatchOptions, PatchType
from ocf.errors import ConflictError, NotFoundError
from ocf.objects import PREFIX, Manifest, ObjectKey, get_field

if TYPE_CHECKING:
    from ocf.component.component import Component
    from ocf.component.model.context import ReconcileContext

__all__ = ["FINALIZER", "FinalizationResult", "finalize"]

FINALIZER: Final = f"{PREFIX}/cleanup"
"""Finalizer that holds an owner until objects that the garbage collector does not delete are deleted."""

# The patch names the version that was read, so it conflicts whenever another writer changed the owner meanwhile.
_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalizationResult:
    """State of an owner that is being deleted.

    Args:
        remaining: Objects that are being deleted, and hold the owner.
        requeue_after: Time until the next reconcile; None once the finalizer is removed.
    """

    remaining: tuple[ObjectKey, ...] = ()
    requeue_after: timedelta | None = None


async def finalize(context: ReconcileContext, *components: Component) -> FinalizationResult | None:
    """Set or remove the finalizer of an owner; call it first in a reconcile.

    A namespaced owner gets a finalizer if one of its components applies cluster-scoped objects. Once the owner is being
    deleted, these objects are deleted, and then the finalizer is removed.

    The objects are found by kind, of every cluster-scoped kind that the components register, and by our field manager.
    Unowned objects are kept.

    All components are known from then on in this reconcile: an object that none of them manages may be deleted by the
    one that registers it with `delete_when`, whichever component has applied it.

    Args:
        context: The reconcile of the owner, from `reconciling`.
        components: All components of the owner.

    Returns:
        What the owner waits for if it is being deleted; then there is nothing to reconcile. None otherwise.

    Raises:
        ReconcileError: If an object cannot be deleted.
        ApiError: If the finalizer cannot be set or removed.
    """
    for component in components:
        component.announce(context)
    context.claims.is_complete = True
    needed = any(component.objects_without_gc(context) for component in components)
    if not context.is_ending:
        # An owner that was deleted meanwhile must not get objects that would never be deleted.
        return None if await _set_finalizer(context, wanted=needed) else FinalizationResult()
    if not _is_held(context.owner):
        return FinalizationResult()
    remaining = tuple([key for component in components for key in await component.delete_objects_without_gc(context)])
    if remaining:
        return FinalizationResult(
            remaining=remaining, requeue_after=min(component.poll_interval for component in components)
        )
    await _set_finalizer(context, wanted=False)
    return FinalizationResult()


def _is_held(owner: Manifest) -> bool:
    return FINALIZER in (get_field(owner, ("metadata", "finalizers")) or [])


async def _set_finalizer(context: ReconcileContext, *, wanted: bool) -> bool:
    """Set or remove our finalizer; other finalizers are kept.

    Returns:
        Whether the owner still exists and is not being deleted.
    """
    live, owner = context.owner, context.owned_by
    try:
        for tries_left in reversed(range(_TRIES)):
            if live["metadata"].get("uid") != owner.uid:
                return False
            if get_field(live, ("metadata", "deletionTimestamp")) is not None and wanted:
                return False
            if _is_held(live) is wanted:
                return True
            others = [name for name in get_field(live, ("metadata", "finalizers")) or [] if name != FINALIZER]
            finalizers = [*others, FINALIZER] if wanted else others
            metadata = {"resourceVersion": live["metadata"]["resourceVersion"], "finalizers": finalizers}
            manager = owner.field_manager("finalizer")
            try:
                # A patch, because an apply would create an owner again that was just deleted.
                answer = await context.cluster.patch(
                    owner.key, {"metadata": metadata}, PatchOptions(patch_type=PatchType.MERGE, field_manager=manager)
                )
            except ConflictError:
                if not tries_left:
                    raise
                live = await context.cluster.get(owner.key)
            else:
                context.owner_changed(answer)
                return True
    except NotFoundError:
        pass
    return False
