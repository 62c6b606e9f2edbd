"""The operator's pass: what is done for every event of a cache."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from examples.memcached.component import memcached
from examples.memcached.model import Memcached
from examples.memcached.reporting import observe, report
from ocf.component import Component, Result, reconciling

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ocf.cluster import Cluster
    from ocf.component import ReconcileContext
    from ocf.concepts import Clock, Recorder
    from ocf.objects import Manifest

__all__ = ["components", "reconcile"]


def components(cache: Memcached) -> tuple[Component, ...]:
    """Describe a cache: one component.

    Args:
        cache: The owner.
    """
    return (memcached(cache),)


async def reconcile(
    owner: Manifest, cluster: Cluster, *, clock: Clock | None = None, recorder: Recorder | None = None
) -> Result | None:
    """Make one pass over a cache.

    Args:
        owner: The cache as read from the cluster.
        cluster: Where the objects live.
        clock: Tells the instant of the pass.
        recorder: Is told what the pass does.

    Returns:
        What was done; None if the cache is being deleted. Come back after its `requeue_after`.
    """
    cache = Memcached.model_validate(owner)
    async with reconciling(owner, cluster, clock=clock, recorder=recorder) as context, reported(context, cache):
        (only,) = components(cache)
        return None if context.is_ending else await only.reconcile(context)


@asynccontextmanager
async def reported(context: ReconcileContext, cache: Memcached) -> AsyncIterator[None]:
    """Report how the cache is at the end of the block, whether or not that failed."""
    try:
        yield
    except Exception as error:
        report(context, cache, await observe(cache, context.cluster, error))
        raise
    if not context.is_ending:
        report(context, cache, await observe(cache, context.cluster))
