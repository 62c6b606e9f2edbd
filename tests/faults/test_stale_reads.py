"""Faults: reads are stale by several versions, or because watch events have not arrived yet."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import Verb, WatchOptions
from ocf.cluster.cache import CachedCluster
from ocf.objects import copy_json
from ocf.testing import InterceptingCluster, assert_quiet
from ocf.testing.simulated_process import SimulatedCluster, SimulatedProcess
from ocf.testing.snapshots import differences

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from ocf.cluster import Cluster, Request, WatchEvent
    from ocf.objects import Manifest
    from tests.faults.conftest import Operator

# A change of the spec that applies two objects and deletes two others.
CHANGE: Final[Manifest] = {"version": "2.0.0", "mode": "fancy", "scaled": False, "protected": False}
PASSES: Final = 3


class Late(InterceptingCluster):
    """A cluster whose first reads of some objects return an old version.

    Args:
        cluster: The cluster.
        once: The old versions.
        times: Number of stale reads of each object.
    """

    def __init__(self, cluster: Cluster, once: Sequence[Manifest], times: int) -> None:
        super().__init__(cluster)
        self._once = {manifest["kind"]: manifest for manifest in once}
        self.left = dict.fromkeys(self._once, times)

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        if request.verb is Verb.GET and self.left.get(request.kind):
            self.left[request.kind] -= 1
            return copy_json(self._once[request.kind])
        return await send()


async def others(operator: Operator, cluster: Cluster, versions: int) -> None:
    """Write several versions of the Deployment, which will change, and one of the autoscaler, which will be deleted."""
    for key, count in ((operator.web, versions), (operator.scaler, 1)):
        for left in range(count, 0, -1):
            await operator.change(cluster, key, metadata={"annotations": {"example.com/seen": str(left)}})


@pytest.mark.promise("stale-read", runs="reads that are 1, 2, 3 … 50 versions old")
async def test_stale_reads_cause_no_additional_create_or_delete(operator: Operator) -> None:
    """All reads of the first reconciles after a change are stale; the final state is the same as with current reads."""
    begun = await operator.at_rest()
    twin = SimulatedCluster(operator.clone(begun))
    await others(operator, twin.cluster, 1)
    await operator.change(twin.cluster, spec=CHANGE)
    await operator.settle(twin.cluster, SimulatedProcess(twin))
    wanted = await ungenerated(operator, twin.cluster)
    for versions in range(1, 51):
        env = SimulatedCluster(operator.clone(begun))
        once = [await env.cluster.get(key) for key in (operator.web, operator.scaler)]
        await others(operator, env.cluster, versions)
        await operator.change(env.cluster, spec=CHANGE)
        late = Late(SimulatedProcess(env), once, PASSES)
        await operator.settle(env.cluster, late)

        assert late.left == {operator.web.kind: 0, operator.scaler.kind: 0}
        found = await ungenerated(operator, env.cluster)
        assert not differences(wanted, found, before_name="undisturbed", after_name=f"{versions} versions late")
        assert (env.creates, env.deletes) == (twin.creates, twin.deletes)
        await assert_quiet(env.cluster, operator.reconcile, resyncs=2)


async def ungenerated(operator: Operator, cluster: Cluster) -> dict[str, Manifest]:
    """Return the state without generations: until the late delete the autoscaler goes on scaling."""
    found = await operator.state(cluster)
    for manifest in found.values():
        manifest["metadata"].pop("generation", None)
        manifest.get("status", {}).pop("observedGeneration", None)
    return found


class Held(InterceptingCluster):
    """A cluster whose watches stop after a number of events, until they are released."""

    def __init__(self, cluster: Cluster, events: int) -> None:
        super().__init__(cluster)
        self._left = events
        self._released = asyncio.Event()
        self.held = 0

    def release(self) -> None:
        self._released.set()

    async def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        events = super().watch(api_version, kind, options)
        try:
            async for event in events:
                if self._left <= 0 and not self._released.is_set():
                    self.held += 1
                    await self._released.wait()
                self._left -= 1
                yield event
        finally:
            await events.aclose()


@pytest.mark.promise("own-writes", runs="watches that stop after 0, 1, 2 … 6 events")
@pytest.mark.parametrize("events", range(7))
async def test_own_writes_are_visible_before_their_watch_events_arrive(operator: Operator, events: int) -> None:
    """The operator goes on while its cache gets no events: it repeats no write, and the final state is the same."""
    twin, env = SimulatedCluster(await operator.new_cluster()), SimulatedCluster(await operator.new_cluster())
    await operator.settle(twin.cluster, SimulatedProcess(twin))
    held = Held(SimulatedProcess(env), events)
    async with CachedCluster(held) as cached:
        for _ in range(PASSES):
            await operator.reconcile(cached)
            for _ in range(30):
                await asyncio.sleep(0)
        assert sorted(write.kind for write in env.writes if write.kind != "Shop") == sorted(
            key.kind for key in operator.keys
        )
        held.release()
        await operator.settle(env.cluster, cached)
        for each, through in ((twin, SimulatedProcess(twin)), (env, cached)):
            await operator.change(each.cluster, spec=CHANGE)
            await operator.settle(each.cluster, through)

    assert held.held
    before, after = await operator.state(twin.cluster), await operator.state(env.cluster)
    assert not differences(before, after, before_name="undisturbed", after_name="held")
    assert (env.creates, env.deletes) == (twin.creates, twin.deletes)
