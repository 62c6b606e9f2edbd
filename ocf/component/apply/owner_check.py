"""Whether an owner still exists, before something is made for it that nothing would delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ocf.cluster import ListOptions
from ocf.component.model.ownership import is_ending
from ocf.errors import ForbiddenError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ocf.component.context import ReconcileContext
    from ocf.component.model.ownership import Owner
    from ocf.objects import Manifest

__all__ = ["owner_exists", "owner_lives"]


async def owner_exists(context: ReconcileContext) -> bool:
    """Return whether the owner exists; with a cache, this sends no request."""
    try:
        return _is_owner(await context.cluster.get(context.owned_by.key), context.owned_by)
    except NotFoundError:
        return False


async def owner_lives(context: ReconcileContext) -> bool:
    """Return whether the owner exists and is not being deleted, as the API server and not a cache has it.

    The garbage collector orphans an object by removing its owner reference, and the watch of the object may be ahead of
    that of the owner. With the reference put back, the object would be deleted. Controllers of Kubernetes ask before
    they adopt, too. The end of the deletion needs another reconcile, which the watch of the owner triggers.
    """
    key = context.owned_by.key
    # No cache answers a request for a page.
    page = ListOptions(namespace=key.namespace, field_selector=f"metadata.name={key.name}", limit=1)
    try:
        found: Sequence[Manifest] = (await context.unobserved.list(key.api_version, key.kind, page)).items
    except ForbiddenError:
        # A process that may not list the owners has no cache of them, so this is a read from the API server.
        found = await _by_name(context)
    return any(_is_owner(one, context.owned_by) and not is_ending(one) for one in found)


async def _by_name(context: ReconcileContext) -> Sequence[Manifest]:
    try:
        return [await context.unobserved.get(context.owned_by.key)]
    except NotFoundError:
        return []


def _is_owner(found: Manifest, owner: Owner) -> bool:
    return bool(found["metadata"].get("uid") == owner.uid)
