"""What is learned from the nodes that have joined, and what their types lack."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from ocf.nodegroups.decide import ScalingDecision, decide
from ocf.nodegroups.model import FIRST_GAP, LONGEST_GAP, GroupStatus, TypeGap
from ocf.nodegroups.model.gaps import next_gaps
from ocf.nodegroups.snapshot import ClusterSnapshot, Resources
from tests.nodegroups.groups import CATALOG, GI, NOW, POOL, group
from tests.nodegroups.manifests import node, pod

GAP = TypeGap(instance_type="medium", zone="a", resources={"cpu": 3500})
KIND = ("medium", "a")
NEW = "2026-01-31T11:55:00Z"
OLD = "2026-01-01T00:00:00Z"
TAINT = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}


def joined(name: str = "n0", **parts: Any) -> dict[str, Any]:
    """Return a node of the type medium, which promises 4 CPU and 16 Gi."""
    labels = {"node.kubernetes.io/instance-type": "medium", "topology.kubernetes.io/zone": "a", **POOL}
    extra = parts.pop("labels", {})
    return node(name, **{"cpu": "4", "memory": "16Gi", "created": NEW, **parts}, labels={**labels, **extra})


def full(name: str = "n0") -> dict[str, Any]:
    """Return a pod that leaves no room on a node."""
    return pod(f"full-{name}", cpu="3", on=name)


def daemon_set(cpu: str) -> dict[str, Any]:
    container = {"name": "agent", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [container]}}
    return {"metadata": {"name": "agent", "namespace": "default"}, "spec": {"template": template}}


def decided(status: GroupStatus | None = None, now: datetime = NOW, **objects: Any) -> ScalingDecision:
    statuses = {"workers": status or GroupStatus()}
    return decide(ClusterSnapshot.of(**objects), [group()], catalog=CATALOG, now=now, statuses=statuses)


def added(decision: ScalingDecision) -> int:
    (only,) = decision.scale_up.groups
    return len(only.add)


def texts(decision: ScalingDecision) -> str:
    (only,) = decision.scale_up.groups
    return "; ".join(each.text for each in only.shortfalls)


def agent(name: str, cpu: str) -> dict[str, Any]:
    return pod(f"agent-{name}", cpu=cpu, on=name, owner="DaemonSet", labels={"app": "agent", "hash": "1"})


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        pytest.param(
            {
                "nodes": [joined()],
                "pods": [agent("n0", "1"), full(), pod("web", cpu="3500m")],
                "daemon_sets": [daemon_set("200m")],
            },
            "pods of DaemonSets and static pods use 0.8 CPU more than templates say",
            id="a DaemonSet whose pods are bigger than its template",
        ),
        pytest.param(
            {
                "nodes": [joined()],
                "pods": [
                    pod(
                        "proxy-n0", cpu="500m", on="n0", owner="Node", annotations={"kubernetes.io/config.mirror": "1"}
                    ),
                    full(),
                    pod("web", cpu="3800m"),
                ],
            },
            "use 0.5 CPU more than templates say",
            id="a static pod of each node",
        ),
        pytest.param(
            {"nodes": [joined(cpu="3500m")], "pods": [full(), pod("web", cpu="3800m")]},
            "a node has 3.5 CPU, the type promises 4 CPU",
            id="a smaller node",
        ),
        pytest.param(
            {
                "nodes": [joined("n0", cpu="4", created=OLD), joined("n1", cpu="3500m")],
                "pods": [pod("web", cpu="3800m")],
            },
            "",
            id="a smaller node beside a node with room",
        ),
        pytest.param(
            {
                "nodes": [joined("n0", created=OLD), joined("n1", cpu="3500m")],
                "pods": [full(), full("n1"), pod("web", cpu="3800m")],
            },
            "a node has 3.5 CPU",
            id="the newest node is the model",
        ),
        pytest.param(
            {
                "nodes": [joined("n0", created=OLD, taints=[TAINT]), joined("n1", created=OLD, taints=[TAINT])],
                "pods": [pod("web")],
            },
            "a node has the taint dedicated:NoSchedule",
            id="a taint of all old nodes",
        ),
    ],
)
def test_no_node_is_added_for_a_pod_that_nodes_of_the_type_do_not_take(objects: dict[str, Any], text: str) -> None:
    decision = decided(**objects)
    assert added(decision) == 0
    assert text in texts(decision)
    # The same pod and catalog without such nodes.
    pods = [each for each in objects["pods"] if not each["spec"].get("nodeName")]
    assert added(decided(pods=pods, daemon_sets=objects.get("daemon_sets", ()))) == 1


@pytest.mark.parametrize(
    ("objects", "nodes"),
    [
        pytest.param({"nodes": [joined(created=OLD, taints=[TAINT])], "pods": [pod("web")]}, 1, id="taint of one node"),
        pytest.param(
            {"nodes": [joined(cpu="1", unschedulable=True)], "pods": [pod("web", cpu="3")]}, 1, id="cordoned node"
        ),
        pytest.param({"nodes": [joined(cpu="1", ready=False)], "pods": [pod("web", cpu="3")]}, 1, id="unready node"),
        pytest.param(
            {
                "nodes": [joined(labels={"model": "85"})],
                "pods": [full(), pod("web", cpu="3", nodeSelector={"model": "85"})],
            },
            1,
            id="label that the catalog lacks",
        ),
        pytest.param(
            {
                "nodes": [joined(labels={"csi.example.com/node": "n0"})],
                "pods": [full(), pod("web", cpu="3", nodeSelector={"csi.example.com/node": "n0"})],
            },
            0,
            id="label with the name of the node",
        ),
        pytest.param(
            {"nodes": [joined(cpu="5")], "pods": [pod("full-n0", cpu="5", on="n0"), pod("web", cpu="5")]},
            1,
            id="bigger than promised",
        ),
        pytest.param({"nodes": [joined(cpu="3999m")], "pods": [full(), pod("web", cpu="3")]}, 1, id="pod that fits"),
    ],
)
def test_nodes_are_added_as_those_that_have_joined_show(objects: dict[str, Any], nodes: int) -> None:
    assert added(decided(**objects)) == nodes


def test_pods_are_packed_onto_nodes_in_flight_as_they_will_be() -> None:
    (new,) = decided(pods=[pod("web", cpu="3")]).scale_up.groups[0].add
    in_flight = [new.template.make("n1")]
    pods = [full(), *(pod(f"web-{number}", cpu="2") for number in range(2))]
    assert added(decided(nodes=[joined()], pods=pods, in_flight=in_flight)) == 0
    assert added(decided(nodes=[joined(cpu="3500m")], pods=pods, in_flight=in_flight)) == 1


def test_a_gap_outlasts_the_node_that_showed_it() -> None:
    pods = [full(), pod("web", cpu="3800m")]
    status = decided(nodes=[joined(cpu="3500m")], pods=pods).statuses["workers"]
    assert [(each.resources, each.until) for each in status.gaps] == [({"cpu": 3500}, None)]
    waiting = decided(status, pods=pods[1:])
    (gap,) = waiting.statuses["workers"].gaps
    assert (added(waiting), gap.until) == (0, NOW + FIRST_GAP)
    assert "a node has 3.5 CPU, the type promises 4 CPU" in texts(waiting)
    assert added(decided(waiting.statuses["workers"], NOW + FIRST_GAP, pods=pods[1:])) == 1


@pytest.mark.parametrize(
    ("known", "seen", "expected"),
    [
        pytest.param(None, GAP, (1, None), id="first"),
        pytest.param(GAP, GAP, (1, None), id="a node still shows it"),
        pytest.param(GAP, None, (1, NOW + FIRST_GAP), id="the last node has gone"),
        pytest.param(replace(GAP, failures=3), None, (3, NOW + 4 * FIRST_GAP), id="after three in a row"),
        pytest.param(replace(GAP, failures=9), None, (9, NOW + LONGEST_GAP), id="at most a day"),
        pytest.param(replace(GAP, until=NOW + FIRST_GAP), GAP, (1, None), id="another node before the time is over"),
        pytest.param(replace(GAP, until=NOW), GAP, (2, None), id="another node after it"),
        pytest.param(replace(GAP, until=NOW), None, (1, NOW), id="kept to count the next"),
        pytest.param(replace(GAP, until=NOW - FIRST_GAP), None, None, id="forgotten"),
        pytest.param(GAP, TypeGap(instance_type="medium", zone="a"), None, id="the newest node lacks nothing"),
    ],
)
def test_a_gap_counts_longer_each_time_that_a_new_node_shows_it(
    known: TypeGap | None, seen: TypeGap | None, expected: tuple[int, datetime | None] | None
) -> None:
    found = next_gaps([known] if known else [], {KIND: seen} if seen else {}, NOW)
    assert [(each.failures, each.until) for each in found] == ([] if expected is None else [expected])


def test_a_clock_that_was_set_back_lets_no_gap_count_longer_than_a_day() -> None:
    status = GroupStatus(gaps=(replace(GAP, until=NOW + timedelta(days=30)),)).until(NOW)
    assert status.gaps[0].until == NOW + LONGEST_GAP


def test_a_promised_node_without_what_its_type_lacks() -> None:
    gap = replace(GAP, labels={"disk": "ssd"}, overhead={"cpu": 100, "pods": 1})
    node = ClusterSnapshot.of(nodes=[joined(labels={"disk": "ssd"})]).nodes["n0"]
    found = gap.apply(node)
    assert found.allocatable == Resources(cpu=3400, memory=16 * GI, pods=109)
    assert "disk" not in found.labels


def disks(count: int, *, on: dict[str, int]) -> dict[str, Any]:
    """Return small pods with a disk each: some on nodes, the others pending."""
    names = [f"data-{number}" for number in range(count + sum(on.values()))]
    where = [name for name, number in on.items() for _ in range(number)] + [""] * count
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "claims": [
            {"metadata": {"name": name, "namespace": "default"}, "spec": {**storage, "storageClassName": "disk"}}
            for name in names
        ],
        "storage_classes": [
            {
                "metadata": {"name": "disk"},
                "provisioner": "disk.example.com",
                "volumeBindingMode": "WaitForFirstConsumer",
            }
        ],
        "pods": [
            pod(
                name,
                cpu="10m",
                memory="1Mi",
                on=node_name,
                volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": name}}],
            )
            for name, node_name in zip(names, where, strict=True)
        ],
    }


def csi_node(name: str, count: int | None) -> dict[str, Any]:
    limit = {} if count is None else {"allocatable": {"count": count}}
    return {"metadata": {"name": name}, "spec": {"drivers": [{"name": "disk.example.com", "nodeID": name, **limit}]}}


# https://github.com/kubernetes/autoscaler/issues/4517, https://github.com/digitalocean/csi-digitalocean/issues/314
@pytest.mark.parametrize(
    ("nodes", "limits", "expected"),
    [
        pytest.param({"n0": 2}, {"n0": 2}, 3, id="a full node, and new ones with the same limit"),
        pytest.param({"n0": 1}, {"n0": 2}, 2, id="a place on the node that there is"),
        pytest.param({"n0": 2}, {"n0": 9}, 0, id="room for all"),
        pytest.param({"n0": 2}, {"n0": None}, 0, id="a driver without a limit"),
        pytest.param({"n0": 2}, {}, 0, id="no driver"),
        pytest.param({"n0": 2, "n1": 2}, {"n0": 2, "n1": 5}, 1, id="the newest node is the model"),
        pytest.param({"n0": 2, "n1": 5}, {"n0": 2}, 0, id="a new node whose driver has not registered itself"),
    ],
)
def test_pods_beyond_the_limit_of_attached_volumes_get_nodes(
    nodes: dict[str, int], limits: dict[str, int | None], expected: int
) -> None:
    snapshot: dict[str, Any] = {
        "nodes": [joined(name, created=OLD if name == "n0" else NEW) for name in nodes],
        "csi_nodes": [csi_node(name, count) for name, count in limits.items()],
    }
    assert added(decided(**snapshot, **disks(5, on=nodes))) == expected


def test_a_new_node_has_the_limit_of_a_node_whose_driver_has_registered_itself() -> None:
    nodes = [joined("n0", created=OLD), joined("n1", created=NEW)]
    objects = disks(4, on={"n0": 2})
    objects["pods"].append(pod("full", cpu="4", on="n1"))
    assert added(decided(nodes=nodes, csi_nodes=[csi_node("n0", 2)], **objects)) == 2


def test_a_pod_with_more_volumes_than_any_node_attaches_adds_none() -> None:
    objects = disks(2, on={"n0": 1})
    one, other = objects["pods"][-2:]
    one["spec"]["volumes"] += [{**each, "name": "more"} for each in other["spec"]["volumes"]]
    del objects["pods"][-1]
    decision = decided(nodes=[joined("n0")], csi_nodes=[csi_node("n0", 1)], **objects)
    assert added(decision) == 0
    (unplaced,) = decision.scale_up.unplaced
    assert "node(s) exceed max volume count" in unplaced.reason
