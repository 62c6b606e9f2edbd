"""Faults: a choice that is stored in the owner's status before it is carried out is made once, whatever fails.

The operator makes two objects with names that it would never choose again, as an external system returns an identity or
a scheduler a victim. Public reports: https://github.com/bluek8s/kubedirector/issues/207 (objects are made twice),
https://github.com/operator-framework/java-operator-sdk/issues/1906 (the next reconcile has an older status),
https://github.com/ai-dynamo/grove/pull/747 (a status write is left out because of a stale read).
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

import pytest

from ocf import component
from ocf.cluster import Verb
from ocf.cluster.cache import CachedCluster
from ocf.component import reconciling
from ocf.errors import OcfError
from ocf.objects import ObjectKey
from ocf.primitives import configmap
from ocf.testing import FaultyCluster, crash_at_each_write, faults
from ocf.testing.simulated_process import Disturbance, SimulatedCluster, SimulatedProcess
from ocf_server import CustomKind, EmbeddedCluster
from tests.faults.conftest import arrived
from tests.faults.test_stale_reads import Held

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.testing import VirtualClock

OWNER: Final = ObjectKey("example.com/v1", "Shop", "corner", "shop")
WANTED: Final = 2


class Chooser:
    """An operator that stores each choice, carries it out, and counts it; in this order."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.clusters: list[EmbeddedCluster] = []
        self._names = (f"choice-{number}" for number in count(1))

    async def new_cluster(self) -> EmbeddedCluster:
        kinds = [CustomKind("example.com", "v1", "Shop")]
        made = EmbeddedCluster(kinds=kinds, namespaces=["shop"], now=self.clock.now)
        shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "namespace": "shop"}}
        await made.create(shop, field_manager="user")
        self.clusters.append(made)
        return made

    async def reconcile(self, cluster: Cluster) -> None:
        async with reconciling(await cluster.get(OWNER), cluster, clock=self.clock) as context:
            status = context.status
            if status.get("made", 0) == WANTED:
                return
            if "chosen" not in status:
                status["chosen"] = next(self._names)
                await context.write_status()
            made = configmap.Builder({"metadata": {"name": status["chosen"]}})
            await component.Builder("web", owner=OWNER).with_resource(made).build().reconcile(context)
            status["made"] = status.get("made", 0) + 1
            del status["chosen"]
            # A count that was computed from a stale read is not stored either.
            await context.write_status()

    async def settle(self, through: Cluster) -> None:
        """Reconcile until nothing is left to choose; errors are retried."""
        for _ in range(20):
            try:
                await self.reconcile(through)
            except OcfError:
                continue
            await arrived()

    async def made(self, cluster: Cluster) -> int:
        assert (await cluster.get(OWNER))["status"]["made"] == WANTED
        assert "chosen" not in (await cluster.get(OWNER))["status"]
        return len((await cluster.list("v1", "ConfigMap")).items)


@pytest.fixture
def chooser(clock: VirtualClock) -> Chooser:
    return Chooser(clock)


@pytest.mark.promise("intent", runs="a crash, a rejection and a lost answer at every write of two choices")
async def test_a_choice_is_made_once_whichever_write_is_disturbed(chooser: Chooser) -> None:
    every = list(Disturbance)
    report = await crash_at_each_write(chooser.new_cluster, chooser.reconcile, disturbances=every)
    writes = ["update Shop", "apply ConfigMap", "update Shop"]
    assert [f"{write.verb} {write.kind}" for write in report.writes] == writes * WANTED
    assert len(chooser.clusters) == 1 + len(every) * len(report.writes)
    for cluster in chooser.clusters:
        assert await chooser.made(cluster) == WANTED


@pytest.mark.promise("intent", runs="each read of the owner, 1 to 4 versions old")
@pytest.mark.parametrize("versions", [1, 2, 3, 4])
async def test_a_stale_read_makes_no_second_choice(chooser: Chooser, versions: int) -> None:
    injected = 0
    for first in range(2, 7):
        cluster = await chooser.new_cluster()
        late = faults.stale(versions=versions, verbs=[Verb.GET], kind="Shop", first=first)
        faulty = FaultyCluster(SimulatedProcess(SimulatedCluster(cluster)), [late])
        await chooser.settle(faulty)
        assert await chooser.made(cluster) == WANTED
        injected += len(faulty.injected)
    assert injected


@pytest.mark.promise("intent", runs="watches that stop after 0, 1, 2 … 6 events")
@pytest.mark.parametrize("events", range(7))
async def test_a_cache_that_gets_no_events_has_the_stored_choice(chooser: Chooser, events: int) -> None:
    cluster = await chooser.new_cluster()
    held = Held(SimulatedProcess(SimulatedCluster(cluster)), events)
    async with CachedCluster(held) as cached:
        await chooser.settle(cached)
        assert await chooser.made(cluster) == WANTED
        held.release()
        await chooser.settle(cached)
    assert await chooser.made(cluster) == WANTED
