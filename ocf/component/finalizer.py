"""What the garbage collector cannot clean up after an owner, because it must not name it as its owner.

An object without a namespace cannot refer to an owner in one. So the owner is held by a finalizer until such objects
are deleted; an owner whose components make none of them gets no finalizer, and its namespace can be deleted while no
operator runs.
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
"""The finalizer that holds an owner while objects of its components are left that nobody else would delete."""

# Letting go is bound to the version that was read; others may be faster than we are this often.
_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalizationResult:
    """An owner that is being deleted.

    Args:
        remaining: Objects that are on their way out, and hold it.
        requeue_after: When to look again; None when the owner is let go of.
    """

    remaining: tuple[ObjectKey, ...] = ()
    requeue_after: timedelta | None = None


async def finalize(context: ReconcileContext, *components: Component) -> FinalizationResult | None:
    """See to it that nothing of an owner's components outlives it; call it first in a pass.

    While the owner lives it is given a finalizer if one of the components makes an object without a namespace, and
    the owner lives in one. Once it is being deleted, such objects are deleted and the finalizer is taken off.

    Objects are found by their kind, of every such kind that the components register, and by our field manager; what
    is unowned stays.

    Args:
        context: The pass, from `reconciling`.
        components: All components of the owner.

    Returns:
        What is left to wait for where the owner is being deleted, and so nothing is to be reconciled; None where it
        lives.

    Raises:
        ReconcileError: If an object cannot be deleted.
        ApiError: If the finalizer cannot be set or taken off.
    """
    needed = any(component.objects_without_gc(context) for component in components)
    if not context.is_ending:
        # An owner that went meanwhile must not get objects that nobody would delete.
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
    """Set the finalizer or take it off; those of others stay.

    Returns:
        Whether the owner is still there and stays.
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
                # A patch, not an apply: an apply would bring back an owner that has just gone.
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
