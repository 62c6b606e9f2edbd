"""Setting and removing finalizers of an owner, with optimistic locking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ocf.cluster import PatchOptions, PatchType
from ocf.component.deletion import finalizers_of, is_ending
from ocf.errors import ConflictError, NotFoundError

if TYPE_CHECKING:
    from ocf.component.model.context import ReconcileContext
    from ocf.objects import Manifest

__all__ = ["set_finalizers"]

# The patch names the version that was read, so it conflicts whenever another writer changed the owner meanwhile.
_TRIES: Final = 5


async def set_finalizers(context: ReconcileContext, *names: str, wanted: bool) -> bool:
    """Set or remove finalizers of an owner; others are kept, and nothing is written where it is so already.

    Args:
        context: The reconcile of the owner; it learns the new version of the owner.
        names: Names of the finalizers.
        wanted: Whether the owner is to have them.

    Returns:
        Whether the owner has or lacks them now, as wanted; False if it was deleted meanwhile, and cannot get them.

    Raises:
        ApiError: If the owner cannot be written.
    """
    live, owner = context.owner, context.owned_by
    try:
        for tries_left in reversed(range(_TRIES)):
            if live["metadata"].get("uid") != owner.uid:
                break
            others = [name for name in finalizers_of(live) if name not in names]
            finalizers = [*others, *names] if wanted else others
            if set(finalizers) == set(finalizers_of(live)):
                return True
            if wanted and is_ending(live):
                return False
            try:
                context.owner_changed(await _patch(context, live, finalizers))
            except ConflictError:
                if not tries_left:
                    raise
                live = await context.cluster.get(owner.key)
            else:
                return True
    except NotFoundError:
        pass
    context.owner_removed()
    return False


async def _patch(context: ReconcileContext, live: Manifest, finalizers: list[str]) -> Manifest:
    patch = {"metadata": {"resourceVersion": live["metadata"]["resourceVersion"], "finalizers": finalizers}}
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager=context.owned_by.field_manager("finalizer"))
    # A patch, because an apply would create an owner again that was just deleted.
    return await context.cluster.patch(context.owned_by.key, patch, options)
