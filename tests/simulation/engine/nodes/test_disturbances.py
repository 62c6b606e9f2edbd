"""Preemption, disruption budgets, nodes that do not boot and zones that are out; the course is computed by hand."""

from typing import Any

import pytest

from ocf.simulation import LoadSeries, Scenario, load_series, simulate
from ocf.simulation.result import SimulationResult
from tests.simulation.engine.nodes.clusters import group_of, node_scenario, run_of
from tests.simulation.engine.scenarios import hpa_of, rows_of, scenario_of

INSTANT: dict[str, Any] = {"startup": {"mean": "0s"}, "readiness": {"mean": "0s"}, "termination": {"mean": "0s"}}


def fixed(count: int) -> dict[str, Any]:
    """Return an HPA that keeps a number of replicas."""
    return hpa_of(minReplicas=count, maxReplicas=count)


def simulated(scenario: Scenario) -> SimulationResult:
    return run_of(scenario, (0, 10)).run()


def at(result: SimulationResult, time: float, name: str) -> Any:
    return [row[name] for row in rows_of(result) if row["time"] <= time][-1]


def acted(result: SimulationResult) -> list[tuple[float, str, str]]:
    return [(each.time, each.source, each.rule) for each in result.node_actions]


def neighbor(count: int, **workload: Any) -> dict[str, Any]:
    return {
        "name": "batch",
        "hpa": fixed(count),
        "workload": {"capacity": 10, "requests": {"cpu": "1"}, **INSTANT, "replicas": count, **workload},
        "load": {"type": "Steady", "rate": 0},
    }


@pytest.mark.parametrize(
    ("priority", "pending"),
    [
        pytest.param(10, [(1, 0), (1, 1), (0, 1)], id="a higher one waits until the victim has left"),
        pytest.param(0, [(1, 0), (1, 0), (1, 0)], id="an equal one waits"),
    ],
)
def test_pods_of_a_lower_priority_make_way(priority: int, pending: list[tuple[int, int]]) -> None:
    """A node holds four pods: one and three. A fifth one is wanted at 15 s, and a victim needs 7 s to leave."""
    edits = [{"at": "15s", "spec": fixed(2)["spec"]}]
    scenario = node_scenario(
        group_of(maxNodes=1),
        hpa=fixed(1),
        hpaEdits=edits,
        workload={**INSTANT, "replicas": 1, "priority": priority},
        neighbors=[neighbor(3, termination={"mean": "7s"})],
    )
    result = simulate(scenario, LoadSeries.of([(0, 10)]), neighbors=[LoadSeries.of([(0, 0)])])
    others = result.neighbors[0]

    seen = [(at(result, time, "pending"), at(others, time, "pending")) for time in (15, 16, 22)]
    assert seen[1:] == pending[1:]
    assert at(others, 16, "terminating") == (priority > 0)
    assert at(result, 14, "pending") == at(others, 14, "pending") == 0


@pytest.mark.parametrize(
    ("budget", "ready"),
    [
        pytest.param(None, [0, 2, 2], id="without a budget both at once"),
        pytest.param({"maxUnavailable": 1}, [1, 2, 1], id="one after the other"),
        pytest.param({"minAvailable": "50%"}, [1, 2, 1], id="a percentage"),
    ],
)
def test_a_drain_keeps_a_disruption_budget(budget: dict[str, Any] | None, ready: list[int]) -> None:
    """Both pods are on the large node, which a small one replaces: pods need 12 s, and a sync is each 10 s."""
    types = [{"name": "large", "cpu": "8", "memory": "32Gi", "price": 4}, *group_of()["instanceTypes"]]
    group = group_of(
        instanceTypes=types, initialNodes=1, scaleDown={"consolidate": True, "replaceAfter": "1m", "cooldown": "0s"}
    )
    workload = {**INSTANT, "readiness": {"mean": "12s"}, "replicas": 2, "disruptionBudget": budget}
    result = simulated(node_scenario(group, hpa=fixed(2), workload=workload, duration="40m"))

    evicted = next(row["time"] for row in rows_of(result) if row["terminating"] or row["ready"] < 2)
    assert [at(result, evicted + later, "ready") for later in (0, 12, 20)] == ready
    assert at(result, evicted + 60, "ready") == 2
    assert result.columns.nodes_ready[-1] == 1


def test_a_budget_that_allows_nothing_keeps_the_node() -> None:
    group = group_of(initialNodes=2, scaleDown={"cpuThreshold": 60, "duration": "10s", "cooldown": "0s"})
    workload = {**INSTANT, "replicas": 2, "disruptionBudget": {"maxUnavailable": 0}}
    assert acted(simulated(node_scenario(group, hpa=fixed(2), workload=workload))) == []


def test_a_type_whose_nodes_do_not_boot_is_left_alone_for_longer_and_longer() -> None:
    """Ordered at 0 s, given up after 2 minutes, left alone for 5 minutes, and after the next one for 10."""
    group = group_of(initialNodes=0, bootFailures=[{"duration": "10m"}], bootTimeout="2m", termination={"mean": "0s"})
    result = simulated(node_scenario(group, hpa=fixed(1), workload={**INSTANT, "replicas": 1}, duration="25m"))

    assert acted(result) == [
        (0, "workers", "scale_up"),
        (120, "workers", "boot_failed"),
        (420, "workers", "scale_up"),
        (540, "workers", "boot_failed"),
        (1140, "workers", "scale_up"),
    ]
    assert result.node_actions[1].reason == "node workers-1 is given up: it did not boot in 2m0s"
    assert at(result, 1200, "ready") == 1


def test_a_share_of_the_nodes_does_not_boot_and_is_the_same_for_a_seed() -> None:
    def failed(seed: int, share: float) -> int:
        group = group_of(initialNodes=0, maxNodes=20, bootFailures=[{"share": share}], bootTimeout="2m")
        scenario = node_scenario(group, hpa=fixed(40), workload={**INSTANT, "replicas": 40}, seed=seed, duration="3m")
        result = simulated(scenario)
        return sum(each.rule == "boot_failed" for each in result.node_actions)

    counts = [failed(seed, 0.5) for seed in range(4)]
    assert counts == [failed(seed, 0.5) for seed in range(4)]
    assert len(set(counts)) > 1
    assert 0 < min(counts) <= max(counts) < 10
    assert failed(0, 1.0) == 10


@pytest.mark.parametrize(
    ("lost", "ready", "last"),
    [
        pytest.param(True, 0, [(30, "a", "interrupted"), (30, "a", "boot_failed"), (40, "b", "scale_up")], id="lost"),
        pytest.param(False, 4, [], id="running on"),
    ],
)
def test_a_zone_is_out(lost: bool, ready: int, last: list[tuple[float, str, str]]) -> None:
    """The nodes of zone a vanish at 30 s; an order is refused there, and the other zone has a node at 100 s."""
    groups = [group_of(name, zone=name, priority=name == "a") for name in ("a", "b")]
    outage = {"zone": "a", "at": "30s", "duration": "5m", "nodesLost": lost}
    scenario = node_scenario(
        *groups, hpa=fixed(4), workload={**INSTANT, "replicas": 4}, nodes={"zoneOutages": [outage]}
    )
    result = simulated(scenario)

    assert acted(result) == last
    assert [at(result, time, "ready") for time in (29, 30, 100)] == [4, ready, 4]


def test_a_neighbor_has_random_numbers_of_its_own() -> None:
    spread = {"readiness": {"mean": "60s", "spread": "50s"}}
    edits = [{"at": "15s", "spec": fixed(12)["spec"]}]
    alone = scenario_of(fixed(1), hpaEdits=edits, workload={"replicas": 1, **spread})
    batch = {**neighbor(3, **spread, failures=[{"at": "30s", "pods": 3}]), "load": {"type": "Noise", "spread": 5}}
    together = alone.model_validate({**alone.model_dump(by_alias=True), "neighbors": [batch]}, by_alias=True)
    first, other = (load_series(each) for each in together.services())

    before, after = simulate(alone, first), simulate(together, first, neighbors=[other])
    changes = [
        [
            (row["time"], row["ready"])
            for row, earlier in zip(rows[1:], rows, strict=False)
            if row["ready"] != earlier["ready"]
        ]
        for rows in (rows_of(before), rows_of(after))
    ]
    assert changes[0] == changes[1]
