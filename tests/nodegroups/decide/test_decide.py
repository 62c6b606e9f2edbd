"""Properties of whole decisions, and input that is wrong."""

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.nodegroups.decide import Direction, ScalingDecision, decide
from ocf.nodegroups.instance_types import Offering
from ocf.nodegroups.model import Catalog, GroupStatus, NodeGroup, ScaleDownPolicy, TypeChoice
from ocf.nodegroups.predicates import fits
from ocf.nodegroups.rules import movable_pods
from ocf.nodegroups.scale_down import Verdict
from ocf.nodegroups.snapshot import ClusterSnapshot, Node, Taint
from tests.nodegroups.clusters import clusters, pods
from tests.nodegroups.groups import CATALOG, NOW, POOL, group
from tests.nodegroups.manifests import budget, node, pod

LONG_AGO = NOW - timedelta(hours=1)
OLD = GroupStatus(low_since={f"n{number}": LONG_AGO for number in range(9)})


@st.composite
def groups(draw: st.DrawFn) -> NodeGroup:
    """Return a group that owns all nodes, with bounds in any order."""
    policy = ScaleDownPolicy(
        most_empty=draw(st.integers(0, 3)),
        most_with_pods=draw(st.integers(0, 3)),
        cpu_threshold=draw(st.sampled_from([0, 50, 101])),
        memory_threshold=101,
        consolidate=draw(st.booleans()),
    )
    return group(
        member_labels={"kubernetes.io/os": "linux"},
        min_nodes=draw(st.integers(0, 5)),
        max_nodes=draw(st.integers(0, 7)),
        instance_types=draw(
            st.sampled_from([("medium",), ("small", "large"), ("small", "medium", "large"), ("gone",)])
        ),
        zones=draw(st.sampled_from([("a",), ("a", "b")])),
        choice=draw(st.sampled_from(list(TypeChoice))),
        batch_size=draw(st.integers(0, 3)),
        scale_down=policy,
    )


def owned(cluster: dict[str, Any]) -> dict[str, Any]:
    for each in cluster["nodes"]:
        each["metadata"]["labels"]["kubernetes.io/os"] = "linux"
    return cluster


def decided(snapshot: ClusterSnapshot, owner: NodeGroup, status: GroupStatus = OLD) -> ScalingDecision:
    return decide(snapshot, [owner], catalog=CATALOG, now=NOW, statuses={owner.name: status})


ZONE = "topology.kubernetes.io/zone"
SPREAD = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
HOSTS = SPREAD | {"topologyKey": "kubernetes.io/hostname", "maxSkew": 3}


def zones_of(found: ScalingDecision) -> dict[str, int]:
    """Return the number of pods in each zone."""
    where = {new.name: new.template.zone for each in found.scale_up.groups for new in each.add}
    return dict(Counter(where[name] for name in found.scale_up.placements.values()))


ABC = Catalog.of(
    replace(each, offerings=tuple(Offering(zone, each.offerings[0].price) for zone in "abc"))
    for each in CATALOG.types.values()
)


@pytest.mark.parametrize("choice", list(TypeChoice))
@pytest.mark.parametrize(
    "owners",
    [
        pytest.param([("a",), ("b",), ("c",)], id="a group for each zone"),
        pytest.param([("a", "b", "c")], id="one group"),
        pytest.param([("a", "b"), ("c",)], id="two groups"),
    ],
)
@pytest.mark.parametrize("constraints", [[SPREAD], [SPREAD, HOSTS]], ids=["zones", "zones and hosts"])
def test_a_hard_spread_uses_all_zones_from_zero(
    choice: TypeChoice, owners: list[tuple[str, ...]], constraints: list[dict[str, Any]]
) -> None:
    """Reports: https://github.com/Azure/AKS/issues/2389 and https://github.com/Azure/AKS/issues/5212."""
    wanted = [group(f"g{number}", zones=zones, choice=choice) for number, zones in enumerate(owners)]
    waiting = [pod(f"p{number}", topologySpreadConstraints=constraints) for number in range(9)]
    found = decide(ClusterSnapshot.of(pods=waiting), wanted, catalog=ABC, now=NOW)
    assert zones_of(found) == {"a": 3, "b": 3, "c": 3}
    assert sum(len(each.add) for each in found.scale_up.groups) == 3


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param({"max_nodes": 0}, "ab", id="full"),
        pytest.param({"grows": False}, "ab", id="adds no nodes"),
        pytest.param({"instance_types": ("gone",)}, "ab", id="without types"),
        pytest.param({"taints": (Taint("dedicated", "db"),)}, "ab", id="with a taint"),
        pytest.param({"labels": {"tier": "db"}}, "ab", id="without the label"),
        pytest.param({"labels": {"tier": "web"}}, "abc", id="usable"),
    ],
)
def test_a_zone_of_which_no_node_comes_keeps_no_pod_waiting(parts: dict[str, Any], expected: str) -> None:
    wanted = [group(f"g-{zone}", zones=(zone,), labels={"tier": "web"}) for zone in "ab"]
    wanted.append(replace(group("g-c", zones=("c",), labels={"tier": "web"}), **parts))
    selector: dict[str, Any] = {"nodeSelector": {"tier": "web"}}
    waiting = [pod(f"p{number}", topologySpreadConstraints=[SPREAD], **selector) for number in range(4)]
    found = decide(ClusterSnapshot.of(pods=waiting), wanted, catalog=ABC, now=NOW)
    assert (set(zones_of(found)), sum(zones_of(found).values())) == (set(expected), 4)


@pytest.mark.promise("node-groups-safe")
@settings(max_examples=60)
@given(clusters(most_pods=12), groups())
def test_a_decision_is_safe(cluster: dict[str, Any], owner: NodeGroup) -> None:
    snapshot = ClusterSnapshot.of(**owned(cluster))
    decision = decided(snapshot, owner)
    added = [new for each in decision.scale_up.groups for new in each.add]
    removed = [each.node for each in decision.scale_down.removals]
    size = len(snapshot.nodes)
    # Counts stay in bounds, and no reconcile adds and removes.
    assert size + len(added) <= max(size, owner.max_nodes)
    assert not (removed and size - len(removed) < min(owner.min_nodes, owner.max_nodes))
    assert not (added and removed)
    assert not owner.batch_size or len(added) <= owner.batch_size
    assert (decision.direction is Direction.DOWN) is bool(removed)
    # Every pod of a removed node has a place where the scheduler would put it, on a node that stays.
    for name in removed:
        snapshot = snapshot.with_node(replace(snapshot.nodes[name], unschedulable=True))
    for each in decision.scale_down.removals:
        moving = movable_pods(snapshot.pods_on(each.node))
        assert {pod.key for pod in moving} <= set(each.placements)
        assert not set(each.placements.values()) & {each.node}


@pytest.mark.promise("node-groups-evicted")
@settings(max_examples=40)
@given(clusters(most_pods=8), groups())
def test_evicted_pods_fit_where_they_are_placed(cluster: dict[str, Any], owner: NodeGroup) -> None:
    snapshot = ClusterSnapshot.of(**owned(cluster))
    policy = replace(owner.scale_down, most_with_pods=1, most_empty=0)
    decision = decided(snapshot, replace(owner, scale_down=policy))
    for each in decision.scale_down.removals:
        pods = movable_pods(snapshot.pods_on(each.node))
        moved = snapshot.with_node(replace(snapshot.nodes[each.node], unschedulable=True))
        for placed in pods:
            moved = moved.without_pod(placed.key)
        waiting = [each_pod for key, each_pod in snapshot.pods.items() if key in decision.scale_up.placements]
        for key in each.placements:
            moved = moved.place(snapshot.pods[key], each.placements[key])
        for placed in pods:
            # Rules about other pods may depend on the order in which they move.
            if not (placed.shape.spread or placed.shape.affinity) and not waiting:
                assert fits(moved.pods[placed.key], each.placements[placed.key], moved) is None


@pytest.mark.promise("node-groups-order")
@settings(max_examples=40)
@given(clusters(), groups(), st.integers(0, 2**16))
def test_the_order_of_the_input_changes_nothing(cluster: dict[str, Any], owner: NodeGroup, seed: int) -> None:
    cluster = owned(cluster)
    shuffled: dict[str, Any] = {
        key: random.Random(seed).sample(value, len(value))  # noqa: S311
        for key, value in cluster.items()
    }
    assert decided(ClusterSnapshot.of(**cluster), owner) == decided(ClusterSnapshot.of(**shuffled), owner)


@settings(max_examples=40)
@given(clusters(), groups())
def test_repeating_it_while_nodes_boot_asks_for_nothing_more(cluster: dict[str, Any], owner: NodeGroup) -> None:
    owner = replace(owner, batch_size=0)
    first = decided(ClusterSnapshot.of(**owned(cluster)), owner, GroupStatus())
    ordered = [_ordered(new.template.make(new.name)) for each in first.scale_up.groups for new in each.add]
    again = decide(
        ClusterSnapshot.of(**cluster, in_flight=ordered),
        [owner],
        catalog=CATALOG,
        now=NOW,
        statuses=first.statuses,
        nominations=first.scale_up.placements,
    )
    assert not [new for each in again.scale_up.groups for new in each.add]


def test_a_nominated_pod_keeps_its_place_and_only_on_a_node_that_takes_pods() -> None:
    snapshot = ClusterSnapshot.of(
        nodes=[node("n0", cpu="1"), node("n1", cpu="1"), node("n2", unschedulable=True)],
        pods=[pod("web", cpu="1"), pod("api", cpu="1"), pod("db", cpu="64"), pod("runs", cpu="1", on="n1")],
    )
    wanted = {"default/web": "n0", "default/api": "n2", "default/db": "gone", "default/runs": "n0"}
    decision = decide(snapshot, [group()], catalog=CATALOG, now=NOW, nominations=wanted)
    assert decision.nominated == {"default/web": "n0"}
    assert decision.scale_up.placements.keys() == {"default/api"}


def test_pods_that_follow_others_find_a_place_in_the_same_decision() -> None:
    term = {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "leader"}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    follower = pod("follower", cpu="3", labels={"app": "follower"}, affinity={"podAffinity": required})
    leader = pod("leader", cpu="2", labels={"app": "leader"})
    decision = decide(ClusterSnapshot.of(pods=[follower, leader]), [group()], catalog=CATALOG, now=NOW)
    assert decision.scale_up.placements.keys() == {"default/follower", "default/leader"}


def _ordered(made: Node) -> Node:
    return replace(made, labels={**made.labels, "kubernetes.io/os": "linux"})


@settings(max_examples=30)
@given(clusters(), groups())
def test_carried_out_decisions_come_to_rest(cluster: dict[str, Any], owner: NodeGroup) -> None:
    """Adding and removing nodes as decided, with pods moving as planned, ends: the cluster does not flap."""
    owner = replace(owner, scale_down=replace(owner.scale_down, cooldown=timedelta(0)))
    snapshot, status, now = ClusterSnapshot.of(**owned(cluster)), OLD, NOW
    for number in range(60):
        decision = decide(snapshot, [owner], catalog=CATALOG, now=now, statuses={owner.name: status})
        if number > 20 and decision.direction is Direction.NONE:
            break
        names = {}
        for each in decision.scale_up.groups:
            for new in each.add:
                names[new.name] = f"new-{number}-{new.name}"
                made = replace(_ordered(new.template.make(names[new.name])), in_flight=False)
                snapshot = snapshot.with_node(made)
        # The scheduler binds the pods; otherwise a pod with an affinity to them would never fit.
        for key, place in decision.scale_up.placements.items():
            if names.get(place, place) in snapshot.nodes:
                snapshot = snapshot.place(snapshot.pods[key], names.get(place, place))
        for removal in decision.scale_down.removals:
            for left in snapshot.pods_on(removal.node):
                snapshot = snapshot.without_pod(left.key)
            snapshot = snapshot.without_node(removal.node)
        status, now = decision.statuses[owner.name], now + timedelta(minutes=11)
    else:
        pytest.fail("nodes are still being added or removed after 60 reconciles")
    again = decide(snapshot, [owner], catalog=CATALOG, now=now, statuses={owner.name: decision.statuses[owner.name]})
    assert again.direction is Direction.NONE


POOLED = [node(f"n{number}", labels=POOL) for number in range(3)]


@pytest.mark.parametrize(
    ("objects", "parts", "problem"),
    [
        pytest.param({}, {"min_nodes": 9, "max_nodes": 2}, "minNodes 9 is above maxNodes 2", id="bounds"),
        pytest.param({}, {"max_nodes": -5}, "must not be negative", id="negative bounds"),
        pytest.param({}, {"instance_types": ("gone",), "zones": ("nowhere",)}, "", id="unknown types and zones"),
        pytest.param({"pods": [pod(cpu="10k")]}, {}, "", id="a pod larger than any node"),
        pytest.param({"pods": [pod(cpu="1x", on="n0")]}, {}, "Pod default/p: spec.containers[0]", id="quantity"),
        pytest.param({"nodes": [*POOLED, {"metadata": {"name": "bare", "labels": POOL}}]}, {}, "", id="a bare node"),
        pytest.param({"nodes": [{}], "pods": [{}]}, {}, "", id="empty objects"),
        pytest.param({"budgets": [budget(allowed=0, selector={}), {"metadata": {}}]}, {}, "", id="odd budgets"),
        pytest.param({"pods": [pod(on="gone")]}, {}, "", id="a pod on a node that is not there"),
        pytest.param({"pods": [pod(owner="", on="n0")]}, {}, "", id="a bare pod"),
    ],
)
def test_wrong_input_becomes_a_reason_and_deletes_nothing_else(
    objects: dict[str, Any], parts: dict[str, Any], problem: str
) -> None:
    found_objects: dict[str, Any] = {"nodes": POOLED, **objects}
    snapshot = ClusterSnapshot.of(**found_objects)
    decision = decided(snapshot, group(**parts))
    assert problem in "; ".join(decision.problems)
    assert {each.node for each in decision.scale_down.removals} <= {"n0", "n1", "n2"}


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    entries: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        entries = list(value.items())
    elif isinstance(value, list):
        entries = list(enumerate(value))
    return [found for key, part in entries for found in [(*path, key), *_paths(part, (*path, key))]]


JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, -1, True, "", "junk", "1e999", [], {}, ["x"], [None], {"a": 1}, {"key": []}]
)


@given(st.data())
def test_no_field_of_an_object_makes_a_decision_fail(data: st.DataObject) -> None:
    objects = {
        "nodes": [node("n0", labels=POOL), node("n1", labels=POOL, taints=[{"key": "a", "effect": "NoSchedule"}])],
        "pods": [pod("p", on="n0"), pod("q", tolerations=[{"operator": "Exists"}]), data.draw(pods("r"))],
        "budgets": [budget(allowed=1)],
        "namespaces": [{"metadata": {"name": "default", "labels": {"a": "b"}}}],
        "daemon_sets": [{"metadata": {"name": "d"}, "spec": {"template": pod("d", cpu="1")}}],
    }
    *parents, key = data.draw(st.sampled_from([path for path in _paths(objects) if len(path) > 2]))
    part: Any = objects
    for each in parents:
        part = part[each]
    part[key] = data.draw(JUNK)
    keyed: dict[str, Any] = objects
    decision = decided(ClusterSnapshot.of(**keyed), group())
    assert len(decision.scale_up.groups) == 1


def test_groups_that_claim_one_node_leave_it_alone() -> None:
    two = (group(), group("other", member_labels=POOL))
    decision = decide(
        ClusterSnapshot.of(nodes=POOLED), two, catalog=CATALOG, now=NOW, statuses={"workers": OLD, "other": OLD}
    )
    assert {each.reason for each in decision.scale_down.outcomes} == {"contested"}
    assert decision.problems[0] == "node n0: claimed by other and workers"
    assert decision.direction is Direction.NONE


def test_a_name_that_is_used_twice_is_handled_once() -> None:
    decision = decide(ClusterSnapshot(), [group(min_nodes=1), group(min_nodes=5)], catalog=CATALOG, now=NOW)
    assert [len(each.add) for each in decision.scale_up.groups] == [1]
    assert decision.problems == ("group workers: the name is used twice; the first group is used",)


@pytest.mark.parametrize("days", [-3650, 3650])
def test_a_clock_that_jumps_deletes_nothing_with_a_rule_against_it(days: int) -> None:
    then = NOW + timedelta(days=days)
    status = GroupStatus(last_scale_up=then, low_since={"n0": then}).refused("medium", "a", then)
    decision = decided(ClusterSnapshot.of(nodes=POOLED, pods=[pod(owner="", cpu="1m", on="n0")]), group(), status)
    assert "n0" not in {each.node for each in decision.scale_down.removals}


def test_no_catalog_adds_nothing() -> None:
    decision = decide(ClusterSnapshot.of(pods=[pod()]), [group(min_nodes=1)], catalog=Catalog(), now=NOW)
    assert decision.direction is Direction.NONE
    assert decision.scale_up.unplaced[0].reason == "instance type medium is unknown"


def test_a_replacement_comes_before_its_nodes_go() -> None:
    owner = group(
        instance_types=("small", "medium", "large"), scale_down=ScaleDownPolicy(consolidate=True, cooldown=timedelta(0))
    )
    labels = POOL | {"node.kubernetes.io/instance-type": "large", "topology.kubernetes.io/zone": "a"}
    big = node("n0", cpu="16", memory="64Gi", labels=labels, created="2026-01-01T00:00:00Z")
    running = [pod(f"p{number}", on="n0") for number in range(3)]
    first = decided(ClusterSnapshot.of(nodes=[big], pods=running), owner)
    (replacement,) = first.replacements
    (new,) = replacement.new_nodes
    assert (first.direction, replacement.nodes, new.template.instance_type) == (
        Direction.UP,
        ("n0",),
        "medium",
    )
    assert round(replacement.saving, 2) == 0.52
    ordered = new.template.make("n1")
    waiting = decided(
        ClusterSnapshot.of(nodes=[big], pods=running, in_flight=[ordered]), owner, first.statuses["workers"]
    )
    assert waiting.direction is Direction.NONE
    ready = node("n1", cpu="4", memory="16Gi", labels=dict(ordered.labels), created="2026-01-31T11:59:00Z")
    later = decided(ClusterSnapshot.of(nodes=[big, ready], pods=running), owner, first.statuses["workers"])
    assert [each.node for each in later.scale_down.outcomes if each.verdict is Verdict.REMOVE] == ["n0"]
