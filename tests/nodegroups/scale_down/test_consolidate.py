"""Consolidation: replacements, from the plan until the replaced nodes are gone."""

import math
import random
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.nodegroups.decide import Direction, ScalingDecision, decide
from ocf.nodegroups.instance_types import Offering
from ocf.nodegroups.model import Catalog, GroupStatus, NodeGroup, ScaleDownPolicy, assign_nodes
from ocf.nodegroups.scale_down import Verdict
from ocf.nodegroups.scale_down.consolidate import Replacement, plan_replacement
from ocf.nodegroups.selection import Learned
from ocf.nodegroups.snapshot import ClusterSnapshot, Node
from ocf.objects import format_time
from tests.nodegroups.groups import CATALOG, NOW, POOL, group
from tests.nodegroups.karpenter.parts import HOST, ZONE, Json, node_affinity, pods, pool, required, spread, types
from tests.nodegroups.karpenter.replay import Cluster
from tests.nodegroups.manifests import node, pod

ALL = ("small", "medium", "large")
EXAMPLES = settings().max_examples // 4  # each consolidates a cluster to its rest
LONG_AGO = "2026-01-01T00:00:00Z"
POLICY = ScaleDownPolicy(consolidate=True, cooldown=timedelta(0), most_with_pods=9)
SIZES = {"small": ("2", "8Gi"), "medium": ("4", "16Gi"), "large": ("16", "64Gi")}


def owner(**parts: Any) -> NodeGroup:
    fields: dict[str, Any] = {"instance_types": ALL, "scale_down": POLICY, **parts}
    return group(**fields)


def typed(name: str, instance_type: str, **parts: Any) -> dict[str, Any]:
    labels = POOL | {"node.kubernetes.io/instance-type": instance_type, "topology.kubernetes.io/zone": "a"}
    cpu, memory = SIZES[instance_type]
    return node(name, cpu=cpu, memory=memory, labels=labels, **({"created": LONG_AGO} | parts))


def planned(
    snapshot: ClusterSnapshot,
    wanted: NodeGroup,
    status: GroupStatus | None = None,
    *,
    catalog: Catalog = CATALOG,
    now: datetime = NOW,
) -> Replacement | None:
    return plan_replacement(
        snapshot,
        wanted,
        membership=assign_nodes((wanted,), snapshot),
        status=status or GroupStatus(),
        learned=Learned(catalog=catalog),
        now=now,
    )


def decided(snapshot: ClusterSnapshot, wanted: NodeGroup, status: GroupStatus) -> ScalingDecision:
    return decide(snapshot, [wanted], catalog=CATALOG, now=NOW, statuses={wanted.name: status})


@pytest.mark.parametrize(
    ("nodes", "running", "parts", "expected"),
    [
        pytest.param([typed("n0", "large")], 3, {}, (("n0",), ["medium"]), id="one by one"),
        pytest.param([typed("n0", "large")], 5, {}, (("n0",), ["medium", "small"]), id="one by two"),
        pytest.param([typed("n0", "large")], 15, {}, None, id="a full node stays"),
        pytest.param([typed("n0", "medium")], 4, {}, None, id="the cheapest stays"),
        pytest.param([typed("n0", "large")], 3, {"max_nodes": 1}, None, id="no room for the new one beside the old"),
        pytest.param([typed("n0", "large")], 3, {"instance_types": ("large",)}, None, id="no cheaper type"),
        pytest.param([typed("n0", "large", created="2026-01-31T11:59:00Z")], 3, {}, None, id="a young node stays"),
        pytest.param(
            [typed("n0", "large", annotations={"ocf.dev/protected": "true"})], 3, {}, None, id="a protected one stays"
        ),
    ],
)
def test_the_replacement_that_saves_most(
    nodes: list[dict[str, Any]], running: int, parts: dict[str, Any], expected: tuple[tuple[str, ...], list[str]] | None
) -> None:
    snapshot = ClusterSnapshot.of(nodes=nodes, pods=[pod(f"p{number}", on="n0") for number in range(running)])
    found = planned(snapshot, owner(**parts))
    assert (found and (found.nodes, sorted(new.template.instance_type for new in found.new_nodes))) == expected


def priced(factor: float) -> Catalog:
    """Return the types with their prices multiplied."""
    found = CATALOG.types.items()
    return Catalog(
        {
            name: replace(kind, offerings=tuple(replace(each, price=each.price * factor) for each in kind.offerings))
            for name, kind in found
        }
    )


@pytest.mark.parametrize("wanted", [ALL, ("large",)], ids=["cheaper types", "one type"])
@pytest.mark.parametrize(
    ("factor", "replaces"),
    [
        pytest.param(1e-9, True, id="tiny"),
        pytest.param(1e9, True, id="huge"),
        pytest.param(0.0, False, id="none"),
        pytest.param(-1.0, False, id="negative"),
        pytest.param(math.nan, False, id="not a number"),
        pytest.param(math.inf, False, id="infinite"),
    ],
)
def test_a_saving_is_a_part_of_the_price(factor: float, wanted: tuple[str, ...], *, replaces: bool) -> None:
    snapshot = ClusterSnapshot.of(nodes=[typed("n0", "large")], pods=[pod(f"p{each}", on="n0") for each in range(3)])
    found = planned(snapshot, owner(instance_types=wanted), catalog=priced(factor))
    assert (found is not None) is (replaces and wanted == ALL)


def test_a_node_in_one_zone_is_replaced_by_one_in_one_zone() -> None:
    """Pods that spread over zones would use both zones that the group offers, which costs as much as the node.

    https://github.com/kubernetes-sigs/karpenter/issues/1962
    """
    running = [
        pod(f"p{number}", cpu="900m", on="n0", topologySpreadConstraints=spread("web", ZONE)) for number in range(2)
    ]
    found = planned(ClusterSnapshot.of(nodes=[typed("n0", "medium")], pods=running), owner(zones=("a", "b")))
    assert found is not None
    assert [new.template.instance_type for new in found.new_nodes] == ["small"]


def not_on(*instance_types: str) -> Json:
    """Return affinity that keeps pods that run on nodes of these types from moving to others of them."""
    return {"affinity": node_affinity("node.kubernetes.io/instance-type", "NotIn", *instance_types)}


def test_a_node_is_replaced_although_no_set_of_nodes_can_be() -> None:
    """Fewer nodes for several would save more, but the group has to keep its number of nodes."""
    nodes = [typed(f"n{number:02}", "medium") for number in range(40)]
    running = [pod(f"p{number}", on=f"n{number:02}", **not_on("medium")) for number in range(40)]
    found = planned(ClusterSnapshot.of(nodes=nodes, pods=running), owner(min_nodes=40, max_nodes=80))
    assert found is not None
    assert (len(found.nodes), [new.template.instance_type for new in found.new_nodes]) == (1, ["small"])


@pytest.mark.parametrize("number", [60, 120])
def test_each_node_of_a_large_group_is_looked_at_in_time(number: int) -> None:
    """The others waste more, but no cheaper type takes their pods."""
    nodes = [typed(f"n{each:03}", "large") for each in range(number)]
    running = [pod(f"p{each}", on=f"n{each:03}", **not_on(*ALL)) for each in range(number)]
    nodes.append(typed("z", "medium", created="2026-01-30T00:00:00Z"))
    running.append(pod("z", on="z", **not_on("medium", "large")))
    snapshot, wanted = ClusterSnapshot.of(nodes=nodes, pods=running), owner(max_nodes=200)
    found = [planned(snapshot, wanted, now=NOW + timedelta(minutes=minute)) for minute in range(2)]
    assert {each.nodes for each in found if each is not None} == {("z",)}


def replacements(policy: ScaleDownPolicy, swing: float) -> int:
    """Return how many nodes are replaced in a day in which the prices of two equal types change every hour."""
    chance = random.Random(1)  # noqa: S311 (not secret)
    kind, created, count = "medium", NOW - timedelta(days=1), 0
    for hour in range(24):
        prices = {name: 0.2 * (1 + chance.uniform(-swing, swing)) for name in ("medium", "twin")}
        kinds = {
            name: replace(CATALOG.types["medium"], name=name, offerings=(Offering("a", price),))
            for name, price in prices.items()
        }
        catalog = Catalog.of(kinds.values())
        wanted = owner(instance_types=tuple(kinds), scale_down=policy)
        labels = POOL | {"node.kubernetes.io/instance-type": kind, "topology.kubernetes.io/zone": "a"}
        there = node("n0", cpu="4", memory="16Gi", labels=labels, created=format_time(created))
        snapshot = ClusterSnapshot.of(nodes=[there], pods=[pod("p", cpu="3", on="n0")])
        now = NOW + timedelta(hours=hour)
        found = planned(snapshot, wanted, catalog=catalog, now=now)
        if found is not None:
            kind, created, count = found.new_nodes[0].template.instance_type, now, count + 1
    return count


@pytest.mark.parametrize(
    ("swing", "parts", "most"),
    [
        pytest.param(0.05, {}, 0, id="prices that swing by 5 % move nothing"),
        pytest.param(0.5, {"replace_after": timedelta(hours=8)}, 3, id="a node stays for its time"),
    ],
)
def test_prices_that_swing_move_few_pods(swing: float, parts: dict[str, Any], most: int) -> None:
    """Each small saving moves all pods of a node.

    https://github.com/kubernetes-sigs/karpenter/issues/1440
    https://github.com/kubernetes-sigs/karpenter/issues/2720
    https://github.com/aws/karpenter-provider-aws/issues/7146
    """
    restless = replacements(replace(POLICY, saving_threshold=1, replace_after=timedelta(0)), swing)
    assert most < restless
    assert replacements(replace(POLICY, **parts), swing) <= most


@pytest.mark.parametrize(
    ("threshold", "moves"), [pytest.param(50, True, id="enough"), pytest.param(51, False, id="too little")]
)
def test_a_replacement_saves_at_least_the_threshold(threshold: float, *, moves: bool) -> None:
    snapshot = ClusterSnapshot.of(nodes=[typed("n0", "medium")], pods=[pod("p", on="n0")])
    policy = replace(POLICY, saving_threshold=threshold)
    assert (planned(snapshot, owner(scale_down=policy)) is not None) is moves


@pytest.mark.parametrize(
    ("age", "moves"), [pytest.param(60, True, id="old enough"), pytest.param(59, False, id="too young")]
)
def test_a_node_is_replaced_after_its_time_and_removed_before(age: int, *, moves: bool) -> None:
    created = format_time(NOW - timedelta(minutes=age))
    young = typed("n0", "medium", created=created)
    assert (planned(ClusterSnapshot.of(nodes=[young], pods=[pod("p", on="n0")]), owner()) is not None) is moves
    idle = decided(ClusterSnapshot.of(nodes=[young, typed("n1", "small")]), owner(), GroupStatus())
    assert {each.node for each in idle.scale_down.removals} == {"n0", "n1"}


def test_a_group_keeps_its_fewest_nodes() -> None:
    nodes = [typed(f"n{number}", "medium") for number in range(4)]
    running = [pod(f"p{number}", cpu="3", memory="1Gi", on=f"n{number}") for number in range(4)]
    cheap = replace(CATALOG.types["large"], offerings=(replace(CATALOG.types["large"].offerings[0], price=0.3),))
    catalog = replace(CATALOG, types={**CATALOG.types, "large": cheap})
    snapshot = ClusterSnapshot.of(nodes=nodes, pods=running)

    def plan(fewest: int) -> Replacement | None:
        wanted = owner(min_nodes=fewest)
        membership = assign_nodes((wanted,), snapshot)
        return plan_replacement(
            snapshot, wanted, membership=membership, status=GroupStatus(), learned=Learned(catalog=catalog), now=NOW
        )

    found = plan(1)
    assert found is not None
    assert (len(found.nodes), len(found.new_nodes)) == (4, 1)
    assert round(found.saving, 9) == 0.5
    kept = plan(2)
    assert kept is None or 4 - len(kept.nodes) + len(kept.new_nodes) >= 2


def test_nothing_is_replaced_while_nodes_of_a_replacement_are_there() -> None:
    snapshot = ClusterSnapshot.of(nodes=[typed("n0", "large")], pods=[pod("p", on="n0")])
    assert planned(snapshot, owner()) is not None
    assert planned(snapshot, owner(), GroupStatus(replaced=frozenset({"n0"}))) is None


REPLACING = GroupStatus(last_scale_up=NOW - timedelta(minutes=1), replaced=frozenset({"n0"}))
RUNNING = [pod(f"p{number}", on="n0") for number in range(3)]


def test_only_replaced_nodes_go_while_they_are_there() -> None:
    """Even a node without pods stays: it may be the one that was added for them."""
    nodes = [typed("n0", "large"), typed("n1", "medium"), typed("n2", "small")]
    found = decided(ClusterSnapshot.of(nodes=nodes, pods=RUNNING), owner(), REPLACING)
    outcomes = {each.node: (each.verdict, each.reason) for each in found.scale_down.outcomes}
    assert outcomes == {
        "n0": (Verdict.REMOVE, "replaced"),
        "n1": (Verdict.WAITS, "replacing"),
        "n2": (Verdict.WAITS, "replacing"),
    }


def test_nodes_are_replaced_once_the_new_ones_are_ready() -> None:
    new = Node(name="n1", labels=POOL, allocatable=CATALOG.allocatable("medium"))
    snapshot = ClusterSnapshot.of(nodes=[typed("n0", "large")], pods=RUNNING, in_flight=[new])
    found = decided(snapshot, owner(), REPLACING)
    assert found.direction is Direction.NONE
    assert found.statuses["workers"].replaced == {"n0"}
    (outcome,) = (each for each in found.scale_down.outcomes if each.node == "n0")
    assert (outcome.verdict, outcome.message) == (Verdict.WAITS, "the nodes that replace it are on their way")


def test_the_pods_of_all_replaced_nodes_are_placed_together() -> None:
    """One after the other, the small pods of the first node take the room that the large one of the second needs."""
    nodes = [typed("n0", "medium"), typed("n1", "medium"), typed("n2", "medium"), typed("n3", "small")]
    running = [
        pod("small-0", cpu="1500m", on="n0"),
        pod("small-1", cpu="1500m", on="n0"),
        pod("large", cpu="2500m", on="n1"),
    ]
    status = replace(REPLACING, replaced=frozenset({"n0", "n1"}))
    found = decided(ClusterSnapshot.of(nodes=nodes, pods=running), owner(), status)
    assert {each.node for each in found.scale_down.removals} == {"n0", "n1"}
    places = {key: name for each in found.scale_down.removals for key, name in each.placements.items()}
    assert places["default/large"] == "n2"


@pytest.mark.parametrize(
    ("taken", "age", "replaced"),
    [
        pytest.param("1", 1, True, id="the room is there"),
        pytest.param("3", 1, False, id="another pod took the room"),
        pytest.param("1", 61, True, id="late, but they go"),
    ],
)
def test_a_replacement_is_given_up_once_its_nodes_cannot_go(taken: str, age: int, *, replaced: bool) -> None:
    nodes = [typed("n0", "large"), typed("n1", "medium")]
    running = [*RUNNING, pod("other", cpu=taken, on="n1")]
    status = replace(REPLACING, last_scale_up=NOW - timedelta(minutes=age))
    found = decided(ClusterSnapshot.of(nodes=nodes, pods=running), owner(), status)
    assert ("n0" in {each.node for each in found.scale_down.removals}) is replaced


def test_a_replacement_without_progress_is_given_up_after_an_hour() -> None:
    held = pod("held", on="n0", annotations={"karpenter.sh/do-not-disrupt": "true"})
    nodes = [typed("n0", "large"), typed("n1", "medium")]
    snapshot = ClusterSnapshot.of(nodes=nodes, pods=[held], in_flight=[Node(name="n2", labels=POOL)])
    for age, expected in ((60, {"n0"}), (61, set[str]())):
        status = replace(REPLACING, last_scale_up=NOW - timedelta(minutes=age))
        assert decided(snapshot, owner(), status).statuses["workers"].replaced == expected


RULES: list[Json] = [
    {},
    {},
    {"topologySpreadConstraints": spread("app", ZONE)},
    {"topologySpreadConstraints": spread("app", HOST)},
    {"affinity": required("podAntiAffinity", "app", HOST)},
    {"affinity": required("podAffinity", "app", ZONE)},
    {"nodeSelector": {ZONE: "zone-b"}},
]


@st.composite
def workloads(draw: st.DrawFn) -> Json:
    """Return a workload with a few shapes."""
    made = types(sizes=(2, 4, 8, 16))
    sets = []
    for number in range(draw(st.integers(1, 5))):
        name, count = f"app-{number}", draw(st.integers(1, 9))
        rules = _renamed(draw(st.sampled_from(RULES)), name)
        cpu, memory = draw(st.sampled_from([100, 700, 1500, 3000])), draw(st.sampled_from([128, 2048, 9000]))
        sets.append(pods(name, count, cpu, memory, kept=draw(st.integers(0, count)), **rules))
    return {
        "name": "drawn",
        "types": made,
        "pools": [pool()],
        "daemonSets": [],
        "budgets": [],
        "nodes": [],
        "pods": sets,
        "allocatable": {each["name"]: each["resources"] for each in made},
    }


def _renamed(rules: Any, name: str) -> Any:
    if isinstance(rules, dict):
        return {key: _renamed(value, name) for key, value in rules.items()}
    if isinstance(rules, list):
        return [_renamed(value, name) for value in rules]
    return name if rules == "app" else rules


def fallen(row: Json) -> Cluster:
    """Return the cluster that the nodes for all pods make, once the load has fallen."""
    cluster = Cluster.of(row, [], kept=False)
    cluster.reconcile()
    for each in row["pods"]:
        for name in set(each["names"]) - set(each["kept"]):
            cluster.snapshot = cluster.snapshot.without_pod(f"default/{name}")
    return cluster


@settings(max_examples=EXAMPLES)
@given(workloads())
def test_consolidation_comes_to_rest_and_never_raises_the_price(row: Json) -> None:
    """`Cluster` checks that each evicted pod has a place."""
    cluster = fallen(row)
    before = cluster.outcome()
    cluster.settle()
    after = cluster.outcome()
    assert after.price <= before.price + 1e-9
    assert after.waiting <= before.waiting
    assert cluster.reconcile().direction is Direction.NONE


@settings(max_examples=EXAMPLES)
@given(workloads(), st.integers(0, 99))
def test_the_order_of_the_input_changes_no_replacement(row: Json, seed: int) -> None:
    cluster = fallen(row)
    nodes, running = list(cluster.snapshot.nodes.values()), list(cluster.snapshot.pods.values())
    random.Random(seed).shuffle(nodes)  # noqa: S311 (not secret)
    random.Random(seed + 1).shuffle(running)  # noqa: S311 (not secret)
    other = replace(
        cluster, snapshot=ClusterSnapshot.from_values(nodes=nodes, pods=running), decisions=list(cluster.decisions)
    )
    assert cluster.reconcile() == other.reconcile()
