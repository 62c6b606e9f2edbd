"""Scale-up of groups."""

from datetime import timedelta
from typing import Any

import pytest

from ocf.nodegroups.decide import ScalingDecision, decide
from ocf.nodegroups.model import GroupStatus, NodeGroup, TypeChoice
from ocf.nodegroups.snapshot import ClusterSnapshot, Node, Resources
from tests.nodegroups.groups import CATALOG, GI, NOW, POOL, group
from tests.nodegroups.manifests import node, pod


def many(count: int, **parts: Any) -> list[dict[str, Any]]:
    return [pod(f"p{number:02}", **parts) for number in range(count)]


def decided(*groups: NodeGroup, status: GroupStatus | None = None, **objects: Any) -> ScalingDecision:
    return decide(
        ClusterSnapshot.of(**objects), groups, catalog=CATALOG, now=NOW, statuses={"workers": status or GroupStatus()}
    )


def members(count: int, **parts: Any) -> list[dict[str, Any]]:
    return [node(f"n{number}", cpu="4", memory="16Gi", labels=POOL, **parts) for number in range(count)]


def flight(count: int) -> list[Node]:
    size = Resources(cpu=4000, memory=16 * GI, pods=110)
    return [Node(name=f"f{number}", labels=POOL, allocatable=size) for number in range(count)]


DRAINING = GroupStatus(draining=frozenset({"n0"}))


@pytest.mark.parametrize(
    ("decision", "add", "desired"),
    [
        pytest.param(decided(group()), 0, 0, id="nothing to do"),
        pytest.param(decided(group(min_nodes=2)), 2, 2, id="minimum"),
        pytest.param(decided(group(min_nodes=2), in_flight=flight(1)), 1, 2, id="minimum with a node in flight"),
        pytest.param(decided(group(min_nodes=10, max_nodes=5)), 5, 5, id="minimum above maximum"),
        pytest.param(decided(group(), pods=many(6)), 2, 2, id="pods"),
        pytest.param(decided(group(min_nodes=2), pods=many(8)), 2, 2, id="pods on the nodes of the minimum"),
        pytest.param(decided(group(), pods=many(6), nodes=members(1)), 1, 2, id="pods beside existing room"),
        pytest.param(decided(group(), pods=many(6), in_flight=flight(2)), 0, 2, id="pods on nodes in flight"),
        pytest.param(decided(group(max_nodes=3), pods=many(40)), 3, 3, id="maximum"),
        pytest.param(decided(group(batch_size=2), pods=many(20)), 2, 5, id="batch"),
        pytest.param(decided(group(max_nodes=2), nodes=members(4)), 0, 2, id="more than the maximum"),
        pytest.param(
            decided(
                group(scale_up_cooldown=timedelta(minutes=1)),
                pods=many(4),
                status=GroupStatus(last_scale_up=NOW - timedelta(seconds=59)),
            ),
            0,
            1,
            id="cooldown",
        ),
        # https://github.com/kubernetes/autoscaler/issues/4942
        pytest.param(
            decided(
                group(min_nodes=2, scale_up_cooldown=timedelta(minutes=1)),
                pods=many(12),
                status=GroupStatus(last_scale_up=NOW - timedelta(seconds=59)),
            ),
            2,
            3,
            id="cooldown, below the minimum",
        ),
        pytest.param(decided(group(), pods=many(1, cpu="5")), 0, 0, id="a pod that never fits"),
        pytest.param(
            decided(group(max_nodes=2), nodes=members(2, unschedulable=True), pods=many(1), status=DRAINING),
            0,
            1,
            id="nodes that are being drained count for the maximum",
        ),
        pytest.param(
            decided(group(min_nodes=2), nodes=members(2, unschedulable=True), status=DRAINING),
            1,
            2,
            id="but not for the minimum",
        ),
        pytest.param(
            decided(group(), pods=many(4), status=GroupStatus().refused("medium", "a", NOW)), 0, 0, id="refused type"
        ),
        pytest.param(
            decided(
                group(instance_types=("medium", "small")),
                pods=many(4),
                status=GroupStatus().refused("medium", "a", NOW),
            ),
            2,
            2,
            id="the next type after a refusal",
        ),
        pytest.param(
            decided(group(instance_types=("small", "medium"), choice=TypeChoice.CHEAPEST), pods=many(3)),
            1,
            1,
            id="cheapest",
        ),
    ],
)
def test_nodes_to_add(decision: ScalingDecision, add: int, desired: int) -> None:
    (found,) = decision.scale_up.groups
    assert (len(found.add), found.desired) == (add, desired)


def test_a_pod_that_never_fits_is_named_with_the_reason() -> None:
    (unplaced,) = decided(group(), pods=many(1, cpu="5")).scale_up.unplaced
    assert (unplaced.pods[0].key, unplaced.never) == ("default/p00", True)
    assert unplaced.reason == "Insufficient cpu on medium"


def test_a_pod_that_a_refused_type_would_take_may_fit_later() -> None:
    decision = decided(
        group(instance_types=("medium", "small")),
        pods=many(1, cpu="3"),
        status=GroupStatus().refused("medium", "a", NOW),
    )
    assert not decision.scale_up.unplaced[0].never


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        pytest.param({}, {}, {"one": 1}, id="name"),
        pytest.param({}, {"priority": 1}, {"two": 1}, id="priority"),
        pytest.param({"instance_types": ("large",)}, {}, {"two": 1}, id="price"),
        pytest.param({"instance_types": ("small",)}, {}, {"two": 1}, id="pods that find a place"),
        pytest.param(
            {"instance_types": ("small",), "priority": 1}, {}, {"two": 1}, id="one that takes none is no choice"
        ),
        pytest.param({"max_nodes": 0}, {}, {"two": 1}, id="full"),
    ],
)
def test_a_pod_grows_one_group(one: dict[str, Any], two: dict[str, Any], expected: dict[str, int]) -> None:
    decision = decided(group("one", **one), group("two", **two), pods=many(1, cpu="3"))
    assert {each.group: len(each.add) for each in decision.scale_up.groups if each.add} == expected


def test_pods_that_one_group_cannot_take_grow_the_next() -> None:
    decision = decided(
        group("one", labels={"disk": "ssd"}),
        group("two"),
        pods=[*many(4), *[pod(f"s{number}", nodeSelector={"disk": "ssd"}) for number in range(8)]],
    )
    assert {each.group: len(each.add) for each in decision.scale_up.groups} == {"one": 3, "two": 0}


def test_repeating_a_decision_while_nodes_boot_asks_for_nothing_more() -> None:
    objects: dict[str, Any] = {"pods": many(30, cpu="900m"), "nodes": members(1)}
    first = decided(group(), **objects)
    ordered = [new.template.make(new.name) for each in first.scale_up.groups for new in each.add]
    assert ordered
    again = decided(group(), **objects, in_flight=ordered)
    assert not again.scale_up.grows
    joined = [node(each.name, cpu="4", memory="16Gi", labels=dict(each.labels), ready=False) for each in ordered]
    objects["nodes"] += joined
    booting = decided(group(), **objects, in_flight=ordered)
    assert not booting.scale_up.grows
