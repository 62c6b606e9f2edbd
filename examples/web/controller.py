"""The reconcile function of the operator, called for every event of a Shop.

`components` is a plain function of the owner, without a cluster: tests, golden files and `ocf preview` call it as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from examples.web.application import application
from examples.web.database import database
from examples.web.shop import Shop
from ocf.component import Component, Result, finalize, reconcile_all, reconciling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ocf.cluster import Cluster
    from ocf.concepts import Clock, Recorder
    from ocf.objects import Manifest

__all__ = ["CONDITION", "components", "reconcile"]

CONDITION: Final = "Ready"


def components(shop: Shop) -> tuple[Component, ...]:
    """Return the components of a shop.

    Args:
        shop: The owner.

    Returns:
        The components; each one follows the component that it depends on.
    """
    return database(shop), application(shop)


async def reconcile(
    owner: Manifest, cluster: Cluster, *, clock: Clock | None = None, recorder: Recorder | None = None
) -> Sequence[Result]:
    """Reconcile a shop.

    Args:
        owner: The shop as read from the cluster.
        cluster: The cluster that the objects are in.
        clock: The clock of the reconcile.
        recorder: Receives the events and attempts of the reconcile.

    Returns:
        The result of each component; empty if the shop is being deleted. The caller reconciles again after the
        shortest `requeue_after`.
    """
    parts = components(Shop.model_validate(owner))
    async with reconciling(owner, cluster, clock=clock, recorder=recorder) as context:
        # No object of a shop needs a finalizer so far. A shop that is being deleted is left to the garbage collector,
        # and the objects that it deletes must not be created again.
        if await finalize(context, *parts) is not None:
            return ()
        try:
            return await reconcile_all(context, *parts)
        finally:
            context.aggregate(CONDITION, *parts)
