"""The simulated provider: boot times, failures, quota, stock, interruptions and cost on an injected clock."""

from dataclasses import replace
from datetime import timedelta

import pytest

from ocf.cluster import Cluster
from ocf.controllers.nodegroup.providers.simulated import SimulatedProvider
from ocf.errors import CapacityExhaustedError, ProviderRefusedError
from ocf.nodegroups import InstanceType, MachineRequest, MachineState, Offering
from ocf.objects import Manifest, Quantity
from ocf.testing import VirtualClock
from ocf_server import EmbeddedCluster

SMALL = InstanceType(
    "small",
    {"cpu": Quantity.parse(2), "memory": Quantity.parse("4Gi"), "pods": Quantity.parse(110)},
    offerings=(Offering("fra", 0.02), Offering("ams", 0.03)),
)
REQUEST = MachineRequest("pool-1", "pool", "small", "fra", labels={"pool": "a"}, taints=({"key": "a", "effect": "b"},))


async def test_a_machine_that_fails_to_boot_is_failed_after_its_boot_time() -> None:
    clock = VirtualClock()
    cloud = SimulatedProvider([SMALL], clock, boot_time=timedelta(minutes=1), fails=lambda _: True)
    assert (await cloud.create(REQUEST)).state is MachineState.PENDING
    clock.advance(timedelta(minutes=1))
    machine = await cloud.get(REQUEST)
    assert (machine.state, machine.problem) == (MachineState.FAILED, "the machine did not boot")


async def test_a_quota_counts_all_machines() -> None:
    cloud = SimulatedProvider([SMALL], VirtualClock(), quota=1)
    machine = await cloud.create(REQUEST)
    with pytest.raises(ProviderRefusedError, match="the quota of 1 machines is used up"):
        await cloud.create(replace(REQUEST, name="pool-2"))
    await cloud.delete(machine)
    await cloud.create(replace(REQUEST, name="pool-2"))


async def test_a_type_that_is_sold_out_in_one_zone_is_available_in_another() -> None:
    cloud = SimulatedProvider([SMALL], VirtualClock())
    cloud.set_available("small", available=False, zone="fra")
    with pytest.raises(CapacityExhaustedError, match="no small is available in zone fra"):
        await cloud.create(REQUEST)
    assert (await cloud.create(replace(REQUEST, zone=""))).zone == "ams"


async def test_cost_is_counted_until_the_deletion() -> None:
    clock = VirtualClock()
    cloud = SimulatedProvider([SMALL], clock)
    machine = await cloud.create(REQUEST)
    clock.advance(timedelta(hours=10))
    assert cloud.cost() == pytest.approx(0.2)
    await cloud.delete(machine)
    clock.advance(timedelta(hours=10))
    assert cloud.cost() == pytest.approx(0.2)


async def test_running_machines_become_ready_nodes_and_gone_ones_disappear() -> None:
    clock = VirtualClock()
    cluster = EmbeddedCluster(now=clock.now)
    by_hand = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "by-hand"}}
    await cluster.create(by_hand, field_manager="user")
    cloud = SimulatedProvider([SMALL], clock, boot_time=timedelta(minutes=1))
    await cloud.create(REQUEST)
    await cloud.register_nodes(cluster)
    assert await _names(cluster) == ["by-hand"]
    clock.advance(timedelta(minutes=1))
    for _ in range(2):
        await cloud.register_nodes(cluster)
    node = next(each for each in await _nodes(cluster) if each["metadata"]["name"] == "pool-1")
    assert node["metadata"]["labels"]["pool"] == "a"
    assert node["spec"] == {"providerID": "simulated://pool-1", "taints": [{"key": "a", "effect": "b"}]}
    assert node["status"]["allocatable"] == {"cpu": "2", "memory": "4Gi", "pods": "110"}
    assert [(each["type"], each["status"]) for each in node["status"]["conditions"]] == [("Ready", "True")]
    cloud.interrupt("pool-1")
    await cloud.register_nodes(cluster)
    assert await _names(cluster) == ["by-hand"]


async def _nodes(cluster: Cluster) -> list[Manifest]:
    return list((await cluster.list("v1", "Node")).items)


async def _names(cluster: Cluster) -> list[str]:
    return [node["metadata"]["name"] for node in await _nodes(cluster)]
