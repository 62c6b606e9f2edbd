"""Scale-down: utilization, order, safety rules and limits."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.nodegroups.decide import decide
from ocf.nodegroups.model import GroupStatus, NodeGroup, ScaleDownPolicy, UtilizationSource
from ocf.nodegroups.rules import Blocked, SafetyRule
from ocf.nodegroups.scale_down import (
    CandidateOutcome,
    Utilization,
    Verdict,
    is_sick,
    removal_order,
    select_nodes_to_delete,
    utilization_of,
)
from ocf.nodegroups.snapshot import ClusterSnapshot, Node, Resources
from tests.nodegroups.clusters import HOST, REQUIRED
from tests.nodegroups.groups import CATALOG, NOW, POOL, group
from tests.nodegroups.manifests import budget, node, pod

OLD = GroupStatus(low_since={f"n{number}": NOW - timedelta(hours=1) for number in range(9)})
NO_COOLDOWN = ScaleDownPolicy(cooldown=timedelta(0))


def outcomes(
    *pods: dict[str, Any],
    nodes: int | list[dict[str, Any]] = 2,
    owner: NodeGroup | None = None,
    status: GroupStatus = OLD,
    rules: tuple[SafetyRule, ...] = (),
    **objects: Any,
) -> dict[str, CandidateOutcome]:
    """Return the outcome of each node; the group may remove nodes with pods, and n1 is kept by its pods."""
    made = [node(f"n{number}", labels=POOL) for number in range(nodes)] if isinstance(nodes, int) else nodes
    snapshot = ClusterSnapshot.of(nodes=made, pods=pods, **objects)
    decision = decide(snapshot, [owner or group()], catalog=CATALOG, now=NOW, statuses={"workers": status}, rules=rules)
    return {each.node: each for each in decision.scale_down.outcomes}


def reason(*pods: dict[str, Any], **parts: Any) -> str:
    """Return why node n0 stays; empty if it is removed. Node n1 is in use."""
    busy = pod("busy", cpu="2", memory="100Mi", on="n1", labels={"app": "busy"})
    found = outcomes(*pods, busy, **parts)["n0"]
    return "" if found.verdict is Verdict.REMOVE else found.reason


def on(name: str = "p", **parts: Any) -> dict[str, Any]:
    return pod(name, on="n0", **({"cpu": "500m", "memory": "100Mi"} | parts))


def volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "data", **source}]}


def alone() -> dict[str, Any]:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
    return {"podAntiAffinity": {REQUIRED: [term]}}


CLAIM = {
    "metadata": {"name": "data", "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
    "spec": {"volumeName": "v"},
    "status": {"phase": "Bound"},
}
USES = volume(persistentVolumeClaim={"claimName": "data"})
SYSTEM = {"namespace": "kube-system"}
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(reason(), "", id="no pods"),
        pytest.param(reason(on()), "", id="pods that fit elsewhere"),
        pytest.param(reason(on(**volume(hostPath={"path": "/a"}))), "local_storage", id="hostPath"),
        pytest.param(reason(on(**volume(emptyDir={}))), "local_storage", id="emptyDir"),
        pytest.param(reason(on(**volume(emptyDir={"medium": "Memory"}))), "local_storage", id="emptyDir in memory"),
        pytest.param(reason(on(**volume(configMap={"name": "c"}))), "", id="ConfigMap"),
        pytest.param(
            reason(
                on(**USES),
                claims=[CLAIM],
                volumes=[{"metadata": {"name": "v"}, "spec": {"local": {"path": "/a"}}}],
            ),
            "local_storage",
            id="local claim",
        ),
        pytest.param(
            reason(on(**USES), claims=[CLAIM], volumes=[{"metadata": {"name": "v"}, "spec": {"csi": {}}}]),
            "",
            id="remote claim",
        ),
        pytest.param(
            reason(on(**volume(emptyDir={}), annotations={SAFE: "true"})), "", id="local storage that is safe to lose"
        ),
        pytest.param(
            reason(on(**volume(emptyDir={}), annotations={f"{SAFE}-local-volumes": "data"})), "", id="named as safe"
        ),
        pytest.param(reason(pod("o", on="n1", **volume(emptyDir={}))), "", id="local storage on another node"),
        pytest.param(
            reason(on("proxy", owner="DaemonSet", **volume(hostPath={"path": "/a"}))), "", id="DaemonSet with hostPath"
        ),
        pytest.param(reason(on("etcd-0", **SYSTEM)), "system_pods", id="control plane"),
        pytest.param(reason(on("etcd-0")), "", id="the same name elsewhere"),
        pytest.param(reason(on("coredns", **SYSTEM)), "", id="other system pods"),
        pytest.param(reason(on(), budgets=[budget(allowed=0)]), "pdb", id="budget"),
        pytest.param(reason(on(), budgets=[budget(allowed=0, selector={})]), "pdb", id="budget for all pods"),
        pytest.param(reason(on(), budgets=[{"metadata": {"name": "b"}, "spec": {}}]), "", id="budget without selector"),
        pytest.param(reason(on(), budgets=[budget(allowed=0, namespace="shop")]), "", id="budget of another namespace"),
        pytest.param(reason(on("a"), on("b"), budgets=[budget(allowed=1)]), "", id="two pods and one disruption"),
        pytest.param(reason(on(), budgets=[budget("a", allowed=1), budget("b", allowed=0)]), "pdb", id="any budget"),
        pytest.param(reason(on(), budgets=[budget("a", allowed=1), budget("b", allowed=1)]), "pdb", id="two budgets"),
        pytest.param(
            reason(on(cpu="1500m"), on("q", cpu="400m"), pod("full", on="n1", cpu="1")), "capacity", id="size"
        ),
        pytest.param(reason(on(nodeSelector={HOST: "n0"})), "affinity", id="selector"),
        pytest.param(reason(on(affinity=alone()), pod("o", cpu="1", on="n1")), "affinity", id="anti-affinity"),
        pytest.param(
            reason(on(), nodes=[node("n0", labels=POOL), node("n1", labels=POOL, unschedulable=True)]),
            "affinity",
            id="a cordoned node has no room",
        ),
        pytest.param(
            reason(on(), nodes=[node("n0", labels=POOL), node("n1", labels=POOL, ready=False)]),
            "capacity",
            id="a node that is not ready has no room",
        ),
        pytest.param(reason(owner=group(min_nodes=2)), "min_nodes", id="minimum"),
        pytest.param(reason(owner=group(min_nodes=1)), "", id="above the minimum"),
        pytest.param(
            reason(status=GroupStatus(low_since=OLD.low_since, last_scale_up=NOW - timedelta(seconds=300))),
            "cooldown",
            id="cooldown after adding",
        ),
        pytest.param(
            reason(status=GroupStatus(low_since=OLD.low_since, last_scale_down=NOW - timedelta(seconds=600))),
            "",
            id="exactly over",
        ),
        pytest.param(
            reason(owner=group(scale_down=NO_COOLDOWN), status=GroupStatus(low_since=OLD.low_since, last_scale_up=NOW)),
            "",
            id="no cooldown",
        ),
        pytest.param(
            reason(nodes=[node("n0", labels=POOL, annotations={"ocf.dev/protected": "true"}), node("n1", labels=POOL)]),
            "protected",
            id="protected",
        ),
        pytest.param(reason(on(annotations={SAFE: "false"})), "safe_to_evict", id="not safe to evict"),
        pytest.param(reason(on(owner="")), "bare_pod", id="bare pod"),
        pytest.param(reason(on(owner="", annotations={SAFE: "true"})), "", id="bare pod that is safe to evict"),
        pytest.param(
            reason(on(annotations={"karpenter.sh/do-not-disrupt": "true"})), "do_not_disrupt", id="do not disrupt"
        ),
        pytest.param(reason(on(cpu="x")), "unknown", id="a pod that cannot be read"),
        pytest.param(
            reason(on(**volume(emptyDir={}), annotations={SAFE: "false"}), budgets=[budget(allowed=0)]),
            "pdb",
            id="the first rule",
        ),
        pytest.param(
            reason(rules=(SafetyRule("night", lambda _: Blocked("night", "it is night")),)),
            "night",
            id="a rule of the user",
        ),
        pytest.param(reason(on(cpu="2")), "utilized", id="half used"),
        pytest.param(reason(on(cpu="1", memory="5Gi")), "utilized", id="memory in use"),
        pytest.param(
            reason(status=GroupStatus(low_since={"n0": NOW - timedelta(seconds=599)})),
            "duration",
            id="too short a time",
        ),
        pytest.param(reason(owner=group(scale_down=ScaleDownPolicy(enabled=False))), "disabled", id="disabled"),
        pytest.param(reason(owner=group(member_labels={"pool": "other"})), "no_group", id="not in the group"),
        pytest.param(reason(on(), pod("new", cpu="4")), "stopped", id="adding first"),
    ],
)
def test_the_first_rule_that_blocks_gives_the_reason(found: str, expected: str) -> None:
    assert found == expected


def test_empty_nodes_come_first_and_others_one_at_a_time() -> None:
    pods = [pod(f"p{number}", cpu="100m", memory="1Mi", on=f"n{number}") for number in range(3)]
    found = outcomes(*pods, nodes=6, owner=group(min_nodes=0))
    removed = {name for name, each in found.items() if each.verdict is Verdict.REMOVE}
    assert removed == {"n3", "n4", "n5", "n0"}
    assert found["n1"].reason == "limit"


def test_a_surplus_is_removed_without_waiting() -> None:
    found = outcomes(nodes=4, owner=group(max_nodes=2), status=GroupStatus())
    assert [name for name, each in found.items() if each.verdict is Verdict.REMOVE] == ["n0", "n1"]
    assert found["n0"].reason == "surplus"


def test_two_nodes_do_not_count_on_the_same_room() -> None:
    pods = [pod(f"p{number}", cpu="1500m", memory="1Mi", on=f"n{number}") for number in range(3)]
    policy = ScaleDownPolicy(most_with_pods=5)
    found = outcomes(*pods, nodes=3, owner=group(scale_down=policy))
    assert [each.verdict.value for each in found.values()] == ["remove", "blocked", "blocked"]


def test_the_pods_of_a_node_that_is_being_drained_need_room() -> None:
    pods = [pod(f"p{number}", cpu="1500m", memory="1Mi", on=f"n{number}") for number in range(2)]
    busy = pod("busy", cpu="2", on="n2")
    nodes = [node(f"n{number}", labels=POOL, unschedulable=number == 0) for number in range(3)]
    low = GroupStatus(low_since={"n1": OLD.low_since["n1"]})
    two = group(scale_down=ScaleDownPolicy(most_with_pods=2))
    assert outcomes(*pods, busy, nodes=nodes, owner=two, status=low)["n1"].verdict is Verdict.REMOVE
    found = outcomes(*pods, busy, nodes=nodes, owner=two, status=replace(low, draining=frozenset({"n0"})))
    assert [found[name].reason for name in ("n0", "n1")] == ["draining", "capacity"]


def test_places_are_those_after_all_drains() -> None:
    pods = [pod(f"p{number}", cpu="100m", memory="1Mi", on=f"n{number}") for number in range(4)]
    found = outcomes(*pods, nodes=4, owner=group(scale_down=ScaleDownPolicy(most_with_pods=3)))
    places = {name: dict(each.placements) for name, each in found.items()}
    assert places == {f"n{number}": {f"default/p{number}": "n3"} for number in range(3)} | {"n3": {}}


def test_budgets_count_over_all_nodes_of_a_reconcile() -> None:
    pods = [pod(f"p{number}", cpu="100m", memory="1Mi", on=f"n{number}") for number in range(3)]
    policy = ScaleDownPolicy(most_with_pods=5)
    found = outcomes(*pods, nodes=4, owner=group(scale_down=policy), budgets=[budget(allowed=1)])
    assert [found[f"n{number}"].reason for number in range(3)] == ["underutilized", "pdb", "pdb"]


@pytest.mark.parametrize(
    ("count", "removed"), [pytest.param(5, False, id="5 on 5 nodes"), pytest.param(3, True, id="3 on 5 nodes")]
)
def test_pods_that_spread_need_a_free_node(count: int, removed: bool) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": HOST,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    pods = [
        pod(f"p{number}", cpu="100m", on=f"n{number}", topologySpreadConstraints=[spread]) for number in range(count)
    ]
    found = outcomes(*pods, nodes=5, owner=group(min_nodes=4, scale_down=ScaleDownPolicy(most_empty=0)))
    assert (found["n0"].verdict is Verdict.REMOVE) is removed


def test_waiting_pods_keep_the_room_that_they_need() -> None:
    waiting = pod("w", cpu="2", memory="1Mi")
    mine = pod("p", cpu="1500m", memory="1Mi", on="n0")
    busy = pod("busy", cpu="2", on="n1")
    assert outcomes(mine, busy)["n0"].verdict is Verdict.REMOVE
    assert outcomes(mine, busy, waiting)["n0"].reason == "capacity"


@pytest.mark.parametrize(
    ("unready", "count", "sick"),
    [
        pytest.param(4, 8, True, id="half of them"),
        pytest.param(4, 9, False, id="44 percent"),
        pytest.param(3, 4, False, id="three nodes"),
        pytest.param(0, 0, False, id="no nodes"),
    ],
)
def test_a_sick_cluster_loses_no_nodes(unready: int, count: int, sick: bool) -> None:
    nodes = [node(f"n{number}", labels=POOL, ready=number >= unready) for number in range(count)]
    assert bool(is_sick(ClusterSnapshot.of(nodes=nodes))) is sick
    found = outcomes(nodes=nodes, owner=group(min_nodes=0)) if count else {}
    assert any(each.verdict is Verdict.REMOVE for each in found.values()) is (not sick and count > 0)


def test_how_long_a_node_is_underutilized_survives_in_the_status() -> None:
    snapshot = ClusterSnapshot.of(nodes=[node("n0", labels=POOL)], pods=[])
    first = decide(snapshot, [group()], catalog=CATALOG, now=NOW)
    assert first.statuses["workers"].low_since == {"n0": NOW}
    later = decide(snapshot, [group()], catalog=CATALOG, now=NOW + timedelta(minutes=10), statuses=first.statuses)
    assert [each.node for each in later.scale_down.removals] == ["n0"]
    assert later.statuses["workers"].draining == {"n0"}
    busy = ClusterSnapshot.of(nodes=[node("n0", labels=POOL)], pods=[pod(cpu="3", on="n0")])
    assert (
        decide(busy, [group()], catalog=CATALOG, now=NOW, statuses=first.statuses).statuses["workers"].low_since == {}
    )


def test_utilization_by_requests_or_by_use() -> None:
    snapshot = ClusterSnapshot.of(
        nodes=[node("n1")], pods=[pod(cpu="1", memory="2Gi", on="n1")], usage={"n1": Resources(cpu=3000, memory=2**30)}
    )
    found = snapshot.nodes["n1"]
    assert utilization_of(found, snapshot) == Utilization(25.0, 25.0)
    assert utilization_of(found, snapshot, UtilizationSource.USAGE) == Utilization(75.0, 12.5)
    assert utilization_of(Node(name="n2"), snapshot) is None
    unmeasured = ClusterSnapshot.of(nodes=[node("n1")])
    assert utilization_of(unmeasured.nodes["n1"], unmeasured, UtilizationSource.USAGE) is None


def test_a_node_without_allocatable_resources_is_not_underutilized() -> None:
    assert outcomes(nodes=[node("n0", labels=POOL, cpu="0")], status=GroupStatus())["n0"].reason == "utilized"


def at(hour: int) -> datetime:
    return datetime(2026, 1, 1, hour, tzinfo=UTC)


def test_nodes_that_are_not_ready_then_old_then_least_used_ones_go_first() -> None:
    nodes = [
        Node(name="young", created=at(3)),
        Node(name="young-unready", created=at(3), ready=False),
        Node(name="old", created=at(1)),
        Node(name="old-unready", created=at(1), ready=False),
        Node(name="old-idle", created=at(1)),
    ]
    used = {"old": Utilization(40, 10), "old-idle": Utilization(10, 20)}
    assert [each.name for each in select_nodes_to_delete(nodes, 5, used)] == [
        "old-unready",
        "young-unready",
        "old-idle",
        "old",
        "young",
    ]
    assert select_nodes_to_delete(nodes, -1) == ()


@given(
    st.permutations([Node(name=f"n{number}", ready=bool(number % 2), created=at(number // 2)) for number in range(6)])
)
def test_the_order_is_total(nodes: list[Node]) -> None:
    keys = [removal_order(each, None) for each in nodes]
    assert len(set(keys)) == len(keys)
    assert sorted(nodes, key=lambda each: removal_order(each, None)) == list(select_nodes_to_delete(nodes[::-1], 6))
