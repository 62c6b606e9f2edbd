"""Wrong input becomes a validation error with its path, or a reason in the plan; it removes no node."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from ocf.controllers.nodegroup.observation import view_of
from ocf.controllers.nodegroup.plan import NodeGroupPlan, make_plan
from ocf.controllers.nodegroup.plan_report import plan_json, plan_lines
from ocf.nodegroups import Catalog
from ocf.objects import Manifest, ObjectKey
from ocf.testing.hostile_cloud import HostileCloud
from tests.controllers.nodegroup.conftest import API, SMALL, Env, run

NOW: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
LABEL: Final = "autoscaling.ocf.dev/node-group"
BLOCKED: Final = "node n1: blocked"


def group(name: str = "workers", namespace: str = "default", **spec: Any) -> Manifest:
    """Return a group for whose node it is time to go."""
    settings = {"minNodes": 0, "maxNodes": 5, "datacenterID": "fra", "offeringIDs": ["small"], **spec}
    unneeded = [{"name": "n1", "since": "2026-01-31T10:00:00Z"}]
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}"}
    return {
        "apiVersion": API,
        "kind": "NodeGroup",
        "metadata": metadata,
        "spec": settings,
        "status": {"unneeded": unneeded},
    }


def node(name: str = "n1", *, labels: Any = None, status: Any = None) -> Manifest:
    allocatable = {"cpu": "2", "memory": "8Gi", "pods": "110"}
    conditions = [{"type": "Ready", "status": "True"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {LABEL: "default.workers"} if labels is None else labels},
        "status": {"allocatable": allocatable, "conditions": conditions} | (status or {}),
    }


def managed(name: str = "n1", group: str = "workers", namespace: str = "default", **status: Any) -> Manifest:
    found = {"phase": "Ready", "nodeName": name, "machineId": name, "readyAt": "2026-01-31T09:00:00Z", **status}
    return {
        "apiVersion": API,
        "kind": "VPSieNode",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"nodeGroupName": group, "instanceType": "small", "datacenterID": "fra"},
        "status": found,
    }


def pod(name: str = "web", *, cpu: str = "100m", on: str = "n1", owner: bool = True, **spec: Any) -> Manifest:
    owners = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": {"app": "web"}, "ownerReferences": owners * owner},
        "spec": {
            "containers": [{"name": "app", "resources": {"requests": {"cpu": cpu}}}],
            **({"nodeName": on} if on else {}),
            **spec,
        },
        "status": {"phase": "Running" if on else "Pending"},
    }


def budget(**spec: Any) -> Manifest:
    metadata = {"name": "web", "namespace": "shop"}
    status = {"disruptionsAllowed": 0}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


OTHER: Final = [node("n2", labels={})]
IDLE: Final = [group(), node(), managed(), *OTHER]


def planned(objects: list[Manifest], now: datetime = NOW) -> tuple[str, NodeGroupPlan]:
    view = view_of(objects)
    plan = make_plan(view, Catalog.of([SMALL]), now)
    plan_json(view, plan)
    return "\n".join(plan_lines(view, plan, explain=True)), plan


def test_without_wrong_input_the_node_goes() -> None:
    text, plan = planned([*IDLE, pod()])
    assert plan.groups["default/workers"].outcome == "scale_down", text


@pytest.mark.promise("node-groups-input", runs="input that is wrong in 23 ways")
@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([*IDLE, pod(cpu="much")], BLOCKED + ": unknown", id="quantity of a pod"),
        pytest.param([*IDLE, pod(nodeSelector=["a"])], BLOCKED + ": unknown", id="selector of a pod"),
        pytest.param(
            [group(), node(status={"allocatable": {"cpu": "2x"}}), managed(), *OTHER],
            "Node n1: status.allocatable.cpu",
            id="quantity of a node",
        ),
        pytest.param([group(), node(labels={LABEL: 5}), managed(), *OTHER], "metadata.labels", id="labels of a node"),
        pytest.param([group(minNodes=6), *IDLE[1:]], "minNodes must not be above maxNodes", id="min above max"),
        pytest.param([group(minNodes="two"), *IDLE[1:]], "spec.minNodes", id="min is no number"),
        pytest.param([group(maxNodes=-1), *IDLE[1:]], "spec.maxNodes", id="max is negative"),
        pytest.param([group(offeringIDs=[]), *IDLE[1:]], "spec.offeringIDs", id="no types"),
        pytest.param([group(labels={"a b": "c"}, taints=[{}]), *IDLE[1:]], "spec.taints[0].key", id="taint"),
        pytest.param([group(scaleDownCooldown="soon"), *IDLE[1:]], "spec.scaleDownCooldown", id="duration"),
        pytest.param(
            [group(offeringIDs=["gone"]), pod(on="")],
            "no place for pod shop/web: instance type gone is unknown\n",
            id="unknown type",
        ),
        pytest.param(
            [group(datacenterID="moon"), pod(on="")],
            "instance type small does not exist in moon\n",
            id="unknown datacenter",
        ),
        pytest.param([*IDLE, pod("huge", cpu="64", on=""), pod()], "pod shop/huge: never fits", id="pod too large"),
        pytest.param([*IDLE, pod(), budget(selector={})], BLOCKED + ": pdb", id="budget selects everything"),
        pytest.param(
            [*IDLE, pod(), budget(selector={"matchExpressions": [{"key": "a", "operator": "Near"}]})],
            "selector",
            id="budget cannot be read",
        ),
        pytest.param(
            [group(), node(status={"allocatable": {}}), managed(), *OTHER], "node n1: needed", id="nothing allocatable"
        ),
        pytest.param([group(), node(), *OTHER], BLOCKED + ": unmanaged", id="node that was not created here"),
        pytest.param([*IDLE, pod(owner=False)], BLOCKED + ": bare_pod", id="pod without a controller"),
        pytest.param([*IDLE, managed("n3", "gone"), pod(on="n3")], "default/workers:", id="group is gone"),
        pytest.param(
            [*IDLE[:2], {**managed(), "status": {"phase": "Dancing"}}, *OTHER], "unmanaged", id="phase of a node"
        ),
        pytest.param([group(), {**node(), "spec": {"taints": "all"}}, managed()], "spec.taints", id="taints of a node"),
        pytest.param(
            [group(minNodes=1), group("others"), node(labels={LABEL: "default.others"}), managed(), *OTHER],
            BLOCKED + ": min_nodes",
            id="label of another group",
        ),
        pytest.param(
            [group(minNodes=1), group(namespace="team"), node(), managed(), managed(namespace="team"), *OTHER],
            "VPSieNode team/n1: left alone: metadata.name: node n1 belongs to VPSieNode default/n1 of group default/",
            id="node of two groups",
        ),
    ],
)
def test_wrong_input_is_named_and_removes_no_node(objects: list[Manifest], expected: str) -> None:
    text, plan = planned(objects)
    assert expected in text
    removed = [each.node for decided in plan.groups.values() for each in decided.removals]
    assert removed == [] or expected.startswith(("pod shop/huge", "default/workers:", "selector"))


def test_a_budget_that_selects_nothing_blocks_nothing() -> None:
    _, plan = planned([*IDLE, pod(), budget()])
    assert [each.node for each in plan.groups["default/workers"].removals] == ["n1"]


@pytest.mark.parametrize("hours", [pytest.param(-9000, id="back"), pytest.param(-1.9, id="back a little")])
def test_a_clock_that_was_set_back_removes_nothing_before_its_time(hours: float) -> None:
    objects = [{**group(), "status": {"unneeded": [{"name": "n1", "since": "2026-01-31T10:00:00Z"}]}}, *IDLE[1:], pod()]
    _, plan = planned(objects, NOW + timedelta(hours=hours))
    assert plan.groups["default/workers"].removals == ()


@pytest.mark.parametrize("field", ["requestedAt", "readyAt", "unreadySince"])
def test_times_of_a_node_in_the_future_put_off_nothing_for_ever(field: str) -> None:
    """As those that are left when a clock was wrong, or that a user has written."""

    async def scenario() -> None:
        env = Env(cloud=HostileCloud)
        assert isinstance(env.provider, HostileCloud)
        if field == "requestedAt":
            env.provider.joins_after = None
        await env.set_up(offeringIDs=["small"])
        await env.add_pod("web-0", cpu="900m")
        await env.tick(6)
        (found,) = await env.objects("VPSieNode")
        if field == "unreadySince":
            await env.kill_node(found["metadata"]["name"])
            await env.tick(2)
        await env.patch_status(ObjectKey.of(found), {field: "2099-01-01T00:00:00Z"}, by="user")
        if field == "readyAt":
            await env.remove_pods()
            await env.add_pod("other-0", cpu="1500m")
            await env.tick(2)
            await env.add_pod("web-0", cpu="1900m")
        before = len(env.cloud.requests)
        await env.tick(120)
        assert len(env.cloud.requests) > before

    run(scenario())
