"""Runs with node groups whose course is computed by hand."""

from typing import Any

import pytest

from ocf.simulation import LoadSeries, Scenario, simulate
from ocf.simulation.result import SimulationResult
from tests.simulation.engine.nodes.clusters import group_of, node_scenario, run_of
from tests.simulation.engine.scenarios import hpa_of, rows_of

INSTANT: dict[str, Any] = {"startup": {"mean": "0s"}, "readiness": {"mean": "0s"}, "termination": {"mean": "0s"}}
AT_ONCE: dict[str, Any] = {"cpuThreshold": 100, "memoryThreshold": 100, "duration": "0s", "cooldown": "0s"}


def simulated(scenario: Scenario, *steps: tuple[float, float]) -> SimulationResult:
    return run_of(scenario, *steps).run()


def unchecked(scenario: Scenario) -> SimulationResult:
    return simulate(scenario, LoadSeries.of([(0, 10)]))


def acted(result: SimulationResult) -> list[tuple[float, str, int, int, str]]:
    return [(each.time, each.source, each.before, each.after, each.rule) for each in result.node_actions]


def at(result: SimulationResult, time: float) -> dict[str, Any]:
    """Return the row that holds at an instant."""
    return [row for row in rows_of(result) if row["time"] <= time][-1]


def fixed(count: int, **behavior: Any) -> dict[str, Any]:
    """Return an HPA that keeps a number of replicas."""
    return hpa_of(minReplicas=count, maxReplicas=count, **behavior)


def test_a_pod_starts_when_it_has_a_node() -> None:
    """Eight pods are wanted at 75 s and four fit: a node is ordered at 80 s and up at 140 s, pods ready at 145 s."""
    workload = {"replicas": 4, **INSTANT, "startup": {"mean": "2s"}, "readiness": {"mean": "3s"}}
    result = simulated(node_scenario(workload=workload), (0, 20), (60, 40))
    assert [(each.time, each.after) for each in result.actions][:1] == [(75, 8)]
    assert acted(result) == [(80, "workers", 1, 2, "scale_up")]
    assert result.node_actions[0].reason == "4 pods wait for a node: add 1 small"
    assert [(row["pending"], row["ready"], row["nodes_booting"]) for row in (at(result, t) for t in (79, 139))] == [
        (4, 4, 0),
        (4, 4, 1),
    ]
    assert [(row["pending"], row["ready"], row["nodes_ready"]) for row in (at(result, t) for t in (140, 145))] == [
        (0, 4, 2),
        (0, 8, 2),
    ]
    assert (at(result, 79)["node_cpu"], at(result, 140)["node_price"]) == (1.0, 2.0)


def test_pods_wait_as_long_as_the_group_is_at_its_maximum() -> None:
    scenario = node_scenario(group_of(maxNodes=1), hpa=fixed(6), workload={"replicas": 6, **INSTANT})
    result = simulated(scenario, (0, 10))
    assert acted(result) == []
    assert {(row["pending"], row["ready"], row["nodes_ready"]) for row in rows_of(result)} == {(2, 4, 1)}


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        pytest.param([group_of()], {"workers": 3}, id="as many as the pods need"),
        pytest.param([group_of(minNodes=4)], {"workers": 4}, id="the minimum"),
        pytest.param([group_of(initialNodes=2)], {"workers": 2}, id="as many as set, although pods wait"),
        pytest.param([group_of(batchSize=1)], {"workers": 3}, id="not limited by the batch size"),
        pytest.param(
            [group_of("a", initialNodes=1), group_of("b")], {"a": 1, "b": 2}, id="the rest of the pods in other groups"
        ),
        pytest.param([group_of("a"), group_of("b", priority=1)], {"a": 0, "b": 3}, id="the group with priority"),
    ],
)
def test_nodes_at_the_start_are_up(groups: list[dict[str, Any]], expected: dict[str, int]) -> None:
    result = simulated(node_scenario(*groups, hpa=fixed(10), workload={"replicas": 10, **INSTANT}), (0, 10))
    assert {name: each.ready[0] for name, each in result.node_groups.items()} == expected
    assert result.columns.pending[0] == max(0, 10 - 4 * sum(expected.values()))


def test_a_node_is_drained_step_by_step_and_paid_until_it_is_gone() -> None:
    """Removed at 20 s, when both have been low for 10 s; cordoned at 30 s, evicted at 40 s, deleted at 50 s.

    The pod leaves within 7 s, its replacement is ready after 3 s, and the machine is gone after 20 s.
    """
    group = group_of(initialNodes=2, scaleDown={**AT_ONCE, "cpuThreshold": 30, "duration": "20s"})
    workload = {**INSTANT, "replicas": 2, "readiness": {"mean": "3s"}, "termination": {"mean": "7s"}}
    result = simulated(node_scenario(group, hpa=fixed(2), workload=workload), (0, 10))
    assert acted(result) == [(20, "workers", 2, 1, "underutilized")]
    assert result.node_actions[0].reason == "remove node workers-1: underutilized, 25 % cpu, 6 % memory"
    seen = [at(result, time) for time in (29, 30, 40, 43, 47, 69, 70)]
    assert [(row["nodes_ready"], row["nodes_draining"], row["ready"], row["terminating"]) for row in seen] == [
        (2, 0, 2, 0),
        (1, 1, 2, 0),
        (1, 1, 1, 1),
        (1, 1, 2, 1),
        (1, 1, 2, 0),
        (1, 1, 2, 0),
        (1, 0, 2, 0),
    ]
    assert [row["node_price"] for row in seen[-2:]] == [2.0, 1.0]


def test_a_drain_that_takes_too_long_is_given_up_and_the_node_takes_pods_again() -> None:
    """Cordoned at 10 s, evicted at 20 s; the pod needs 60 s to leave: given up at 30 s, and noted one step later."""
    group = group_of(initialNodes=2, scaleDown={**AT_ONCE, "cpuThreshold": 30, "drainTimeout": "30s"})
    workload = {**INSTANT, "replicas": 2, "termination": {"mean": "60s"}}
    result = simulated(node_scenario(group, hpa=fixed(2), workload=workload, duration="50s"), (0, 10))
    assert acted(result)[:2] == [(0, "workers", 2, 1, "underutilized"), (40, "workers", 1, 2, "drain")]
    assert [at(result, time)["nodes_draining"] for time in (10, 20, 29, 40)] == [1, 1, 1, 0]


def test_a_spot_node_is_drained_at_its_notice_and_then_vanishes() -> None:
    """The order of the replacement waits for the notice: the evicted pods have no room."""
    spot = {"interruptionsPerHour": 30, "notice": "45s"}
    scenario = node_scenario(group_of(spot=spot), hpa=fixed(4), workload={"replicas": 4, **INSTANT}, seed=3)
    result = simulated(scenario, (0, 10))
    first, second = result.node_actions[:2]
    assert (first.rule, first.before, first.after) == ("interrupted", 1, 0)
    assert (second.rule, second.before, second.after) == ("scale_up", 0, 1)
    assert 0 < second.time - first.time <= 10
    noticed, gone = at(result, first.time), at(result, first.time + 45)
    assert (noticed["nodes_draining"], noticed["pending"], noticed["ready"]) == (1, 4, 0)
    assert (gone["nodes_draining"], gone["nodes_booting"]) == (0, 1)


def test_without_notice_a_spot_node_vanishes_with_its_pods() -> None:
    spot = {"interruptionsPerHour": 30, "notice": "0s"}
    workload = {**INSTANT, "replicas": 4, "termination": {"mean": "1h"}}
    result = simulated(node_scenario(group_of(spot=spot), hpa=fixed(4), workload=workload, seed=3), (0, 10))
    row = at(result, result.node_actions[0].time)
    assert (row["nodes_ready"], row["nodes_draining"], row["pending"], row["terminating"]) == (0, 0, 4, 0)


def test_interruptions_come_as_often_as_set() -> None:
    """24 nodes for 12 h, each interrupted once per hour: 288 interruptions, give or take four deviations of 17."""
    spot = {"interruptionsPerHour": 1, "notice": "0s"}
    group = group_of(minNodes=24, maxNodes=24, boot={"mean": "0s"}, spot=spot)
    scenario = node_scenario(group, hpa=fixed(1), workload={"replicas": 1, **INSTANT}, duration="12h")
    found = sum(each.rule == "interrupted" for each in unchecked(scenario).node_actions)
    assert abs(found - 24 * 12) < 4 * 17


def test_a_node_is_replaced_by_a_cheaper_one_that_takes_its_pods() -> None:
    types = [
        {"name": "large", "cpu": "8", "memory": "32Gi", "price": 2},
        {"name": "small", "cpu": "4", "memory": "16Gi", "price": 1},
    ]
    policy = {"consolidate": True, "duration": "0s", "cooldown": "0s", "replaceAfter": "0s"}
    group = group_of(instanceTypes=types, initialNodes=1, scaleDown=policy)
    result = simulated(node_scenario(group, hpa=fixed(2), workload={"replicas": 2, **INSTANT}), (0, 10))
    assert [each[-1] for each in acted(result)] == ["replacement", "replaced"]
    assert result.node_actions[0].reason == "replace workers-1, which saves 1 per hour: add 1 small"
    assert (result.columns.node_price[0], result.columns.node_price[-1], result.columns.ready[-1]) == (3.0, 1.0, 2)


@pytest.mark.parametrize(("scoring", "expected"), [("LeastAllocated", [2, 2]), ("MostAllocated", [4, 0])])
def test_pods_are_spread_or_packed(scoring: str, expected: list[int]) -> None:
    run = run_of(
        node_scenario(group_of(initialNodes=2), hpa=fixed(4), workload={"replicas": 4}, nodes={"scoring": scoring}),
        (0, 10),
    )
    assert [len(node.pods) for node in run.cluster.fleet.pool.nodes.values()] == expected


def test_pods_of_the_fullest_node_leave_first() -> None:
    """Three pods are on the first node and one on the second, and two are deleted."""
    behavior = {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}
    types = [{"name": "tiny", "cpu": "3", "memory": "16Gi"}]
    group = group_of(initialNodes=2, maxNodes=2, instanceTypes=types, scaleDown={"enabled": False})
    scenario = node_scenario(
        group,
        hpa=hpa_of(minReplicas=2, **behavior),
        workload={"replicas": 4, **INSTANT},
        nodes={"scoring": "MostAllocated"},
    )
    run = run_of(scenario, (0, 20), (60, 10))
    nodes = run.cluster.fleet.pool.nodes.values()
    assert [len(node.pods) for node in nodes] == [3, 1]
    assert [(each.before, each.after) for each in run.run().actions] == [(4, 2)]
    assert [len(node.pods) for node in nodes] == [1, 1]


def test_pods_that_wait_leave_before_all_others_and_at_once() -> None:
    behavior = {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}
    workload = {**INSTANT, "replicas": 6, "termination": {"mean": "1h"}}
    group = group_of(maxNodes=1)
    scenario = node_scenario(group, hpa=hpa_of(minReplicas=4, **behavior), workload=workload)
    result = simulated(scenario, (0, 20), (60, 10))
    assert [(row["replicas"], row["pending"], row["terminating"]) for row in (at(result, 0), at(result, 599))] == [
        (6, 2, 0),
        (4, 0, 0),
    ]


def test_the_same_seed_gives_the_same_run_and_another_seed_another_one() -> None:
    spot = {"interruptionsPerHour": 10, "notice": "45s"}
    boot = {"mean": "60s", "spread": "30s"}

    def actions(seed: int) -> list[tuple[float, str, int, int, str]]:
        scenario = node_scenario(group_of(spot=spot, boot=boot), workload={"replicas": 4}, seed=seed, duration="30m")
        return acted(simulated(scenario, (0, 20), (60, 60)))

    assert actions(1) == actions(1)
    assert actions(1) != actions(2)


def test_more_of_one_delay_does_not_shift_the_others() -> None:
    """Nodes draw from streams of their own: pods start after the same delays with and without node groups."""
    workload = {"replicas": 4, "startup": {"mean": "9s", "spread": "8s"}, "readiness": {"mean": "9s", "spread": "8s"}}
    with_room = node_scenario(group_of(initialNodes=5), workload=workload)
    without = with_room.model_copy(update={"node_groups": ()})
    rows = [list(unchecked(each).columns.ready) for each in (with_room, without)]
    assert rows[0] == rows[1]


def test_a_run_without_node_groups_has_no_columns_of_nodes() -> None:
    scenario = node_scenario(workload={"replicas": 4}).model_copy(update={"node_groups": ()})
    result = unchecked(scenario)
    assert (len(result.columns.pending), result.node_groups, result.node_actions) == (0, {}, ())


def test_pods_without_a_start_up_time_start_in_the_row_of_their_node() -> None:
    """A second row at the same instant would have no length."""
    workload = {"replicas": 4, **INSTANT, "readiness": {"mean": "57s"}}
    group = group_of(initialNodes=0, boot={"mean": "19s", "spread": "20s"})
    result = simulated(node_scenario(group, hpa=fixed(12), workload=workload), (0, 200))
    times = [row["time"] for row in rows_of(result)]
    assert times == sorted(set(times))
