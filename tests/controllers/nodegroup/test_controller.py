"""The controller from pending pods to machines and back: growth, failures, drains, and what is never done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ocf.controllers.nodegroup.definitions import node_group_definition
from ocf.controllers.nodegroup.options import NodeGroupControllerOptions
from ocf.controllers.nodegroup.plan import NodeGroupPlan
from ocf.controllers.nodegroup.providers.simulated import SimulatedProvider
from ocf.errors import ConfigError, ProviderUnavailableError
from ocf.nodegroups import Machine, MachineRequest
from ocf.objects import ObjectKey
from tests.controllers.nodegroup.conftest import API, GROUP, SMALL, TICK, Env, run


def test_pods_get_nodes_and_nodes_go_when_the_pods_have_gone(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up()
        for number in range(3):
            await env.add_pod(f"web-{number}", cpu="1900m")
        await env.tick()
        assert await env.phases() == ["Pending"] * 3
        assert "add 3 small" in (await env.status())["lastDecision"]
        await env.tick(4)
        assert await env.phases() == ["Ready"] * 3
        assert await env.waiting() == []
        status = await env.status()
        assert (status["currentNodes"], status["desiredNodes"], status["readyNodes"]) == (3, 3, 3)
        assert (await env.read_conditions(GROUP))["Ready"]["status"] == "True"
        await env.remove_pods()
        await env.tick(30)
        assert await env.objects("VPSieNode") == ()
        assert (await env.nodes(), await env.machines()) == ([], 0)
        assert (await env.status())["currentNodes"] == 0
        reasons = env.events.reasons()
        assert (reasons.count("ScalingUp"), reasons.count("ScalingDown")) == (1, 3)

    run(scenario())


def test_nothing_is_requested_twice_while_nodes_boot(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up()
        await env.add_pod()
        await env.tick(20, by=timedelta(seconds=1))
        assert len(env.cloud.requests) == 1

    run(scenario())


def test_a_group_has_its_minimum_without_any_pods(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up(minNodes=2)
        await env.tick(5)
        assert await env.phases() == ["Ready"] * 2
        assert (await env.read_conditions(GROUP))["AtMinCapacity"]["status"] == "True"
        await env.tick(60)
        assert await env.phases() == ["Ready"] * 2

    run(scenario())


def test_labels_and_taints_of_the_group_are_on_its_nodes(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up(
            minNodes=1,
            labels={"tier": "web"},
            taints=[{"key": "dedicated", "value": "web", "effect": "NoSchedule"}],
        )
        plain = RegistersPlainNodes([SMALL], env.clock)
        env.provider = plain
        env.restart()
        await env.tick(5)
        (node,) = await env.objects("Node")
        assert node["metadata"]["labels"]["tier"] == "web"
        assert node["metadata"]["labels"]["autoscaling.ocf.dev/node-group"] == "default.workers"
        assert node["spec"]["taints"] == [{"key": "dedicated", "value": "web", "effect": "NoSchedule"}]

    run(scenario())


def test_a_pod_that_never_fits_grows_nothing_and_is_named(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up()
        await env.add_pod("huge", cpu="64")
        await env.tick(10)
        assert await env.objects("VPSieNode") == ()
        assert "shop/huge" in (await env.status())["lastDecision"]
        assert "Insufficient cpu" in (await env.status())["lastDecision"]

    run(scenario())


def test_one_pod_grows_one_group(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up()
        await env.add_group("others")
        await env.add_pod()
        await env.tick(5)
        assert len(await env.objects("VPSieNode")) == 1

    run(scenario())


async def half_empty(env: Env, **spec: Any) -> None:
    """Let two nodes with one small pod each come up."""
    await env.set_up(minNodes=1, offeringIDs=["small"], **spec)
    await env.add_pod("web-0", cpu="900m")
    await env.add_pod("big-0", cpu="1900m")
    await env.tick(5)
    assert await env.phases() == ["Ready"] * 2
    await env.remove_pods("big-0")
    await env.add_pod("web-1", cpu="900m")
    await env.add_pod("web-2", cpu="900m")
    await env.tick()
    await env.remove_pods("web-2")


def test_pods_of_a_removed_node_are_evicted_after_it_is_cordoned(env: Env) -> None:
    async def scenario() -> None:
        await half_empty(env)
        before = await env.nodes()
        await env.tick(40)
        assert len(await env.nodes()) == 1
        assert set(await env.nodes()) < set(before)
        assert len(await env.objects("Pod")) == 2
        assert await env.waiting() == []
        assert env.value("node_drain_duration_seconds_count", result="success") == 1

    run(scenario())


def test_a_node_is_not_removed_while_a_disruption_budget_forbids_it(env: Env) -> None:
    async def scenario() -> None:
        await half_empty(env)
        await env.add_budget(0)
        await env.tick(60)
        assert len(await env.nodes()) == 2
        assert [each["reason"] for each in (await env.status())["blocked"]] == ["pdb", "pdb"]
        # Once for each node, not in each reconcile.
        assert env.events.reasons().count("ScaleDownBlocked") == 2
        assert env.value("scale_down_blocked_total", reason="pdb") == 2

    run(scenario())


def test_a_drain_that_a_budget_stops_is_given_up_and_the_node_takes_pods_again(env: Env) -> None:
    async def scenario() -> None:
        await half_empty(env, scaleDownPolicy={"drainTimeout": "3m"})
        await env.add_budget(1)
        await until(env, "Draining")
        await env.allow(0)
        await env.tick(3)
        assert "Draining" in await env.phases()
        await env.tick(8)
        assert await env.phases() == ["Ready"] * 2
        assert not any(node["spec"].get("unschedulable") for node in await env.objects("Node"))
        assert len(await env.objects("Pod")) == 2
        assert env.value("scale_down_blocked_total", reason="drain") == 1
        errors = [node["status"].get("lastError", "") for node in await env.objects("VPSieNode")]
        assert any("the drain was given up: the deadline is over" in error for error in errors)

    run(scenario())


def test_a_rule_that_forbids_a_removal_ends_its_drain(env: Env) -> None:
    async def scenario() -> None:
        await half_empty(env)
        await until(env, "Draining")
        for name in await env.nodes():
            patch = {"metadata": {"annotations": {"ocf.dev/protected": "true"}}}
            await env.merge_patch(ObjectKey("v1", "Node", name), patch, by="user")
        await env.tick(4)
        assert await env.phases() == ["Ready"] * 2

    run(scenario())


async def until(env: Env, phase: str) -> None:
    """Reconcile until a node is in a phase, and not further."""
    for _ in range(60):
        if phase in await env.phases():
            return
        await env.controller.reconcile()
        if phase not in await env.phases():
            await env.others()
            env.clock.advance(TICK)
    raise AssertionError(f"no node became {phase}")


def test_a_node_deleted_by_hand_is_drained_then_its_machine_is_deleted(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up()
        await env.add_pod()
        await env.tick(5)
        (node,) = await env.objects("VPSieNode")
        await env.add_budget(0)
        await env.cluster.delete(ObjectKey.of(node))
        await env.tick(4)
        assert await env.nodes() == [node["metadata"]["name"]]
        assert len(await env.objects("Pod")) == 1
        await env.allow(1)
        await env.tick(6)
        assert await env.gone(ObjectKey.of(node))
        assert await env.machines() == 1
        assert await env.waiting() == []

    run(scenario())


def test_a_node_deleted_by_hand_goes_at_the_drain_timeout_in_any_case(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up(scaleDownPolicy={"drainTimeout": "3m"})
        await env.add_pod()
        await env.tick(5)
        (node,) = await env.objects("VPSieNode")
        await env.add_budget(0)
        await env.cluster.delete(ObjectKey.of(node))
        await env.tick(6)
        assert not await env.gone(ObjectKey.of(node))
        await env.tick(5)
        assert await env.gone(ObjectKey.of(node))
        assert node["metadata"]["name"] not in await env.nodes()

    run(scenario())


def test_a_deleted_group_deletes_its_nodes_and_machines_first(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up(minNodes=3)
        await env.tick(5)
        await env.cluster.delete(GROUP)
        await env.tick()
        assert not await env.gone(GROUP)
        await env.tick(8)
        assert await env.gone(GROUP)
        assert (await env.machines(), await env.nodes(), await env.objects("VPSieNode")) == (0, [], ())

    run(scenario())


def test_nodes_that_the_controller_did_not_create_are_never_removed(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up()
        label = {"autoscaling.ocf.dev/node-group": "default.workers"}
        status = {"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "110"}}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "own", "labels": label}, "status": status}
        await env.cluster.create(node, field_manager="user")
        ready = {**status, "conditions": [{"type": "Ready", "status": "True"}]}
        await env.patch_status(ObjectKey("v1", "Node", "own"), ready, by="kubelet")
        await env.tick(60)
        assert await env.nodes() == ["own"]
        (blocked,) = (await env.status())["blocked"]
        assert blocked["reason"] == "unmanaged"

    run(scenario())


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"typeGaps": [{"instanceType": "small", "resources": {"cpu": "lots"}}]}, id="no quantity"),
        pytest.param({"backoffs": [{"instanceType": "small", "until": "0001-01-01T00:00:00Z"}]}, id="year 1"),
        pytest.param({"lastScaleUpTime": "9999-12-31T23:59:59Z"}, id="year 9999"),
    ],
)
def test_a_status_that_cannot_be_read_stops_no_group(
    env: Env, caplog: pytest.LogCaptureFixture, status: dict[str, Any]
) -> None:
    async def scenario() -> None:
        await env.set_up(offeringIDs=["small"], scaleUpCooldown="1m")
        await env.add_group("other", offeringIDs=["large"])
        await env.patch_status(GROUP, status, by="user")
        await env.add_pod("web-0", cpu="7")
        await env.add_pod("web-1", cpu="1500m")
        await env.tick(8)
        assert await env.waiting() == []
        assert len([text for text in caplog.messages if "is left out" in text]) == 1

    run(scenario())


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        pytest.param({"minNodes": 9}, "spec: minNodes must not be above maxNodes, got 9 and 5", id="bounds"),
        pytest.param({"preferredInstanceType": "huge"}, "preferredInstanceType must be one of", id="preferred"),
        pytest.param({"scaleDownCooldown": "9999999999999h"}, "spec.scaleDownCooldown: must be a duration", id="long"),
    ],
)
def test_a_group_that_is_not_valid_is_left_alone_and_says_why(env: Env, spec: dict[str, Any], text: str) -> None:
    async def scenario() -> None:
        await env.set_up()
        await env.add_group("valid", minNodes=1)
        # An object that was stored before the definition had the rule.
        unchecked = node_group_definition()
        version = unchecked["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        version["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        live = await env.cluster.get(ObjectKey.of(unchecked))
        await env.cluster.update(
            {
                **unchecked,
                "metadata": {**unchecked["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]},
            },
            field_manager="admin",
        )
        await env.merge_patch(GROUP, {"spec": spec}, by="user")
        await env.add_pod()
        await env.tick(5)
        condition = (await env.read_conditions(GROUP))["Ready"]
        assert (condition["status"], condition["reason"]) == ("False", "ValidationFailed")
        assert text in condition["message"]
        assert {node["spec"]["nodeGroupName"] for node in await env.objects("VPSieNode")} == {"valid"}
        assert env.events.reasons().count("ValidationFailed") == 1

    run(scenario())


def test_a_provider_that_fails_is_shown_and_changes_nothing(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up(minNodes=1)
        await env.tick(5)
        broken = Broken([SMALL], env.clock)
        env.restart(provider=broken)
        await env.tick(3)
        condition = (await env.read_conditions(GROUP))["Error"]
        assert (condition["status"], condition["reason"]) == ("True", "ProviderError")
        assert "connection refused" in condition["message"]
        assert await env.phases() == ["Ready"]
        env.restart()
        await env.tick()
        assert (await env.read_conditions(GROUP))["Error"]["status"] == "False"

    run(scenario())


def test_a_dry_run_decides_and_writes_nothing(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up(minNodes=2)
        plans: list[NodeGroupPlan] = []
        env.restart(options=NodeGroupControllerOptions(dry_run=True, report=plans.append))
        before = len(env.writes())
        await env.controller.reconcile()
        assert [len(plan.groups["default/workers"].add) for plan in plans] == [2]
        assert (len(env.writes()), env.cloud.requests, env.events.all) == (before, [], [])

    run(scenario())


@pytest.mark.promise("node-groups-quiet", runs="1 000 reconciles with a blocked node and a pod that never fits")
def test_a_converged_cluster_is_not_written_to_for_a_thousand_reconciles(env: Env) -> None:
    async def scenario() -> None:
        await half_empty(env)
        await env.add_budget(0)
        await env.add_pod("huge", cpu="64")
        await env.tick(60)
        env.cluster.requests.clear()
        for _ in range(1000):
            await env.controller.reconcile()
            env.clock.advance(TICK)
        assert env.writes() == []

    run(scenario())


def test_a_restart_before_each_reconcile_changes_no_decision() -> None:
    async def story(*, restarts: bool) -> list[str]:
        env = Env()
        await half_empty(env)
        seen = []
        for _ in range(80):
            if restarts:
                env.restart()
            await env.tick()
            seen.append(f"{(await env.status())['lastDecision']} {await env.phases()}")
        return seen

    async def scenario() -> None:
        with_restarts, without = await story(restarts=True), await story(restarts=False)
        assert with_restarts == without

    run(scenario())


class RegistersPlainNodes(SimulatedProvider):
    """A cloud whose nodes register without the labels and taints of the request."""

    async def create(self, request: MachineRequest) -> Machine:
        return await super().create(replace(request, labels={}, taints=()))


class Broken(SimulatedProvider):
    """A cloud that does not answer."""

    async def list(self) -> Sequence[Machine]:
        raise ProviderUnavailableError("connection refused")


@pytest.mark.promise("node-groups-input", runs="two objects for one node, and the deletion of the younger one")
def test_a_second_object_for_a_node_is_rejected_and_deletes_nothing(env: Env) -> None:
    async def scenario() -> None:
        await env.set_up(minNodes=1)
        await env.tick(5)
        (first,) = await env.objects("VPSieNode")
        name = first["metadata"]["name"]
        spec = {**first["spec"], "nodeGroupName": "others"}
        metadata = {"name": name, "namespace": "shop", "finalizers": first["metadata"]["finalizers"]}
        second = await env.cluster.create(
            {"apiVersion": API, "kind": "VPSieNode", "metadata": metadata, "spec": spec}, field_manager="user"
        )
        await env.tick(3)
        problem = (await env.read_status(ObjectKey.of(second)))["lastError"]
        assert problem == (
            f"metadata.name: node {name} belongs to VPSieNode default/{name} of group default/workers: "
            "delete one of the two objects"
        )
        assert env.events.reasons().count("ValidationFailed") == 1
        await env.cluster.delete(ObjectKey.of(second))
        await env.tick(60)
        assert await env.gone(ObjectKey.of(second))
        assert (await env.nodes(), await env.machines()) == ([name], 1)
        assert (await env.status())["readyNodes"] == 1

    run(scenario())


def test_without_the_definitions_the_error_names_the_command_that_prints_them(env: Env) -> None:
    remedy = "; ocf nodegroups manifests prints what has to be applied first"
    with pytest.raises(ConfigError, match=rf"^\w+ \(autoscaling\.ocf\.dev/v1alpha1\) cannot be read: .*{remedy}$"):
        run(env.controller.run())
