"""Objects that the clean-up of an owner needs, such as a Secret with credentials, and the finalizer that holds them.

Without it, the garbage collector deletes them beside the owner if the owner is deleted in the foreground, and the
namespace controller in whatever order it comes to them.

An annotation of the owner records them, before the finalizer is set. So they are released although the component does
not register them any more, and no object gets a finalizer that no reconcile would remove.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from ocf.cluster import PatchOptions, PatchType
from ocf.cluster.retry import retry_on_conflict
from ocf.component.model.holds import hold_finalizer, record_annotation
from ocf.component.model.ownership import finalizers_of, is_ending
from ocf.errors import InvalidError, NotFoundError
from ocf.objects import Manifest, ObjectKey

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.component.context import ReconcileContext

__all__ = ["is_owner_ending", "release", "release_object", "update"]


async def update(context: ReconcileContext, wanted: frozenset[ObjectKey]) -> None:
    """Record which objects are held for an owner from now on, and release the others."""
    named = {key.unversioned for key in wanted}
    dropped = frozenset(key for key in context.held if key.unversioned not in named)
    if not wanted <= context.held:
        await _record(context, wanted | dropped)
    if context.is_gone:
        return
    if dropped:
        await release(context, dropped)
        await _record(context, wanted)
    context.held = wanted


async def is_owner_ending(context: ReconcileContext) -> bool:
    """Return whether the owner is being deleted or gone, which its cached state may not say yet.

    Each kind has a watch of its own, so a deletion in the foreground may be seen at the objects before it is seen at
    their owner. The API server is asked by a patch that changes nothing.
    """
    live = await _patch_owner(context, {}, dry_run=True)
    return live is None or is_ending(live)


async def release(context: ReconcileContext, keys: Collection[ObjectKey]) -> None:
    """Remove the finalizer from objects, unless another owner controls them now."""
    for key in sorted(keys):
        await release_object(context.cluster, key, context.owned_by.operator, context.owned_by.foreign_controller)


async def release_object(cluster: Cluster, key: ObjectKey, operator: str, keep: Callable[[Manifest], object]) -> None:
    """Remove the finalizer from an object, unless it is gone or has to be kept."""
    name = hold_finalizer(operator)
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager=f"{operator}/release")

    async def write(live: Manifest) -> None:
        finalizers = finalizers_of(live)
        if name not in finalizers or keep(live):
            return
        # Without the version, a patch would also remove the finalizers that others have set meanwhile.
        metadata = {
            "resourceVersion": live["metadata"]["resourceVersion"],
            "finalizers": [each for each in finalizers if each != name],
        }
        await cluster.patch(key, {"metadata": metadata}, options)

    with suppress(NotFoundError):
        await retry_on_conflict(lambda: cluster.get(key), write)


async def _record(context: ReconcileContext, keys: Collection[ObjectKey]) -> None:
    """Store the names of the held objects in the owner; without any, the annotation is removed."""
    value = json.dumps(sorted(keys)) if keys else None
    # The annotation is ours alone, so the version does not matter.
    live = await _patch_owner(context, {"annotations": {record_annotation(context.owned_by.operator): value}})
    if live is not None:
        context.owner_changed(live)


async def _patch_owner(context: ReconcileContext, metadata: Manifest, *, dry_run: bool = False) -> Manifest | None:
    """Patch the metadata of the owner; None if it does not exist any more, or another one has its name now."""
    owner = context.owned_by
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager=owner.field_manager("finalizer"), dry_run=dry_run)
    try:
        # The API server rejects another uid than that of the object.
        return await context.cluster.patch(owner.key, {"metadata": {"uid": owner.uid, **metadata}}, options)
    except NotFoundError:
        pass
    except InvalidError as error:
        if not any(cause.field == "metadata.uid" for cause in error.causes):
            raise
    context.owner_removed()
    return None
