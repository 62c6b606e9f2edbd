"""Two leaders at once: one of them has lost its lease and does not know it."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import Verb
from ocf.errors import OcfError
from ocf.objects import copy_json
from ocf.testing import InterceptingCluster, assert_quiet
from ocf.testing.simulated_process import SimulatedCluster, SimulatedProcess
from ocf.testing.snapshots import differences

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ocf.cluster import Cluster, Request
    from ocf.objects import Manifest
    from tests.faults.conftest import Operator

RUNS: Final = 50


class Apart(InterceptingCluster):
    """The cluster as one of two leaders sees it: slowly, and the old one with the owner as it was.

    Args:
        cluster: The cluster.
        chance: How slowly.
        owner: The owner as it was, for as long as it is seen so.
    """

    def __init__(self, cluster: Cluster, chance: random.Random, owner: Manifest | None = None) -> None:
        super().__init__(cluster)
        self._chance = chance
        self._owner = owner

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        for _ in range(self._chance.randrange(4)):
            await asyncio.sleep(0)
        if self._owner is not None and (request.verb, request.kind) == (Verb.GET, self._owner["kind"]):
            return copy_json(self._owner)
        return await send()


async def lead(operator: Operator, cluster: Cluster, passes: int) -> None:
    for _ in range(passes):
        try:
            await operator.reconcile(cluster)
        except OcfError:
            await asyncio.sleep(0)


@pytest.mark.promise("two-leaders", runs="50 random interleavings of an old leader and a new one")
async def test_two_leaders_end_where_one_would(operator: Operator) -> None:
    """Both write, the old one what was wanted before; once it is gone, nothing is left of it, nothing is doubled."""
    twin = SimulatedCluster(await operator.new_cluster())
    await operator.settle(twin.cluster, SimulatedProcess(twin))
    await operator.change(twin.cluster, spec={"version": "2.0.0"})
    await operator.settle(twin.cluster, SimulatedProcess(twin))
    wanted = await without_counts(operator, twin.cluster)
    met = 0
    for run in range(RUNS):
        chance = random.Random(run)  # noqa: S311 (a schedule, no secret; each run another one)
        world = SimulatedCluster(await operator.new_cluster())
        stale = await world.cluster.get(operator.owner)
        await operator.change(world.cluster, spec={"version": "2.0.0"})
        old = Apart(SimulatedProcess(world), chance, stale)
        new = SimulatedProcess(world)
        await asyncio.gather(lead(operator, old, 2), lead(operator, Apart(new, chance), 2))
        managers = [write.kind for write in world.writes]
        met += managers.count("Deployment") > 1
        await operator.settle(world.cluster, new)

        found = await without_counts(operator, world.cluster)
        assert not differences(wanted, found, before_name="one leader", after_name=f"two leaders, run {run}")
        assert (world.creates, world.deletes) == (twin.creates, twin.deletes)
        await assert_quiet(world.cluster, operator.reconcile, resyncs=2)
    assert met > RUNS // 2


async def without_counts(operator: Operator, cluster: Cluster) -> dict[str, Manifest]:
    """Return everything but how often it was changed."""
    found = await operator.state(cluster)
    for manifest in found.values():
        manifest["metadata"].pop("generation", None)
        manifest.get("status", {}).pop("observedGeneration", None)
    return found
