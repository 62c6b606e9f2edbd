"""Nodes of a real control plane that are not as their type promises, which the real scheduler finds out."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

import pytest

from ocf.cluster import Cluster, PatchOptions, PatchType, Subresource
from ocf.controllers.nodegroup.providers.kwok import KwokProvider
from ocf.nodegroups import Machine, MachineRequest
from ocf.objects import Manifest, ObjectKey
from tests.controllers.nodegroup.whole_cluster.environment import NODE_GROUP_USER, TYPES, Environment
from tests.controllers.nodegroup.whole_cluster.history import API
from tests.controllers.nodegroup.whole_cluster.in_process import controller

SMALLER: Final[Manifest] = {"status": {"allocatable": {"cpu": "1800m"}}}
TAINT: Final[Manifest] = {
    "spec": {"taints": [{"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoSchedule"}]}
}


class ChangedNodes(KwokProvider):
    """Creates Nodes that differ from their type."""

    def __init__(self, where: Cluster, admin: Cluster, change: Manifest) -> None:
        super().__init__(where, TYPES)
        self._admin = admin
        self._change = change

    async def create(self, request: MachineRequest) -> Machine:
        """Create a Node, and change it before kwok makes it ready."""
        machine = await super().create(request)
        subresource = Subresource.STATUS if "status" in self._change else None
        options = PatchOptions(patch_type=PatchType.STRATEGIC_MERGE, field_manager="kubelet", subresource=subresource)
        await self._admin.patch(ObjectKey("v1", "Node", request.name), self._change, options)
        return machine


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param(SMALLER, "a node has 1.8 CPU, the type promises 2 CPU", id="smaller"),
        pytest.param(TAINT, "a node has the taint node.cilium.io/agent-not-ready:NoSchedule", id="a taint that stays"),
    ],
)
async def test_one_node_is_bought_and_the_condition_names_what_it_lacks(
    env: Environment, change: Manifest, text: str
) -> None:
    await env.add_group(maxNodes=6)
    await env.deploy("web", replicas=1, cpu="1900m")
    kubeconfig = await asyncio.to_thread(env.plane.kubeconfig_for, NODE_GROUP_USER)
    async with controller(env, lambda where: ChangedNodes(where, env.cluster, change), kubeconfig) as reconciles:

        async def is_ready() -> bool:
            return [each.get("phase") for each in (await env.machines()).values()] == ["Ready"]

        await env.until("a node is ready", is_ready)
        # The scheduler gets a minute to bind pods to a new node.
        env.clock.advance(timedelta(minutes=2))

        async def is_named() -> bool:
            error = (await env.read_conditions(env.key(API, "NodeGroup", "workers"))).get("Error", {})
            return error.get("reason") == "NodesNotAsPromised" and text in error["message"]

        await env.until("the condition names what the node lacks", is_named)
        before = reconciles()

        async def goes_on() -> bool:
            return reconciles() > before + 20

        await env.until("twenty more reconciles", goes_on)
        assert len(await env.nodes()) == len(await env.machines()) == 1
        assert await env.ready("web") == 0
