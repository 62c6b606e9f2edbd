"""Faults: two leaders at once; one has lost its lease and has not noticed it yet."""

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

RUNS: Final = 25


class Apart(InterceptingCluster):
    """The cluster as seen by one of two leaders: with random delays, and for the old leader with a stale owner.

    Args:
        cluster: The cluster.
        rng: Source of the random delays.
        owner: The stale owner; None to read the current one.
    """

    def __init__(self, cluster: Cluster, rng: random.Random, owner: Manifest | None = None) -> None:
        super().__init__(cluster)
        self._rng = rng
        self._owner = owner

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        for _ in range(self._rng.randrange(4)):
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


@pytest.mark.promise("two-leaders", runs="25 random interleavings of an old leader and a new one")
async def test_two_leaders_reach_the_same_state_as_one(operator: Operator) -> None:
    """The old leader writes the old desired state; after it stops, no trace of it is left and nothing is doubled."""
    twin = SimulatedCluster(await operator.new_cluster())
    await operator.settle(twin.cluster, SimulatedProcess(twin))
    await operator.change(twin.cluster, spec={"version": "2.0.0"})
    await operator.settle(twin.cluster, SimulatedProcess(twin))
    wanted = await without_counts(operator, twin.cluster)
    met = 0
    for run in range(RUNS):
        rng = random.Random(run)  # noqa: S311 (a deterministic schedule, not a secret)
        env = SimulatedCluster(await operator.new_cluster())
        stale = await env.cluster.get(operator.owner)
        await operator.change(env.cluster, spec={"version": "2.0.0"})
        old = Apart(SimulatedProcess(env), rng, stale)
        new = SimulatedProcess(env)
        await asyncio.gather(lead(operator, old, 2), lead(operator, Apart(new, rng), 2))
        managers = [write.kind for write in env.writes]
        met += managers.count("Deployment") > 1
        await operator.settle(env.cluster, new)

        found = await without_counts(operator, env.cluster)
        assert not differences(wanted, found, before_name="one leader", after_name=f"two leaders, run {run}")
        assert (env.creates, env.deletes) == (twin.creates, twin.deletes)
        await assert_quiet(env.cluster, operator.reconcile, resyncs=2)
    assert met > RUNS // 2


async def without_counts(operator: Operator, cluster: Cluster) -> dict[str, Manifest]:
    """Return the state without generations."""
    found = await operator.state(cluster)
    for manifest in found.values():
        manifest["metadata"].pop("generation", None)
        manifest.get("status", {}).pop("observedGeneration", None)
    return found
