"""Whether an owner still exists, before something is made for it that nothing would delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ocf.cluster import ListOptions
from ocf.component.apply.apply_result import failed
from ocf.component.model.ownership import is_ending
from ocf.errors import ForbiddenError, NotFoundError, OcfError, ReconcileError
from ocf.objects import ObjectKey

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ocf.cluster import Cluster
    from ocf.component.context import ReconcileContext
    from ocf.component.model.ownership import Owner
    from ocf.objects import Manifest

__all__ = ["OwnerCheck", "latest_object", "latest_owner", "owner_lives"]


class OwnerCheck:
    """Checks the owner for one resource of a component, in one reconcile."""

    def __init__(self, component: str, identity: str, context: ReconcileContext) -> None:
        self._component = component
        self._identity = identity
        self._context = context

    def require(self) -> None:
        """Raise an error if the owner is gone: an apply would create what nothing would delete."""
        if self._context.is_gone:
            problem = f"the owner {self._context.owned_by.key} was deleted during the reconcile"
            raise ReconcileError(self._component, problem, resource=self._identity)

    async def require_existing(self, step: str) -> None:
        """Raise an error if the owner is gone."""
        await self._require(step, _exists)

    async def require_living(self, step: str) -> None:
        """Raise an error if the owner is gone or being deleted, as the API server and not a cache has it."""
        await self._require(step, owner_lives)

    async def _require(self, step: str, check: Callable[[ReconcileContext], Awaitable[bool]]) -> None:
        context = self._context
        try:
            exists = await check(context)
        except OcfError as error:
            what = f"check the owner {context.owned_by.key} before {step}"
            raise failed(what, error, component=self._component, identity=self._identity) from error
        if not exists:
            context.owner_removed()
        self.require()


async def _exists(context: ReconcileContext) -> bool:
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
    found = await latest_owner(context)
    return found is not None and not is_ending(found)


async def latest_owner(context: ReconcileContext) -> Manifest | None:
    """Return the owner as the API server and not a cache has it; None if it does not exist."""
    found = await latest_object(context.unobserved, context.owned_by.key)
    return found if found is not None and _is_owner(found, context.owned_by) else None


async def latest_object(cluster: Cluster, key: ObjectKey) -> Manifest | None:
    """Return an object as the API server and not a cache has it; None if it does not exist."""
    # No cache answers a request for a page.
    page = ListOptions(namespace=key.namespace, field_selector=f"metadata.name={key.name}", limit=1)
    try:
        found: Sequence[Manifest] = (await cluster.list(key.api_version, key.kind, page)).items
    except ForbiddenError:
        # A process that may not list a kind has no cache of it, so this is a read from the API server.
        return await _by_name(cluster, key)
    return next((one for one in found if ObjectKey.of(one) == key), None)


async def _by_name(cluster: Cluster, key: ObjectKey) -> Manifest | None:
    try:
        return await cluster.get(key)
    except NotFoundError:
        return None


def _is_owner(found: Manifest, owner: Owner) -> bool:
    return bool(found["metadata"].get("uid") == owner.uid)
