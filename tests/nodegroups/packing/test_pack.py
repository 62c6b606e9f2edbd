"""Packing: existing room first, then nodes in flight, then as many new nodes as needed."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.nodegroups.packing import NodeTemplate, pack, pending_pods
from ocf.nodegroups.predicates import fits
from ocf.nodegroups.snapshot import ClusterSnapshot, Node, Resources
from tests.nodegroups.clusters import HOST, REQUIRED, ZONE, clusters
from tests.nodegroups.manifests import node, pod

SMALL = NodeTemplate(
    group="g", instance_type="small", node=Node(name="", allocatable=Resources(cpu=2000, memory=2**33, pods=10))
)
LARGE = NodeTemplate(
    group="g", instance_type="large", node=Node(name="", allocatable=Resources(cpu=8000, memory=2**35, pods=10))
)
ALONE = {"podAntiAffinity": {REQUIRED: [{"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}]}}


def packed(pods: list[dict[str, Any]], *templates: NodeTemplate, **options: Any) -> Any:
    limits, most = options.pop("limits", None), options.pop("most", None)
    snapshot = ClusterSnapshot.of(pods=pods, **options)
    return pack(snapshot, pending_pods(snapshot), templates, limits=limits, most=most)


def many(count: int, **parts: Any) -> list[dict[str, Any]]:
    return [pod(f"p{number:03}", **parts) for number in range(count)]


@pytest.mark.parametrize(
    ("result", "new", "unplaced"),
    [
        pytest.param(packed(many(3), nodes=[node()]), 0, [], id="room that is there"),
        pytest.param(packed(many(6), SMALL, nodes=[node()]), 1, [], id="the rest on a new node"),
        pytest.param(packed(many(6), SMALL), 3, [], id="as many new nodes as needed"),
        pytest.param(packed(many(6), SMALL, most=2), 2, [2], id="not more than allowed"),
        pytest.param(packed(many(6), SMALL, limits={"g": 1}), 1, [4], id="not more than the group allows"),
        pytest.param(packed(many(2, cpu="3"), SMALL), 0, [2], id="a pod that never fits adds nothing"),
        pytest.param(packed(many(2, cpu="3"), SMALL, LARGE), 1, [], id="the next template if the first is too small"),
        pytest.param(packed(many(30, cpu="0", memory="0"), SMALL), 3, [], id="by the number of pods"),
        pytest.param(packed(many(3, affinity=ALONE), LARGE), 3, [], id="one pod per node"),
        pytest.param(packed(many(3), nodes=[node(ready=False)]), 0, [3], id="a node that is not ready has no room"),
        pytest.param(
            packed([*many(3), pod("broken", cpu="?", on="n1")], nodes=[node()]), 0, [3], id="nor an unknown one"
        ),
        pytest.param(
            packed(many(3), nodes=[node(ready=False)], in_flight=[SMALL.make("n1"), SMALL.make("n2")]),
            0,
            [],
            id="nodes in flight have room",
        ),
        pytest.param(
            packed(
                many(4),
                SMALL,
                daemon_sets=[{"metadata": {"name": "agent"}, "spec": {"template": pod(cpu="1", labels={"a": "b"})}}],
            ),
            4,
            [],
            id="a DaemonSet takes its part of each new node",
        ),
    ],
)
def test_new_nodes(result: Any, new: int, unplaced: list[int]) -> None:
    assert len(result.new_nodes) == new
    assert [len(each.pods) for each in result.unplaced] == unplaced


def test_pods_of_daemon_sets_and_gated_pods_do_not_ask_for_nodes() -> None:
    gated = pod("gated", schedulingGates=[{"name": "wait"}])
    leaving = pod("leaving")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    snapshot = ClusterSnapshot.of(pods=[pod("daemon", owner="DaemonSet"), gated, leaving, pod("web")])
    assert [each.name for each in pending_pods(snapshot)] == ["web"]


def test_a_pod_that_never_fits_is_explained() -> None:
    (unplaced,) = packed(many(2, cpu="3"), SMALL).unplaced
    assert unplaced.never
    assert unplaced.reason == "Insufficient cpu on small"


def test_pods_spread_over_zones_of_new_nodes() -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "minDomains": 3,
    }
    zones = [
        NodeTemplate(group="g", zone=zone, node=Node(name="", labels={ZONE: zone}, allocatable=LARGE.node.allocatable))
        for zone in "abc"
    ]
    result = packed(many(6, topologySpreadConstraints=[spread]), *zones)
    assert sorted(new.template.zone for new in result.new_nodes) == ["a", "b", "c"]
    assert not result.unplaced


def test_pods_that_spread_use_room_that_new_nodes_in_other_zones_open_to_them() -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "minDomains": 2,
    }
    zones = [
        NodeTemplate(group="g", zone=zone, node=Node(name="", labels={ZONE: zone}, allocatable=SMALL.node.allocatable))
        for zone in "ab"
    ]
    there = node("there", cpu="8", memory="64Gi", labels={ZONE: "a"})
    result = packed(many(8, topologySpreadConstraints=[spread]), *zones, nodes=[there])
    assert not result.unplaced
    assert [new.template.zone for new in result.new_nodes] == ["b", "b"]
    assert list(result.placements.values()).count("there") == 4


@given(clusters(), st.integers(0, 2**16))
def test_the_order_of_the_input_does_not_matter(cluster: dict[str, Any], seed: int) -> None:
    shuffled: dict[str, Any] = {
        key: random.Random(seed).sample(value, len(value))  # noqa: S311
        for key, value in cluster.items()
    }
    results = []
    for each in (cluster, shuffled):
        snapshot = ClusterSnapshot.of(**each)
        results.append(pack(snapshot, reversed(pending_pods(snapshot)), [SMALL, LARGE], most=3))
    assert results[0] == results[1]


@given(clusters(most_pods=14))
def test_a_pod_without_a_place_fits_no_node_and_the_others_fit_theirs(
    cluster: dict[str, Any],
) -> None:
    snapshot = ClusterSnapshot.of(**cluster)
    pending = pending_pods(snapshot)
    result = pack(snapshot, pending)
    for key, name in result.placements.items():
        snapshot = snapshot.place(snapshot.pods[key], name)
    left = [waiting for each in result.unplaced for waiting in each.pods]
    assert len(left) + len(result.placements) == len(pending)
    for waiting in left:
        # Pods that were placed later may let it in: equal pods of other demands, or a pod that it wants to be near.
        if not waiting.shape.spread and not waiting.shape.affinity:
            assert all(fits(waiting, name, snapshot) for name in snapshot.nodes)
    for key in result.placements:
        placed = snapshot.pods[key]
        if not placed.shape.spread and not placed.shape.affinity:
            assert fits(placed, placed.node_name, snapshot) is None


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8)), max_size=12))
def test_new_nodes_hold_their_pods(sizes: list[tuple[int, int]]) -> None:
    pods = [pod(f"p{number}", cpu=f"{cpu}", memory=f"{memory}Gi") for number, (cpu, memory) in enumerate(sizes)]
    result = packed(pods, LARGE)
    assert not result.unplaced
    assert len(result.placements) == len(pods)
    for new in result.new_nodes:
        on_it = [
            sizes[int(key.removeprefix("default/p"))] for key, name in result.placements.items() if name == new.name
        ]
        assert on_it
        assert sum(cpu for cpu, _ in on_it) <= 8
        assert sum(memory for _, memory in on_it) <= 32


@pytest.mark.parametrize("filler", ["300m", "450m"])
def test_pods_keep_the_room_beside_the_pods_that_they_have_to_be_with(filler: str) -> None:
    """A filler that is larger than they are would take it, and a new node without the others does not help."""
    lead = {"matchLabels": {"app": "lead"}}
    alone = {"podAntiAffinity": {REQUIRED: [{"topologyKey": HOST, "labelSelector": lead}]}}
    beside = {"podAffinity": {REQUIRED: [{"topologyKey": HOST, "labelSelector": lead}]}}
    apart = {"podAntiAffinity": {REQUIRED: [{"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "side"}}}]}}
    waiting = [pod(f"lead-{number}", cpu="1500m", labels={"app": "lead"}, affinity=alone) for number in range(2)]
    waiting += [
        pod(f"side-{number}", cpu="400m", labels={"app": "side"}, affinity=beside | apart) for number in range(2)
    ]
    waiting += [pod(f"filler-{number}", cpu=filler) for number in range(4)]
    found = packed(waiting, SMALL)
    assert not found.unplaced
    hosts = {name: {found.placements[f"default/{name}-{number}"] for number in range(2)} for name in ("lead", "side")}
    assert hosts["lead"] == hosts["side"]
