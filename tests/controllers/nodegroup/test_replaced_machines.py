"""Histories in which Cluster API replaces Machines: the healthy replacement and its pods stay, and nothing is marked.

The order of the steps is that of the controllers of Cluster API 1.13.6: a rollout with `maxSurge: 1` creates the new
Machine before it deletes the old one, and a MachineSet replaces a Machine that a MachineHealthCheck deletes when it is
gone.
"""

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Final

import pytest

from ocf.controllers.nodegroup.providers.cluster_api import ClusterAPIProvider
from ocf.objects import Manifest, ObjectKey
from tests.controllers.nodegroup.conftest import GROUP, Env, run
from tests.controllers.nodegroup.providers.fake_cluster_api import CAPACITY, DEFINITIONS, FakeClusterAPI

CAPACITIES: Final = {f"{CAPACITY}/cpu": "4", f"{CAPACITY}/memory": "16G"}


class Management:
    """Cluster API beside the controller, in the same cluster.

    Args:
        env: The environment.
    """

    def __init__(self, env: Env) -> None:
        self.env = env
        self.capi = FakeClusterAPI(env.cluster, "default")
        self.capi.lingers = True

    async def set_up(self) -> None:
        for definition in DEFINITIONS:
            await self.env.cluster.create(definition, field_manager="user")
        await self.capi.define("small", annotations=CAPACITIES)
        self.env.restart(provider=ClusterAPIProvider(self.env.cluster, "default"))
        await self.env.set_up(datacenterID="fra-1", offeringIDs=["small"], maxNodes=1, scaleDownCooldown="0s")

    async def tick(self, times: int = 1) -> None:
        """Let the controller, Cluster API and kubelets act, and time pass."""
        for _ in range(times):
            await self.env.tick()
            await self.capi.reconcile("small")
            await self.boot()

    async def boot(self) -> None:
        """Let each Machine run, and its node join."""
        await self.capi.boot("small")
        known = await self.env.nodes()
        for machine in await self.capi.names("small"):
            if f"node-{machine}" not in known:
                await self._join(f"node-{machine}")

    async def _join(self, name: str) -> None:
        amounts = {"cpu": "4", "memory": "16G", "pods": "110"}
        status: Manifest = {"capacity": amounts, "allocatable": amounts}
        labels = {"node.kubernetes.io/instance-type": "small", "topology.kubernetes.io/zone": "fra-1"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}
        await self.env.cluster.create(node, field_manager="kubelet")
        ready = {**status, "conditions": [{"type": "Ready", "status": "True"}]}
        await self.env.patch_status(ObjectKey("v1", "Node", name), ready, by="kubelet")

    async def drain(self, machine: str) -> None:
        """Delete a Machine and cordon its Node, as Cluster API does before it lets the Machine go."""
        await self.capi.remove(machine)
        await self.env.merge_patch(
            ObjectKey("v1", "Node", f"node-{machine}"), {"spec": {"unschedulable": True}}, by="capi"
        )

    async def finish(self, machine: str) -> None:
        """Evict the pods of a Machine, whose owners replace them at once, and let it go."""
        for pod in await self.env.objects("Pod"):
            if pod["spec"].get("nodeName") == f"node-{machine}":
                await self.env.cluster.delete(ObjectKey.of(pod))
        await self.env.others()
        await self.capi.finish(machine)
        await self.env.cluster.delete(ObjectKey("v1", "Node", f"node-{machine}"))


async def rollout(management: Management) -> None:
    management.capi.template = "b"
    await management.capi.surge("small")
    await management.boot()
    # Cluster API lets the surplus Machine be, as the rollout may exceed `replicas`.
    await management.env.tick(3)
    await management.drain("small-1")
    await management.env.tick(3)
    await management.finish("small-1")
    await management.tick(3)


async def rollout_with_a_slow_drain(management: Management) -> None:
    management.capi.template = "b"
    await management.capi.surge("small")
    await management.boot()
    await management.env.tick(3)
    await management.drain("small-1")
    # A disruption budget may hold the pods back for hours.
    await management.env.tick(60)
    await management.finish("small-1")
    await management.tick(3)


async def health_check(management: Management) -> None:
    await management.env.kill_node("node-small-1")
    await management.tick(2)
    await management.drain("small-1")
    # The drain of a node that does not answer takes longer than a node may boot.
    await management.env.tick(40)
    await management.finish("small-1")
    await management.tick(4)


# https://github.com/kubernetes/autoscaler/issues/8494, https://github.com/gardener/machine-controller-manager/issues/758
@pytest.mark.promise("node-groups-replaced", runs="three histories")
@pytest.mark.parametrize("history", [rollout, rollout_with_a_slow_drain, health_check])
def test_the_replacement_of_a_machine_stays_with_its_pods(
    env: Env, history: Callable[[Management], Coroutine[Any, Any, None]]
) -> None:
    management = Management(env)

    async def scenario() -> None:
        await management.set_up()
        await env.add_pod(cpu="3")
        await management.tick(4)
        assert (await env.phases(), await env.waiting()) == (["Ready"], [])
        (before,) = await env.objects("VPSieNode")
        await history(management)
        # For as long as a node that is idle would be removed.
        await management.tick(60)
        (after,) = await env.objects("VPSieNode")
        assert after["metadata"]["name"] == before["metadata"]["name"]
        assert (after["status"]["phase"], after["status"]["machineId"]) == ("Ready", "small-2")
        assert (await env.nodes(), await env.waiting()) == (["node-small-2"], [])
        assert await management.capi.names("small") == ["small-2"]
        assert await management.capi.marked("small") == []
        assert (await management.capi.deployment("small"))["spec"]["replicas"] == 1
        assert (await env.read_conditions(GROUP))["Error"]["status"] == "False"

    run(scenario())


# https://github.com/kubernetes/autoscaler/issues/9345
def test_no_node_is_removed_while_its_machine_deployment_is_paused(env: Env) -> None:
    management = Management(env)

    async def scenario() -> None:
        await management.set_up()
        await env.add_pod(cpu="3")
        await management.tick(4)
        await management.capi.change("small", {"metadata": {"annotations": {"cluster.x-k8s.io/paused": "true"}}})
        env.clock.advance(timedelta(minutes=5))
        await env.remove_pods()
        await management.tick(60)
        assert (await env.phases(), await management.capi.marked("small")) == (["Ready"], [])
        (blocked,) = (await env.status())["blocked"]
        assert (blocked["reason"], blocked["message"]) == ("undeletable", "MachineDeployment small is paused")
        error = (await env.read_conditions(GROUP))["Error"]
        assert (error["status"], "MachineDeployment small is paused" in error["message"]) == ("True", True)
        await management.capi.change("small", {"metadata": {"annotations": {"cluster.x-k8s.io/paused": None}}})
        management.capi.lingers = False
        for _ in range(40):
            await management.tick()
            if await management.capi.names("small") == ["small-1"]:
                await management.capi.finish("small-1")
        assert await env.objects("VPSieNode") == ()

    run(scenario())
