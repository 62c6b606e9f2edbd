"""The operator's pass: what is called for every event of a Shop.

`components` is a plain function of the owner, without a cluster: tests, goldens and `ocf preview` call it, too.
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
    """Describe a shop.

    Args:
        shop: The owner.

    Returns:
        Its components; one that waits for another stands behind it.
    """
    return database(shop), application(shop)


async def reconcile(
    owner: Manifest, cluster: Cluster, *, clock: Clock | None = None, recorder: Recorder | None = None
) -> Sequence[Result]:
    """Make one pass over a shop.

    Args:
        owner: The shop as read from the cluster.
        cluster: Where the objects live.
        clock: Tells the instant of the pass.
        recorder: Is told what the pass does.

    Returns:
        What was done to each component; none if the shop is being deleted. Come back after the shortest
        `requeue_after`.
    """
    parts = components(Shop.model_validate(owner))
    async with reconciling(owner, cluster, clock=clock, recorder=recorder) as context:
        # Nothing of a shop needs a finalizer so far. A shop that is being deleted is left to the garbage collector:
        # what it collects must not be made anew.
        if await finalize(context, *parts) is not None:
            return ()
        try:
            return await reconcile_all(context, *parts)
        finally:
            context.aggregate(CONDITION, *parts)
