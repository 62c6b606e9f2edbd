"""Nodes of the kwok provider."""

from ocf.controllers.nodegroup.providers.kwok import KwokProvider
from ocf.nodegroups import InstanceType, MachineRequest, MachineState, Offering
from ocf.objects import ObjectKey, Quantity
from ocf.objects.conditions import is_condition_true
from ocf_server import EmbeddedCluster

SMALL = InstanceType("small", {"cpu": Quantity.parse(2)}, offerings=(Offering("fra", 0.02),))


async def test_a_node_is_reported_as_not_ready_until_kwok_makes_it_ready() -> None:
    """Otherwise pods are bound to a node that may never boot."""
    cluster = EmbeddedCluster()
    machine = await KwokProvider(cluster, [SMALL]).create(MachineRequest("pool-1", "pool", "small", "fra"))
    node = await cluster.get(ObjectKey("v1", "Node", "pool-1"))
    (ready,) = node["status"]["conditions"]
    assert (ready["type"], is_condition_true([ready], "Ready")) == ("Ready", False)
    assert machine.state is MachineState.PENDING
