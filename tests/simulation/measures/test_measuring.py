"""Measures, each against a case computed by hand."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from math import exp, log, nan, sqrt
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.errors import ConfigError
from ocf.simulation.measures import group_totals, measure, parse_expression
from ocf.simulation.measures.catalog import MEASURES, Group
from ocf.simulation.measures.elasticity import elastic_speedup
from ocf.simulation.result import GroupColumns, ScalingAction, SimulationResult
from ocf.simulation.scenario import Queue
from ocf.simulation.scenario.objectives import LatencyObjective, Objectives, Prices
from ocf.simulation.scenario.workload import Workload
from tests.simulation.runs import run, scaled, with_nodes

WORKLOAD: Final = Workload(capacity=10)


def measured(
    result: SimulationResult, objectives: Objectives | None = None, workload: Workload = WORKLOAD
) -> Mapping[str, float]:
    return measure(result, workload=workload, objectives=objectives or Objectives())


# Four rows of 60, 60, 120 and 60 seconds: two pods missing of four, exact, one too many of two, three too many of none.
UNEVEN: Final = run([0, 60, 120, 240], duration=300, demand=[4, 4, 2, 0], ready=[2, 4, 3, 3])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("under_provisioning", (60 * 2 / 4) / 300, id="theta U"),
        pytest.param("over_provisioning", (120 * 1 / 2 + 60 * 3 / 1) / 300, id="theta O: a demand of 0 counts as 1"),
        pytest.param("missing_pods", (60 * 2) / 300, id="a U"),
        pytest.param("excess_pods", (120 * 1 + 60 * 3) / 300, id="a O"),
        pytest.param("under_provisioned_time", 60 / 300, id="tau U"),
        pytest.param("over_provisioned_time", (120 + 60) / 300, id="tau O"),
        # From sync to sync: (=, +) for 60 s, (-, -) for 60 s, (-, =) for 120 s.
        pytest.param("instability", (60 + 120) / 240, id="upsilon"),
        # Ready pods change twice, as does the demand.
        pytest.param("jitter", 0, id="jitter"),
        pytest.param("ready_mean", (60 * 2 + 60 * 4 + 180 * 3) / 300, id="mean of the ready pods"),
        pytest.param("replicas_max", 4, id="most replicas"),
    ],
)
def test_measures_of_pods_are_integrals_over_time(name: str, expected: float) -> None:
    assert measured(UNEVEN)[name] == pytest.approx(expected, rel=1e-8)


def test_the_deviation_is_the_distance_from_the_ideal() -> None:
    found = measured(UNEVEN)
    assert found["deviation"] == pytest.approx(sqrt(0.1**2 + 0.8**2 + 0.2**2 + 0.6**2 + 0.75**2), rel=1e-8)


def test_only_syncs_count_for_instability_and_jitter() -> None:
    """Between two syncs three pods become ready one by one, which is one change."""
    result = run(
        [0, 5, 10, 15, 30], duration=3600, demand=[1, 3, 3, 3, 3], ready=[1, 2, 3, 4, 4], synced=[1, 0, 0, 1, 1]
    )
    found = measured(result)
    assert (found["instability"], found["jitter"]) == (0.0, 0.0)


# Three rows of 600, 1200 and 1800 seconds: a node boots, two are up, one of them drains.
NODES: Final = replace(
    run(
        [0, 600, 1800],
        duration=3600,
        ready=[0, 4, 4],
        pending=[4, 1, 0],
        nodes_booting=[1, 0, 0],
        nodes_ready=[0, 2, 1],
        nodes_draining=[0, 0, 1],
        node_price=[0.3, 0.6, 0.6],
        node_cpu=[nan, 0.5, 0.75],
        node_memory=[nan, 0.125, 0.25],
    ),
    node_groups={
        "workers": GroupColumns(
            booting=array("q", [1, 0, 0]), ready=array("q", [0, 2, 1]), draining=array("q", [0, 0, 1])
        )
    },
    node_actions=(
        ScalingAction(time=0, before=0, after=2, reason="", rule="scale_up", source="workers"),
        ScalingAction(time=1800, before=2, after=1, reason="", rule="underutilized", source="workers"),
        ScalingAction(time=3000, before=1, after=0, reason="", rule="interrupted", source="workers"),
    ),
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("node_hours", (600 * 1 + 1200 * 2 + 1800 * 2) / 3600, id="from the order until they are gone"),
        pytest.param("node_cost", (600 * 0.3 + 3000 * 0.6) / 3600, id="price times hours"),
        pytest.param("cost", 10 * (600 * 0 + 3000 * 4) / 3600 + (600 * 0.3 + 3000 * 0.6) / 3600, id="pods and nodes"),
        pytest.param("nodes_max", 2, id="all states"),
        pytest.param("pending_pod_seconds", 600 * 4 + 1200 * 1, id="each pod counts"),
        pytest.param("pending_time", (600 + 1200) / 3600, id="any pod"),
        pytest.param("node_cpu_utilization", (1200 * 0.5 + 1800 * 0.75) / 3000, id="without the time before nodes"),
        pytest.param("node_memory_utilization", (1200 * 0.125 + 1800 * 0.25) / 3000, id="memory"),
        pytest.param("nodes_added", 2, id="ordered"),
        pytest.param("nodes_removed", 1, id="by the controller"),
        pytest.param("node_interruptions", 1, id="by the provider"),
    ],
)
def test_nodes_are_measured(name: str, expected: float) -> None:
    assert measured(NODES, Objectives(prices=Prices(pod_hour=10)))[name] == pytest.approx(expected, rel=1e-8)


def test_a_group_has_totals() -> None:
    [found] = group_totals(NODES)
    assert (found.group, found.most, found.added, found.removed, found.interruptions) == ("workers", 2, 2, 1, 1)
    assert found.node_hours == pytest.approx((600 + 1200 * 2 + 1800 * 2) / 3600)


def test_a_gate_on_nodes_needs_node_groups() -> None:
    gate = parse_expression("node_cost > 12")
    assert not gate.holds(measured(NODES))
    with pytest.raises(ConfigError, match="the run has no node_cost: the scenario has no node groups"):
        gate.holds(measured(UNEVEN))


def test_jitter_is_positive_if_the_supply_changes_more_often_than_the_demand() -> None:
    result = run([0, 15, 30, 45], duration=1800, demand=[3, 3, 3, 3], ready=[3, 4, 3, 4])
    assert measured(result)["jitter"] == 3 * 2


def test_pods_cost_from_creation_until_they_are_gone() -> None:
    result = run([0, 1800], duration=7200, ready=[2, 4], starting=[2, 0], terminating=[0, 1])
    found = measured(result, Objectives(prices=Prices(pod_hour=0.5, currency="EUR")))
    assert (found["pod_hours"], found["cost"]) == (0.5 * 4 + 1.5 * 5, 4.75)


# Overloads: 30 s because the load exceeds the capacity and then a queue is left; 10 s until the end.
OVERLOADED: Final = run(
    [0, 10, 30, 40, 90],
    duration=100,
    load=[10, 30, 10, 10, 25],
    capacity=[20, 20, 20, 20, 20],
    queue=[0, 0, 100, 0, 0],
    dropped=[0, 5, 0, 0, 0],
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("overload_time", 40 / 100, id="share of the time"),
        pytest.param("overloads", 2, id="number"),
        pytest.param("time_to_recover_mean", 20, id="mean"),
        pytest.param("time_to_recover_max", 30, id="longest"),
        pytest.param("dropped", 5 * 20, id="dropped"),
        pytest.param("dropped_share", 100 / (100 + 600 + 100 + 500 + 250), id="dropped share"),
        pytest.param("backlog_max", 100, id="longest queue"),
    ],
)
def test_an_overload_lasts_until_the_queue_is_empty(name: str, expected: float) -> None:
    assert measured(OVERLOADED)[name] == pytest.approx(expected, rel=1e-8)


def test_the_target_utilization_defines_an_overload() -> None:
    result = run([0, 50], duration=100, load=[16, 17], capacity=[20, 20])
    assert measured(result, Objectives(target_utilization=0.8))["overload_time"] == 0.5
    assert measured(result)["overload_time"] == 0


def test_a_load_that_is_met_exactly_is_not_an_overload() -> None:
    assert measured(run([0], duration=9, load=[0.3], capacity=[0.1 + 0.1 + 0.1]))["overload_time"] == 0
    assert measured(run([0], duration=9, load=[0.1 + 0.2], capacity=[0.3]))["overload_time"] == 0


@pytest.mark.parametrize(
    ("actions", "flaps"),
    [
        pytest.param([(0, 2, 4), (600, 4, 3)], 1, id="after ten minutes"),
        pytest.param([(0, 2, 4), (601, 4, 3)], 0, id="later"),
        pytest.param([(0, 2, 4), (15, 4, 6)], 0, id="same direction"),
        pytest.param([(0, 4, 2), (15, 2, 4), (30, 4, 2)], 2, id="back and forth"),
    ],
)
def test_a_flap_is_an_action_soon_after_one_in_the_other_direction(
    actions: list[tuple[float, int, int]], flaps: int
) -> None:
    found = measured(run([0], duration=60, actions=[scaled(*each) for each in actions]))
    ups = sum(after > before for _, before, after in actions)
    assert [found[name] for name in ("flaps", "scaling_actions", "scale_ups", "scale_downs")] == [
        flaps,
        len(actions),
        ups,
        len(actions) - ups,
    ]


def test_the_latency_of_one_server_is_exponential() -> None:
    """M/M/1: P(T > t) = exp(-(mu - lambda) t)."""
    found = measured(run([0], duration=60, load=[8], capacity=[10], served=[8]))
    assert found["latency_p50"] == pytest.approx(log(2) / 2, rel=1e-8)
    assert found["latency_p95"] == pytest.approx(log(20) / 2, rel=1e-8)
    assert found["latency_p99"] == pytest.approx(log(100) / 2, rel=1e-8)


def test_the_latency_of_two_pods_is_that_of_two_servers() -> None:
    """M/M/2 with rho = 0.75: C = 9/14, slack = 5 per second, service rate = 10 per second."""
    objectives = Objectives(latency=LatencyObjective(at_most=timedelta(seconds=0.2)))
    found = measured(run([0], duration=60, load=[15], capacity=[20], served=[15]), objectives)
    waits = 9 / 14
    # The difference of two exponential distributions: waiting with rate 5, service with rate 10.
    expected = (1 - waits) * exp(-2) + waits * (2 * exp(-1) - exp(-2))
    assert found["late_share"] == pytest.approx(expected, rel=1e-8)


def test_a_service_time_gives_a_pod_several_servers() -> None:
    """Ten units a second of a second each: ten servers, which hardly ever let an arrival wait at a load of 1."""
    workload = Workload(capacity=10, service_time=timedelta(seconds=1))
    found = measured(run([0], duration=60, load=[1], capacity=[10], served=[1]), workload=workload)
    assert found["latency_p95"] == pytest.approx(log(20), rel=1e-5)


def test_a_backlog_delays_what_arrives_behind_it() -> None:
    """Ten seconds at twice the capacity leave 100 units: the one in the middle finds 50 of them, and waits 5 s."""
    result = run(
        [0, 10, 20], duration=100, load=[20, 0, 0], capacity=[10, 10, 10], served=[10, 10, 0], queue=[0, 100, 0]
    )
    found = measured(result)
    assert found["latency_p50"] == pytest.approx(5 + log(2) / 10, rel=1e-8)


def test_without_capacity_load_waits_for_the_first_pod() -> None:
    result = run([0, 60], duration=120, load=[1, 0], capacity=[0, 10], served=[0, 1], queue=[0, 60], ready=[0, 1])
    # The unit of the middle arrives at 30 s, and 30 units are served before it, at 1 per second.
    assert measured(result)["latency_p50"] == pytest.approx(60 + log(2) / 10, rel=1e-6)


def test_latency_is_missing_without_load() -> None:
    assert not {"latency_p50", "latency_p99", "late_share"} & set(measured(run([0], duration=60, ready=[1])))


def test_dropped_load_has_no_latency() -> None:
    result = run([0], duration=60, load=[100], dropped=[92], served=[8], capacity=[10])
    assert measured(result)["latency_p50"] == pytest.approx(log(2) / 2, rel=1e-8)


def test_all_measures_are_in_the_order_of_the_catalog() -> None:
    objectives = Objectives(latency=LatencyObjective(at_most=timedelta(seconds=1)))
    assert list(measured(with_nodes(OVERLOADED), objectives)) == list(MEASURES)


def test_runs_without_node_groups_have_no_measures_of_nodes() -> None:
    found = measured(OVERLOADED)
    assert [name for name in found if MEASURES[name].group is Group.NODES] == []


def test_only_the_names_that_are_asked_for_are_returned() -> None:
    found = measure(UNEVEN, workload=WORKLOAD, objectives=Objectives(), names=["flaps", "missing_pods"])
    assert list(found) == ["missing_pods", "flaps"]


def test_an_unknown_name_gives_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"no measure 'overload'; did you mean overloads\?"):
        measure(UNEVEN, workload=WORKLOAD, objectives=Objectives(), names=["overload"])


@given(
    rows=st.lists(
        st.tuples(st.integers(1, 100), st.integers(0, 9), st.integers(0, 9), st.floats(0, 200)), min_size=1, max_size=20
    ),
    row=st.integers(0, 19),
    share=st.floats(0.1, 0.9),
)
def test_a_row_may_be_split_anywhere(rows: list[tuple[int, int, int, float]], row: int, share: float) -> None:
    """A time series is a step function: where its rows begin does not matter."""

    def of(rows: Sequence[tuple[float, int, int, float]], synced: list[int]) -> Mapping[str, float]:
        time = [sum(length for length, *_ in rows[:number]) for number in range(len(rows))]
        _, demand, ready, load = zip(*rows, strict=True)
        served = [min(one, 10 * pods) for one, pods in zip(load, ready, strict=True)]
        dropped = [one - two for one, two in zip(load, served, strict=True)]
        given = {"demand": demand, "ready": ready, "load": load, "served": served, "dropped": dropped}
        result = run(
            time, duration=sum(rows[0] for rows in rows), capacity=[10 * each for each in ready], synced=synced, **given
        )
        return measured(result, workload=Workload(capacity=10, queue=Queue(length=0)))

    at = row % len(rows)
    length, demand, ready, load = rows[at]
    halves = [(each, demand, ready, load) for each in (length * share, length * (1 - share))]
    whole = of([*rows], [1] * len(rows))
    split = of([*rows[:at], *halves, *rows[at + 1 :]], [1] * (at + 1) + [0] + [1] * (len(rows) - at - 1))
    assert split == pytest.approx(whole, rel=1e-6, abs=1e-6)


def test_the_elastic_speedup_is_the_geometric_mean_of_the_ratios() -> None:
    names = [
        "under_provisioning",
        "over_provisioning",
        "under_provisioned_time",
        "over_provisioned_time",
        "instability",
    ]
    baseline = dict(zip(names, (0.32, 0.1, 0.2, 0.0, 0.3), strict=True))
    candidate = dict(zip(names, (0.01, 0.1, 0.2, 0.0, 0.3), strict=True))
    assert elastic_speedup(baseline, candidate) == 2.0
    assert elastic_speedup(candidate, baseline) == 0.5
    assert elastic_speedup(baseline, {**baseline, "instability": 0.0}) is None


def test_pods_that_warm_up_serve_more_slowly() -> None:
    """A hundred capacities between 5 and 10 have latencies between those of the two."""

    def median(capacities: list[float]) -> float:
        result = run(
            list(range(len(capacities))),
            duration=len(capacities),
            load=[1] * len(capacities),
            served=[1] * len(capacities),
            capacity=capacities,
        )
        return measured(result)["latency_p50"]

    slow, fast, mixed = median([5]), median([10]), median([5 + each / 20 for each in range(100)])
    assert [slow, fast] == pytest.approx([log(2) / 4, log(2) / 9])
    assert fast < mixed < slow
