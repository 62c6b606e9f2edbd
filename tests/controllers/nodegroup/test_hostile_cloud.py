"""Node groups on a cloud whose nodes differ from their types; each situation is that of public reports."""

import itertools
import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, NoReturn

import pytest

from ocf.errors import ProviderUnavailableError
from ocf.nodegroups import InstanceType, MachineRequest, Offering
from ocf.objects import Manifest, ObjectKey, Quantity
from ocf.testing.hostile_cloud import HostileCloud, ListAnswer
from tests.controllers.nodegroup.conftest import GROUP, SMALL, TICK, Env, run

GPU: Final = "example.com/gpu"
NFD: Final = "feature.node.kubernetes.io/cpu-model"
CNI: Final = {"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoSchedule"}
RICH: Final = InstanceType(
    "rich",
    {**SMALL.capacity, GPU: Quantity.parse(1)},
    offerings=(Offering("fra", 0.02),),
    labels={"disk": "ssd"},
)
HOUR: Final = timedelta(hours=1) // TICK

Change = Callable[[MachineRequest, Manifest], Manifest]


def with_amounts(**amounts: str) -> Change:
    """Return a change that gives a node other allocatable amounts; `gpu` is the extended resource."""
    known = {GPU if name == "gpu" else name: amount for name, amount in amounts.items()}

    def change(_: MachineRequest, node: Manifest) -> Manifest:
        node["status"]["allocatable"] |= known
        return node

    return change


def with_taint(_: MachineRequest, node: Manifest) -> Manifest:
    node["spec"].setdefault("taints", []).append(CNI)
    return node


def without_label(_: MachineRequest, node: Manifest) -> Manifest:
    del node["metadata"]["labels"]["disk"]
    return node


def as_promised(_: MachineRequest, node: Manifest) -> Manifest:
    return node


def hostile(node: Change = as_promised, *types: InstanceType) -> tuple[Env, HostileCloud]:
    env = Env(types or (RICH,), cloud=HostileCloud, node=node)
    assert isinstance(env.provider, HostileCloud)
    return env, env.provider


def gpu_pod(amount: str = "1") -> dict[str, Any]:
    requests = {"cpu": "1", GPU: amount}
    return {"containers": [{"name": "app", "image": "app:1", "resources": {"requests": requests, "limits": requests}}]}


async def set_taints(env: Env, taints: list[Manifest] | None) -> None:
    for name in await env.nodes():
        await env.merge_patch(ObjectKey("v1", "Node", name), {"spec": {"taints": taints}}, by="cni")


@pytest.mark.parametrize(
    ("node", "pod", "text"),
    [
        # https://github.com/aws/karpenter-provider-aws/issues/1959
        pytest.param(
            with_amounts(cpu="1800m"), {"cpu": "1900m"}, "a node has 1.8 CPU, the type promises 2 CPU", id="CPU"
        ),
        # https://github.com/paperclipinc/karpenter-provider-hetzner/pull/55
        pytest.param(
            with_amounts(memory="7Gi"),
            {
                "containers": [
                    {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "1", "memory": "7500Mi"}}}
                ]
            },
            "a node has 7Gi memory, the type promises 8Gi memory",
            id="memory",
        ),
        # https://github.com/kubernetes/autoscaler/issues/1949
        pytest.param(
            with_amounts(gpu="0"), gpu_pod(), f"a node has 0 {GPU}, the type promises 1 {GPU}", id="extended resource"
        ),
        # https://github.com/kubernetes/autoscaler/issues/8258
        pytest.param(
            without_label, {"nodeSelector": {"disk": "ssd"}}, "a node lacks the label disk=ssd", id="promised label"
        ),
        # https://github.com/kubernetes/autoscaler/issues/7268
        pytest.param(with_taint, {}, "a node has the taint node.cilium.io/agent-not-ready:NoSchedule", id="taint"),
    ],
)
def test_a_node_that_does_not_help_is_bought_once_and_the_condition_names_what_it_lacks(
    node: Change, pod: dict[str, Any], text: str
) -> None:
    env, _ = hostile(node)

    async def scenario() -> None:
        await env.set_up(offeringIDs=["rich"], maxNodes=6)
        await env.add_pod(**pod)
        await env.tick(HOUR)
        assert (len(env.cloud.requests), await env.waiting()) == (1, ["web-0"])
        error = (await env.read_conditions(GROUP))["Error"]
        assert (error["status"], error["reason"]) == ("True", "NodesNotAsPromised")
        assert text in error["message"]
        assert "shop/web-0" in error["message"]
        (event,) = [each for each in env.events.all if each.reason == "ScaleUpFailed"]
        assert text in event.note
        assert text in (await env.status())["lastDecision"]

    run(scenario())


def test_a_node_that_did_not_help_is_tried_again_less_and_less_often() -> None:
    env, cloud = hostile(with_amounts(cpu="1800m"))

    async def scenario() -> None:
        await env.set_up(offeringIDs=["rich"], maxNodes=6)
        await env.add_pod(cpu="1900m")
        hours = []
        for hour in range(10):
            before = len(env.cloud.requests)
            await env.tick(20, by=timedelta(minutes=3))
            hours += [hour] * (len(env.cloud.requests) - before)
        # Each one goes when it is idle for ten minutes; then it takes 1, 2, 4 hours until the next one.
        assert hours == [0, 1, 3, 8]
        (gap,) = (await env.status())["typeGaps"]
        assert (gap["resources"], gap["failures"], gap["pod"]) == ({"cpu": "1800m"}, 4, "shop/web-0")
        cloud.node = as_promised
        await env.tick(200, by=timedelta(minutes=3))
        assert await env.waiting() == []
        assert "typeGaps" not in await env.status()
        assert (await env.read_conditions(GROUP))["Error"]["status"] == "False"

    run(scenario())


def test_a_machine_without_object_that_cannot_be_deleted_is_reported_once_and_deleted_later() -> None:
    env, cloud = hostile()

    async def scenario() -> None:
        await env.set_up(offeringIDs=["rich"])
        await cloud.create(MachineRequest("workers-0123456789", "workers", "rich", "fra"))
        cloud.fails_before = frozenset({"delete"})
        await env.tick(10)
        notes = [each.note for each in env.events.all if each.reason == "OrphanedMachine"]
        name = "machine workers-0123456789"
        assert notes == [f"{name} belongs to no VPSieNode", f"{name}: delete is not available"]
        cloud.fails_before = frozenset()
        await env.tick(2)
        assert await env.machines() == 0

    run(scenario())


# https://github.com/cloudbase/garm/issues/76, https://github.com/cloudpilot-ai/karpenter-provider-gcp/issues/267
@pytest.mark.parametrize("pods", [False, True], ids=["idle", "with pods"])
def test_a_second_machine_of_a_request_is_deleted_or_belongs_to_the_group(*, pods: bool) -> None:
    env, cloud = hostile()
    cloud.doubles = True

    async def scenario() -> None:
        await env.set_up(offeringIDs=["rich"], minNodes=1, maxNodes=2)
        if pods:
            # Until both Nodes have joined, no reconcile looks.
            await env.controller.reconcile()
            env.clock.advance(timedelta(minutes=1))
            await env.others()
            for number in range(2):
                await env.add_pod(f"web-{number}", cpu="1500m")
            await env.others()
        await env.tick(8)
        ids = {each["status"]["machineId"] for each in await env.objects("VPSieNode")}
        assert ids == {each.id for each in cloud.machines()}
        assert (len(ids), await env.phases()) == (1 + pods, ["Ready"] * (1 + pods))
        notes = [each.note for each in env.events.all if each.reason == "OrphanedMachine"]
        assert all("-twin)" in each for each in notes)
        assert len(notes) == 1 + pods
        if pods:
            labels = [
                node["metadata"]["labels"]["autoscaling.ocf.dev/node-group"] for node in await env.objects("Node")
            ]
            assert labels == ["default.workers"] * 2
            cloud.doubles = False
            await env.remove_pods()
            await env.tick(40)
            # One of them goes, and exactly this one.
            (left,) = await env.objects("VPSieNode")
            assert [each.id for each in cloud.machines()] == [left["status"]["machineId"]]

    run(scenario())


def test_an_error_with_another_request_id_each_time_is_one_event_and_one_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    env, cloud = hostile()
    numbers = itertools.count()

    async def fail(_: object) -> NoReturn:
        raise ProviderUnavailableError(f"the service is down (request-id {next(numbers)})")

    async def scenario() -> None:
        await env.set_up(offeringIDs=["rich"], minNodes=1)
        await env.tick(4)
        await cloud.create(MachineRequest("workers-0123456789", "workers", "rich", "fra"))
        for call in ("create", "delete"):
            monkeypatch.setattr(cloud, call, fail)
        await env.merge_patch(GROUP, {"spec": {"minNodes": 2}}, by="user")
        await env.tick(10)
        notes = [each.note for each in env.events.all if "request-id" in each.note]
        assert len([note for note in notes if "workers-0123456789" in note]) == 1
        (waiting,) = [each for each in await env.objects("VPSieNode") if each["status"]["phase"] == "Provisioning"]
        before = waiting["metadata"]["resourceVersion"]
        await env.tick(5)
        assert (await env.cluster.get(ObjectKey.of(waiting)))["metadata"]["resourceVersion"] == before
        assert next(numbers) > 20

    run(scenario())


# https://github.com/cloudpilot-ai/karpenter-provider-gcp/issues/242
def test_machines_that_never_join_and_cannot_be_deleted_count_for_the_maximum() -> None:
    env, cloud = hostile()

    async def scenario() -> None:
        await env.set_up(offeringIDs=["rich"], minNodes=2, maxNodes=2)
        cloud.joins_after, cloud.fails_before = None, frozenset({"delete"})
        for _ in range(60):
            await env.tick(by=timedelta(minutes=1))
            assert await env.machines() <= 2
        error = (await env.read_conditions(GROUP))["Error"]
        assert (error["reason"], error["message"]) == ("ProviderError", "delete is not available")
        cloud.joins_after, cloud.fails_before = timedelta(0), frozenset()
        await env.tick(60)
        assert (await env.phases(), await env.machines()) == (["Ready"] * 2, 2)

    run(scenario())


def test_a_gap_counts_although_an_older_node_of_the_type_is_as_promised() -> None:
    env, cloud = hostile(as_promised)

    async def scenario() -> None:
        await env.set_up(offeringIDs=["rich"], maxNodes=6)
        await env.add_pod("old-0", cpu="1500m")
        await env.tick(6)
        cloud.node = without_label
        await env.add_pod("new-0", cpu="1500m", nodeSelector={"disk": "ssd"})
        hours = []
        for hour in range(5):
            before = len(env.cloud.requests)
            await env.tick(20, by=timedelta(minutes=3))
            hours += [hour] * (len(env.cloud.requests) - before)
        # As without the older node.
        assert hours == [0, 1, 3]
        cloud.node = as_promised
        await env.tick(120, by=timedelta(minutes=3))
        assert await env.waiting() == []
        assert "typeGaps" not in await env.status()

    run(scenario())


def test_the_next_type_is_taken_for_a_pod_that_the_nodes_of_the_first_do_not_take() -> None:
    def smaller(request: MachineRequest, node: Manifest) -> Manifest:
        return with_amounts(cpu="1800m")(request, node) if request.instance_type == "rich" else node

    env, _ = hostile(smaller, RICH, SMALL)

    async def scenario() -> None:
        await env.set_up(offeringIDs=["rich", "small"], maxNodes=6)
        await env.add_pod(cpu="1900m")
        await env.tick(HOUR)
        assert await env.waiting() == []
        assert [each.instance_type for each in env.cloud.requests] == ["rich", "small"]

    run(scenario())


def test_pods_that_fit_are_not_kept_from_a_type_whose_nodes_are_smaller() -> None:
    env, _ = hostile(with_amounts(cpu="1800m"))

    async def scenario() -> None:
        await env.set_up(offeringIDs=["rich"], maxNodes=6)
        await env.add_pod("giant-0", cpu="1900m")
        await env.tick(10)
        for number in range(3):
            await env.add_pod(f"web-{number}", cpu="1700m")
        await env.tick(10)
        assert (await env.waiting(), len(env.cloud.requests)) == (["giant-0"], 3)

    run(scenario())


@pytest.mark.parametrize("named", [pytest.param(True, id="named in the group"), pytest.param(False, id="not named")])
@pytest.mark.parametrize("others", [pytest.param(0, id="first node"), pytest.param(1, id="beside another node")])
# https://github.com/kubernetes/autoscaler/issues/7268, https://github.com/kubernetes/autoscaler/pull/2758
def test_a_taint_that_stays_for_three_minutes_buys_no_second_node(*, named: bool, others: int) -> None:
    env, cloud = hostile()

    async def scenario() -> None:
        policy = {"startupTaints": [CNI["key"]]} if named else {}
        await env.set_up(offeringIDs=["rich"], maxNodes=6, scaleUpPolicy=policy)
        for number in range(others):
            await env.add_pod(f"old-{number}", cpu="2")
        await env.tick(60)
        cloud.node = with_taint
        await env.add_pod(cpu="2")
        await env.tick(9)
        assert await env.waiting() == ["web-0"]
        if named:
            assert (await env.status())["readyNodes"] == others
            assert (await env.read_conditions(GROUP))["Error"]["status"] == "False"
        await set_taints(env, None)
        await env.tick(4)
        assert (await env.waiting(), len(env.cloud.requests)) == ([], 1 + others)
        assert (await env.read_conditions(GROUP))["Error"]["status"] == "False"
        assert (await env.status())["readyNodes"] == 1 + others

    run(scenario())


# https://github.com/kubernetes/autoscaler/issues/1949, https://github.com/kubernetes/autoscaler/issues/3164
def test_a_resource_that_a_device_plugin_reports_late_is_awaited() -> None:
    env, _ = hostile(with_amounts(gpu="0"))

    async def scenario() -> None:
        await env.set_up(offeringIDs=["rich"], maxNodes=6, scaleUpPolicy={"startupResources": [GPU]})
        await env.add_pod(**gpu_pod())
        await env.tick(10)
        (name,) = await env.nodes()
        assert ((await env.status())["readyNodes"], await env.waiting()) == (0, ["web-0"])
        assert (await env.read_conditions(GROUP))["Error"]["status"] == "False"
        await env.patch_status(ObjectKey("v1", "Node", name), {"allocatable": {GPU: "1"}}, by="kubelet")
        await env.tick(3)
        assert (await env.waiting(), len(env.cloud.requests)) == ([], 1)

    run(scenario())


def test_a_resource_that_never_comes_is_named_after_the_boot_timeout() -> None:
    env, _ = hostile(with_amounts(gpu="0"))

    async def scenario() -> None:
        await env.set_up(offeringIDs=["rich"], maxNodes=6, scaleUpPolicy={"startupResources": [GPU]})
        await env.add_pod(**gpu_pod())
        await env.tick(math.ceil(timedelta(minutes=20) / TICK))
        error = (await env.read_conditions(GROUP))["Error"]
        assert f"a node has 0 {GPU}, the type promises 1 {GPU}" in error["message"]
        assert len(env.cloud.requests) == 1

    run(scenario())


# https://github.com/NVIDIA/gpu-operator/issues/423
def test_labels_that_nodes_have_and_the_catalog_lacks_make_pods_schedulable() -> None:
    def labelled(_: MachineRequest, node: Manifest) -> Manifest:
        node["metadata"]["labels"][NFD] = "85"
        return node

    env, _ = hostile(labelled)

    async def scenario() -> None:
        await env.set_up(offeringIDs=["rich"], maxNodes=6)
        await env.add_pod("old-0", cpu="2")
        await env.tick(6)
        await env.add_pod(nodeSelector={NFD: "85"}, cpu="2")
        await env.add_pod("never-0", nodeSelector={NFD: "99"}, cpu="2")
        await env.tick(6)
        assert (await env.waiting(), len(env.cloud.requests)) == (["never-0"], 2)

    run(scenario())


def test_a_taint_that_a_person_sets_on_the_only_node_does_not_keep_a_group_from_growing() -> None:
    env, _ = hostile()

    async def scenario() -> None:
        await env.set_up(offeringIDs=["rich"], maxNodes=6)
        await env.add_pod("old-0", cpu="1")
        await env.tick(60)
        await set_taints(env, [{"key": "maintenance", "effect": "NoSchedule"}])
        await env.add_pod(cpu="1")
        await env.tick(6)
        assert (await env.waiting(), len(env.cloud.requests)) == ([], 2)

    run(scenario())


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        pytest.param(
            {"offeringIDs": ["smal", "rich"]}, 'instance type smal is unknown, did you mean "small"?', id="type"
        ),
        pytest.param({"datacenterID": "frax"}, 'does not exist in frax, did you mean "fra"?', id="datacenter"),
        pytest.param({"offeringIDs": ["broken", "rich"]}, "broken cannot be used: it has no capacity", id="unreadable"),
    ],
)
def test_a_type_that_cannot_be_used_is_named_at_once_and_once(spec: dict[str, Any], text: str) -> None:
    broken = InstanceType("broken", {}, problem="it has no capacity")
    env, _ = hostile(as_promised, SMALL, RICH, broken)

    async def scenario() -> None:
        await env.set_up(**spec)
        await env.tick(5)
        error = (await env.read_conditions(GROUP))["Error"]
        assert (error["status"], error["reason"]) == ("True", "InstanceTypeInvalid")
        assert text in error["message"]
        (event,) = env.events.all
        assert (event.reason, text in event.note) == ("ScaleUpFailed", True)
        await env.add_pod(cpu="1")
        await env.tick(5)
        assert await env.waiting() == (["web-0"] if "datacenterID" in spec else [])

    run(scenario())


def test_the_first_failure_of_the_provider_is_an_event() -> None:
    env, cloud = hostile()

    async def scenario() -> None:
        await env.set_up(offeringIDs=["rich"])
        cloud.answer = ListAnswer.FAILS
        await env.tick(5)
        (event,) = env.events.all
        assert event.note == "the provider failed: the list of machines is not available"
        cloud.answer = ListAnswer.TRUE
        await env.tick(2)
        cloud.answer = ListAnswer.FAILS
        await env.tick(2)
        assert env.events.reasons() == ["ScaleUpFailed"] * 2

    run(scenario())


# https://github.com/kubernetes/autoscaler/issues/4942, https://github.com/kubernetes/autoscaler/issues/5916
def test_the_minimum_is_kept_during_the_cooldown_and_desired_nodes_stay_within_the_bounds() -> None:
    env, _ = hostile(as_promised, SMALL)

    async def scenario() -> None:
        await env.set_up(offeringIDs=["small"], maxNodes=5, scaleUpCooldown="1h")
        for number in range(3):
            await env.add_pod(f"web-{number}", cpu="2")
        await env.tick(5)
        await env.merge_patch(GROUP, {"spec": {"minNodes": 4}}, by="user")
        await env.add_pod("late-0", cpu="2")
        await env.add_pod("late-1", cpu="2")
        await env.tick(5)
        assert (len(env.cloud.requests), len(await env.waiting())) == (4, 1)
        await env.merge_patch(GROUP, {"spec": {"minNodes": 0, "maxNodes": 2}}, by="user")
        await env.tick(1)
        assert (await env.status())["desiredNodes"] == 2

    run(scenario())
