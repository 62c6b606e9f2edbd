"""Nodes that are not ready, and lists of machines that are wrong; each situation is that of public reports."""

from datetime import timedelta
from typing import Any

import pytest

from ocf.objects import ObjectKey
from ocf.testing.hostile_cloud import ListAnswer
from tests.controllers.nodegroup.conftest import GROUP, SMALL, TICK, Env, run
from tests.controllers.nodegroup.test_hostile_cloud import HOUR, RICH, as_promised, hostile


async def set_ready(env: Env, names: list[str], status: str) -> None:
    """Let nodes report that they are ready or not."""
    for name in names:
        condition = {"type": "Ready", "status": status}
        await env.patch_status(ObjectKey("v1", "Node", name), {"conditions": [condition]}, by="kubelet")


async def working_nodes(env: Env, number: int, **pod: Any) -> list[str]:
    """Return so many ready nodes, each with one pod."""
    await env.set_up(offeringIDs=["small"], maxNodes=number + 5)
    for at in range(number):
        await env.add_pod(f"web-{at}", cpu="2", **pod)
    await env.tick(6)
    nodes = await env.nodes()
    assert (len(nodes), await env.waiting()) == (number, [])
    return nodes


@pytest.mark.parametrize("answer", [ListAnswer.EMPTY, ListAnswer.PARTIAL], ids=lambda answer: answer.value)
# https://github.com/kubernetes-sigs/karpenter/issues/1100
# https://github.com/cloudpilot-ai/karpenter-provider-gcp/issues/242
def test_a_list_without_machines_deletes_no_node_that_is_ready(answer: ListAnswer) -> None:
    env, cloud = hostile(as_promised, SMALL)

    async def scenario() -> None:
        nodes = await working_nodes(env, 5)
        cloud.answer = answer
        await env.tick(HOUR)
        assert (await env.nodes(), len(env.cloud.requests), await env.phases()) == (nodes, 5, ["Ready"] * 5)
        error = (await env.read_conditions(GROUP))["Error"]
        assert (error["reason"], "does not list the machine of node" in error["message"]) == ("ProviderError", True)
        cloud.answer = ListAnswer.TRUE
        await env.tick(2)
        assert (await env.read_conditions(GROUP))["Error"]["status"] == "False"
        assert all("unlistedSince" not in each["status"] for each in await env.objects("VPSieNode"))

    run(scenario())


@pytest.mark.parametrize("answer", [ListAnswer.EMPTY, ListAnswer.STALE], ids=lambda answer: answer.value)
def test_a_list_that_lacks_new_machines_buys_none_twice(answer: ListAnswer) -> None:
    env, cloud = hostile(as_promised, SMALL)

    async def scenario() -> None:
        await env.set_up(offeringIDs=["small"])
        await env.add_pod()
        await env.tick(1)
        cloud.answer = answer
        await env.tick(4)
        cloud.answer = ListAnswer.TRUE
        await env.tick(6)
        assert (len(env.cloud.requests), await env.waiting(), await env.phases()) == (1, [], ["Ready"])

    run(scenario())


def test_a_node_that_is_deleted_while_the_list_is_empty_leaves_no_machine() -> None:
    env, cloud = hostile(as_promised, SMALL)

    async def scenario() -> None:
        await working_nodes(env, 1)
        await env.remove_pods()
        cloud.answer = ListAnswer.EMPTY
        (node,) = await env.objects("VPSieNode")
        await env.cluster.delete(ObjectKey.of(node))
        await env.tick(8)
        assert (await env.objects("VPSieNode"), cloud.machines()) == ((), [])

    run(scenario())


@pytest.mark.parametrize(
    ("nodes", "sick", "left"),
    [
        # https://github.com/kubernetes/kubernetes/issues/32510
        pytest.param(3, 3, 3, id="all"),
        pytest.param(3, 2, 2, id="two of three"),
        pytest.param(1, 1, 0, id="the only one"),
        pytest.param(2, 1, 0, id="one of two"),
        pytest.param(6, 2, 1, id="a third, one at a time"),
    ],
)
def test_nodes_that_are_not_ready_are_replaced_a_few_at_a_time(nodes: int, sick: int, left: int) -> None:
    env, _ = hostile(as_promised, SMALL)

    async def scenario() -> None:
        lost = (await working_nodes(env, nodes))[:sick]
        await set_ready(env, lost, "Unknown")
        env.dead |= set(lost)
        await env.tick(timedelta(minutes=16) // TICK)
        assert len(set(lost) & set(await env.nodes())) == left
        error = (await env.read_conditions(GROUP))["Error"]
        assert error["reason"] == ("NodesNotReady" if left else "NoError")
        removed = [each for each in env.events.all if each.reason == "ScalingDown"]
        assert len(removed) == sick - left
        assert all("not ready for 15m" in each.note for each in removed)
        if left == sick:
            assert f"{sick} of {nodes} nodes of the group are not ready" in error["message"]
            await env.tick(HOUR)
            assert set(lost) <= set(await env.nodes())
            await set_ready(env, lost, "True")
            await env.tick(3)
            assert (await env.read_conditions(GROUP))["Error"]["status"] == "False"

    run(scenario())


@pytest.mark.parametrize(
    ("pod", "node", "text"),
    [
        pytest.param({}, {"ocf.dev/protected": "true"}, "protected: the node has", id="protected node"),
        pytest.param({"volumes": [{"name": "data", "emptyDir": {}}]}, {}, "local_storage: data is lost", id="data"),
    ],
)
def test_a_node_that_is_not_ready_is_kept_by_the_rules_of_scale_down(
    pod: dict[str, Any], node: dict[str, str], text: str
) -> None:
    env, _ = hostile(as_promised, SMALL)

    async def scenario() -> None:
        (name,) = await working_nodes(env, 1, **pod)
        await env.merge_patch(ObjectKey("v1", "Node", name), {"metadata": {"annotations": node}}, by="user")
        await set_ready(env, [name], "Unknown")
        await env.tick(HOUR)
        assert name in await env.nodes()
        error = (await env.read_conditions(GROUP))["Error"]
        assert (error["reason"], text in error["message"]) == ("NodesNotReady", True)
        (event,) = [each for each in env.events.all if each.reason == "ScaleDownBlocked"]
        assert text in event.note

    run(scenario())


# https://github.com/kubernetes-sigs/karpenter/issues/1573
@pytest.mark.parametrize("timeout", ["10m", "1h"])
def test_a_node_that_dies_as_its_drain_begins_goes_when_its_own_time_is_up(timeout: str) -> None:
    env, _ = hostile(as_promised, SMALL)

    async def scenario() -> None:
        policy = {"drainTimeout": timeout}
        await env.set_up(offeringIDs=["small"], scaleDownCooldown="0s", scaleDownPolicy=policy)
        await env.add_pod("big-0", cpu="1")
        await env.add_pod("web-0", cpu="1100m")
        await env.tick(6)
        await env.remove_pods("big-0")
        await env.add_pod("small-0", cpu="100m")
        for _ in range(40):
            if "Draining" in await env.phases():
                break
            await env.tick()
        (name,) = [each["status"]["nodeName"] for each in await env.objects("VPSieNode") if "drain" in each["status"]]
        await env.kill_node(name)
        for pod in await env.objects("Pod"):
            if pod["spec"].get("nodeName") == name:
                await env.cluster.delete(ObjectKey.of(pod))
        await env.tick(timedelta(minutes=14) // TICK)
        assert name in await env.nodes()
        await env.tick(timedelta(minutes=3) // TICK)
        assert name not in await env.nodes()

    run(scenario())


# https://github.com/kubernetes/autoscaler/issues/7928, https://github.com/kubernetes/autoscaler/issues/6018
def test_machines_of_a_type_that_cannot_be_read_keep_no_other_group_from_growing() -> None:
    env, cloud = hostile(as_promised, SMALL, RICH)

    async def scenario() -> None:
        nodes = await working_nodes(env, 2)
        await env.add_group("others", offeringIDs=["rich"], labels={"for": "others"})
        cloud.unreadable = frozenset({"small"})
        await env.add_pod("other-0", cpu="2", nodeSelector={"for": "others"})
        await set_ready(env, nodes[:1], "Unknown")
        await env.tick(HOUR)
        assert (await env.waiting(), set(nodes) <= set(await env.nodes())) == ([], True)
        error = (await env.read_conditions(GROUP))["Error"]
        assert (error["reason"], error["message"]) == ("ProviderError", "small: cannot be read")
        other = ObjectKey(GROUP.api_version, "NodeGroup", "others", "default")
        assert (await env.read_conditions(other))["Error"]["status"] == "False"

    run(scenario())
