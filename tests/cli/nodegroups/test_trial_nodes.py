"""The cloud of `ocf nodegroups try`: when nodes join, are ready and go."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from ocf.cli.nodegroups.trial_nodes import TrialCloud
from ocf.cluster import Cluster
from ocf.controllers.nodegroup.type_file import read_types
from ocf.nodegroups import MachineRequest
from ocf.objects import Manifest
from ocf.testing import LoopClock, run_in_virtual_time
from ocf_server import EmbeddedCluster
from tests.cli.nodegroups.trials import TYPES

BOOT = timedelta(seconds=45)


class Counting(TrialCloud):
    """A cloud that counts how often it looks at its machines."""

    looks = 0

    async def register_nodes(self, cluster: Cluster) -> None:
        """Count, and register them."""
        self.looks += 1
        await super().register_nodes(cluster)


def state(node: Manifest) -> tuple[str, list[str]]:
    """Return whether a node is ready, and its taints."""
    (ready,) = (each["status"] for each in node["status"]["conditions"] if each["type"] == "Ready")
    return ready, [f"{each['key']}:{each['effect']}" for each in node["spec"].get("taints") or ()]


async def course(*, deleted: bool) -> tuple[list[list[tuple[str, list[str]]]], int]:
    """Return the states of the nodes before, at and after the boot of a machine and a day later, and the looks."""
    cluster, clock = EmbeddedCluster(now=LoopClock().now), LoopClock()
    cloud, found = Counting(read_types(TYPES), clock, boot_time=BOOT), []
    task = asyncio.create_task(cloud.run(cluster))
    await asyncio.sleep(0)
    taints = ({"key": "dedicated", "effect": "NoSchedule"},)
    machine = await cloud.create(MachineRequest("pool-1", "pool", "small", "fra", taints=taints))
    for seconds in (44.5, 1, 1, 86400):
        await asyncio.sleep(seconds)
        found.append([state(each) for each in (await cluster.list("v1", "Node")).items])
        if deleted and len(found) == 3:
            await cloud.delete(machine)
    task.cancel()
    return found, cloud.looks


def test_a_node_joins_not_ready_and_is_ready_a_moment_later() -> None:
    found, _ = run_in_virtual_time(course(deleted=False))
    own, not_ready = "dedicated:NoSchedule", "node.kubernetes.io/not-ready:NoSchedule"
    assert found == [[], [("False", [own, not_ready])], [("True", [own])], [("True", [own])]]


def test_a_node_goes_with_its_machine() -> None:
    found, _ = run_in_virtual_time(course(deleted=True))
    assert (len(found[2]), found[3]) == (1, [])


def test_a_day_without_changes_costs_nothing() -> None:
    _, looks = run_in_virtual_time(course(deleted=False))
    assert looks <= 5
