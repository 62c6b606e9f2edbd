"""Which pods count in a decision: priorities, nominations, and the scheduler's word."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ocf.nodegroups.decide import decide
from ocf.nodegroups.snapshot import ClusterSnapshot
from ocf.objects import format_time
from tests.nodegroups.decide.test_decide import decided
from tests.nodegroups.groups import CATALOG, NOW, POOL, group
from tests.nodegroups.manifests import node, pod

LOW: dict[str, Any] = {"priority": -1000}


@pytest.mark.parametrize(
    ("priority", "adds"),
    [
        pytest.param(-1000, False, id="expendable"),
        pytest.param(-11, False, id="just below"),
        pytest.param(-10, True, id="at the cutoff"),
        pytest.param(0, True, id="default"),
    ],
)
def test_no_node_is_added_for_pods_below_the_priority_cutoff(priority: int, *, adds: bool) -> None:
    """As in cluster-autoscaler: https://github.com/kubernetes/autoscaler/pull/1037."""
    found = decided(ClusterSnapshot.of(pods=[pod("p", priority=priority)]), group())
    assert found.scale_up.grows is adds
    reasons = [each.reason for each in found.scale_up.unplaced]
    assert reasons == ([] if adds else [f"no node is added for a priority below -10, and it has {priority}"])


def test_a_pod_below_the_cutoff_gets_what_room_the_others_leave() -> None:
    snapshot = ClusterSnapshot.of(
        nodes=[node("n0", cpu="2", labels=POOL)], pods=[pod("low", cpu="2", **LOW), pod("high", cpu="1")]
    )
    found = decided(snapshot, group())
    assert found.scale_up.placements == {"default/high": "n0"}
    assert [each.pods[0].name for each in found.scale_up.unplaced] == ["low"]
    assert not decided(
        ClusterSnapshot.of(nodes=[node("n0", labels=POOL)], pods=[pod("low", **LOW)]), group()
    ).scale_up.unplaced


@pytest.mark.parametrize(
    ("running", "goes"),
    [
        pytest.param(pod("p", on="n0", **LOW), True, id="expendable"),
        pytest.param(pod("p", on="n0"), False, id="any other"),
        pytest.param(pod("p", on="n0", owner="DaemonSet", **LOW), True, id="of a DaemonSet"),
    ],
)
def test_a_node_with_expendable_pods_alone_is_removed(running: dict[str, Any], *, goes: bool) -> None:
    """Their room counts as free, because the scheduler evicts them for other pods.

    https://github.com/kubernetes/autoscaler/pull/411
    """
    snapshot = ClusterSnapshot.of(nodes=[node("n0", labels=POOL)], pods=[running])
    assert bool(decided(snapshot, group()).scale_down.removals) is goes
    waiting = ClusterSnapshot.of(nodes=[node("n0", cpu="1", labels=POOL)], pods=[pod("p", on="n0", **LOW), pod("q")])
    assert not decided(waiting, group()).scale_up.grows


def test_the_cutoff_can_be_set() -> None:
    snapshot = ClusterSnapshot.of(pods=[pod("p", **LOW)])
    assert decide(snapshot, [group()], catalog=CATALOG, now=NOW, priority_cutoff=-2000).scale_up.grows


@pytest.mark.parametrize(
    ("annotations", "reason"),
    [
        pytest.param({"ocf.dev/do-not-disrupt": "true"}, "do_not_disrupt", id="do-not-disrupt"),
        pytest.param({"ocf.dev/safe-to-evict": "false"}, "safe_to_evict", id="safe-to-evict"),
    ],
)
@pytest.mark.parametrize("consolidate", [False, True])
def test_an_expendable_pod_keeps_its_node_by_its_own_rules(
    annotations: dict[str, str], reason: str, *, consolidate: bool
) -> None:
    """Before the drain begins: it would be given up because of the pod, again and again."""
    running = pod("p", on="n0", **LOW)
    running["metadata"]["annotations"] = annotations
    snapshot = ClusterSnapshot.of(nodes=[node("n0", labels=POOL)], pods=[running])
    policy = replace(group().scale_down, consolidate=consolidate)
    found = decided(snapshot, replace(group(), scale_down=policy))
    assert found.scale_down.removals == ()
    assert [each.reason for each in found.scale_down.outcomes] == [reason]
    # It needs no place, and keeps no other node.
    other = ClusterSnapshot.of(nodes=[node("n0", labels=POOL), node("n1", labels=POOL)], pods=[running])
    assert [each.node for each in decided(other, group()).scale_down.removals] == ["n1"]


def waiting_on(name: str, **parts: Any) -> dict[str, Any]:
    """Return a pending pod for which the scheduler evicts others from a node."""
    made = pod(name, **parts)
    made["status"]["nominatedNodeName"] = "n0"
    return made


def test_a_pod_counts_on_the_node_that_the_scheduler_nominated() -> None:
    """It takes the room of those that are being evicted, so that another pod needs a node of its own.

    https://github.com/kubernetes/autoscaler/pull/457
    """
    full = node("n0", cpu="4", labels=POOL)
    running = pod("victim", cpu="4", on="n0")
    snapshot = ClusterSnapshot.of(nodes=[full], pods=[running, waiting_on("p", cpu="4")])
    found = decided(snapshot, group())
    assert not found.scale_up.grows
    assert found.nominated == {"default/p": "n0"}
    empty = ClusterSnapshot.of(nodes=[full], pods=[waiting_on("p", cpu="4"), pod("q", cpu="4")])
    assert [len(each.add) for each in decided(empty, group()).scale_up.groups] == [1]


@pytest.mark.parametrize("nodes", [[], [node("n0", labels=POOL, unschedulable=True)]])
def test_a_nomination_to_a_node_that_takes_no_pods_does_not_count(nodes: list[dict[str, Any]]) -> None:
    assert decided(ClusterSnapshot.of(nodes=nodes, pods=[waiting_on("p")]), group()).scale_up.grows


# https://github.com/kubernetes/autoscaler/issues/3846
@pytest.mark.parametrize(
    ("cpu", "minutes", "leaving", "grows", "named"),
    [
        pytest.param("4", 5, False, False, False, id="a moment ago"),
        pytest.param("4", 60, True, False, False, id="others are leaving the node"),
        pytest.param("4", 6, False, True, False, id="the node has no room"),
        pytest.param("1", 6, False, False, True, id="the node has room"),
    ],
)
def test_a_nomination_that_the_scheduler_does_not_keep_ends(
    cpu: str, minutes: int, *, leaving: bool, grows: bool, named: bool
) -> None:
    running = pod("victim", cpu="3", on="n0")
    if leaving:
        running["metadata"]["deletionTimestamp"] = format_time(NOW)
    waiting = waiting_on("p", cpu=cpu)
    (condition,) = waiting["status"]["conditions"]
    condition |= {"message": "no room", "lastTransitionTime": format_time(NOW - timedelta(minutes=minutes))}
    nodes = [node("n0", cpu="4", labels=POOL)]
    found = decided(ClusterSnapshot.of(nodes=nodes, pods=[running, waiting]), group())
    assert found.scale_up.grows is grows
    assert [each.reason for each in found.scale_up.unplaced] == (
        ["it fits on node n0, but the scheduler rejects it: no room"] if named else []
    )


VOLUMES = "0/1 nodes are available: 1 node(s) exceed max volume count."


@pytest.mark.parametrize(
    ("minutes", "named"),
    [pytest.param(6, True, id="again"), pytest.param(5, False, id="not tried again yet")],
)
def test_a_pod_that_the_scheduler_keeps_rejecting_is_named(minutes: int, *, named: bool) -> None:
    """Its limit of attached volumes is one of the filters that are not known here.

    https://github.com/kubernetes/kubernetes/issues/106894
    https://github.com/kubernetes/autoscaler/issues/4517
    """
    rejected = pod("p")
    (condition,) = rejected["status"]["conditions"]
    condition |= {"message": VOLUMES, "lastTransitionTime": format_time(NOW - timedelta(minutes=minutes))}
    found = decided(ClusterSnapshot.of(nodes=[node("n0", labels=POOL)], pods=[rejected]), group())
    texts = [each.reason for each in found.scale_up.unplaced]
    assert texts == ([f"it fits on node n0, but the scheduler rejects it: {VOLUMES}"] if named else [])
    assert not found.scale_up.grows
