"""Nodes that are refused, do not boot, die or disappear are replaced."""

from __future__ import annotations

import pytest

from ocf.controllers.nodegroup.providers.simulated import SimulatedProvider
from ocf.errors import CapacityExhaustedError
from ocf.nodegroups import Machine, MachineRequest
from ocf.objects import ObjectKey
from tests.controllers.nodegroup.conftest import GROUP, LARGE, SMALL, Env, run
from tests.controllers.nodegroup.test_controller import half_empty, until


def test_an_instance_type_that_is_refused_is_followed_by_the_next(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up()
        env.restart(provider=(cloud := Refuses([SMALL, LARGE], env.clock)))
        env.provider = cloud
        await env.add_pod()
        await env.tick(8)
        assert await env.phases() == ["Ready"]
        (node,) = await env.objects("VPSieNode")
        assert node["spec"]["instanceType"] == "large"
        assert env.events.reasons().count("ScaleUpFailed") == 1
        (backoff,) = (await env.status())["backoffs"]
        assert (backoff["instanceType"], backoff["failures"]) == ("small", 1)
        assert "small is sold out" in backoff["message"]
        assert (await env.read_conditions(GROUP))["Error"]["reason"] == "NodeProvisioningFailed"
        assert cloud.refused == 1

    run(scenario())


def test_several_refusals_at_once_are_one_failure(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up(offeringIDs=["small"])
        env.provider = cloud = Refuses([SMALL], env.clock)
        env.restart()
        for number in range(4):
            await env.add_pod(f"web-{number}", cpu="1900m")
        await env.tick(5)
        (backoff,) = (await env.status())["backoffs"]
        assert (backoff["failures"], cloud.refused) == (1, 4)
        await env.tick(12)
        (backoff,) = (await env.status())["backoffs"]
        assert backoff["failures"] == 2

    run(scenario())


def test_a_node_that_never_boots_is_given_up_and_replaced_by_another_type(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up(scaleUpPolicy={"bootTimeout": "5m"})
        env.cloud.broken = True
        await env.add_pod()
        await env.tick(4)
        env.cloud.broken = False
        await env.tick(8)
        (node,) = await env.objects("VPSieNode")
        assert (node["spec"]["instanceType"], node["status"]["phase"]) == ("large", "Ready")
        assert await env.machines() == 1
        assert "ScaleUpFailed" in env.events.reasons()

    run(scenario())


def test_a_machine_that_disappears_is_replaced_and_its_node_is_deleted(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up()
        await env.add_pod()
        await env.tick(5)
        (first,) = await env.nodes()
        env.provider.interrupt(first)
        await env.tick(2)
        # One list may be wrong: it is lost a minute later, with its Node gone as well.
        assert await env.phases() == ["Ready"]
        await env.tick(8)
        (second,) = await env.nodes()
        assert first != second
        assert await env.waiting() == []
        # The machine died: its type is not to blame.
        assert "backoffs" not in await env.status()

    run(scenario())


def test_a_node_that_stays_unready_is_replaced(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up()
        await env.add_pod()
        await env.tick(5)
        (first,) = await env.nodes()
        key = ObjectKey("v1", "Node", first)
        await env.patch_status(key, {"conditions": [{"type": "Ready", "status": "Unknown"}]}, by="kubelet")
        await env.tick(29)
        assert await env.nodes() == [first]
        await env.tick(8)
        assert first not in await env.nodes()
        assert await env.phases() == ["Ready"]
        assert await env.waiting() == []

    run(scenario())


@pytest.mark.parametrize("draining", [pytest.param(False, id="at work"), pytest.param(True, id="in a drain")])
def test_pods_that_never_end_on_a_dead_node_do_not_keep_it(env: Env, *, draining: bool) -> None:
    """The Node is deleted with its machine, and only then its pods end: their controller replaces them elsewhere."""

    async def scenario() -> None:
        await half_empty(env)
        if draining:
            await until(env, "Draining")
        stored = await env.objects("VPSieNode")
        (name, *_) = [each["status"]["nodeName"] for each in stored if not draining or "drain" in each["status"]]
        await env.kill_node(name)
        for pod in await env.objects("Pod"):
            if pod["spec"]["nodeName"] == name:
                await env.cluster.delete(ObjectKey.of(pod))
        await env.tick(20)
        assert any("deletionTimestamp" in pod["metadata"] for pod in await env.objects("Pod"))
        await env.tick(60)
        assert name not in await env.nodes()
        assert all("deletionTimestamp" not in pod["metadata"] for pod in await env.objects("Pod"))
        assert (await env.waiting(), await env.machines()) == ([], 1)
        assert len(await env.objects("Pod")) == 2

    run(scenario())


def test_a_node_that_registers_again_in_time_is_kept(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up(minNodes=1)
        await env.tick(5)
        (first,) = await env.nodes()
        await env.cluster.delete(ObjectKey("v1", "Node", first))
        await env.controller.reconcile()
        assert await env.phases() == ["Ready"]
        await env.tick(3)
        assert await env.nodes() == [first]
        (node,) = await env.objects("VPSieNode")
        assert "unreadySince" not in node["status"]

    run(scenario())


class Refuses(SimulatedProvider):
    """A cloud that refuses small machines."""

    refused = 0

    async def create(self, request: MachineRequest) -> Machine:
        if request.instance_type == "small":
            self.refused += 1
            raise CapacityExhaustedError("small is sold out")
        return await super().create(request)
