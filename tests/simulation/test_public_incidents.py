"""Public reports about scaling from and to zero, as scenarios: what was observed, and the effect of a setting."""

from typing import Any

import pytest

from ocf.simulation import Scenario, load_series, simulate
from ocf.simulation.measures import with_measures
from ocf.simulation.result import SimulationResult
from tests.simulation.engine.scenarios import hpa_of


def external(name: str, average: str) -> dict[str, Any]:
    """Return a metric as KEDA writes it."""
    target = {"type": "AverageValue", "averageValue": average}
    return {"type": "External", "external": {"metric": {"name": name}, "target": target}}


def simulated(*metrics: dict[str, Any], spec: dict[str, Any] | None = None, **scenario: Any) -> SimulationResult:
    """Simulate a scenario of a file, with its measures."""
    hpa = hpa_of(*metrics, **(spec or {}))
    found = Scenario.model_validate({"hpa": hpa, **scenario}, by_alias=True, by_name=False)
    return with_measures(simulate(found, load_series(found)), found)


def counts(result: SimulationResult, begin: float, end: float) -> set[int]:
    """Return the replicas between two times."""
    columns = result.columns
    return {count for time, count in zip(columns.time, columns.replicas, strict=True) if begin <= time < end}


@pytest.mark.parametrize(
    ("idle", "expected"),
    [pytest.param(1, {1, 2}, id="as reported"), pytest.param(0, {0}, id="what helped: idleReplicaCount 0")],
)
def test_idle_replicas_above_zero_alternate_with_the_minimum(idle: int, expected: set[int]) -> None:
    """https://github.com/kedacore/keda/issues/2314: an empty queue, idleReplicaCount 1, minReplicaCount 2, 5 s."""
    result = simulated(
        external("s0-rabbitmq-alwaysempty", "5"),
        spec={"minReplicas": 2, "maxReplicas": 30},
        workload={"capacity": 10, "signals": {"s0-rabbitmq-alwaysempty": {"source": "queue"}}},
        load={"type": "Steady", "rate": 0},
        activator={"pollingInterval": 5, "cooldownPeriod": 300, "idleReplicaCount": idle},
        duration="30m",
    )
    assert counts(result, 60, 1800) == expected
    assert (result.measures["flaps"] > 100) == (idle == 1)


@pytest.mark.parametrize(
    ("initial", "expected"),
    [pytest.param(0, {0}, id="as reported"), pytest.param(600, {1}, id="what helped: initialCooldownPeriod")],
)
def test_a_new_workload_is_scaled_to_zero_before_its_first_load(initial: int, expected: set[int]) -> None:
    """https://github.com/kedacore/keda/issues/5008: cooldownPeriod does not count before the first active trigger."""
    result = simulated(
        external("s0-prometheus", "5"),
        workload={"capacity": 10, "replicas": 1, "signals": {"s0-prometheus": {"source": "load"}}},
        load={"type": "Steps", "steps": [{"at": "8m", "rate": 1}]},
        activator={"cooldownPeriod": 3600, "initialCooldownPeriod": initial},
        duration="20m",
    )
    assert counts(result, 60, 480) == expected
    assert (result.measures["overload_time"] > 0) == (initial == 0)


@pytest.mark.parametrize(
    ("cooldown", "smallest"),
    [pytest.param(300, 0, id="as reported"), pytest.param(3600, 1, id="what helps: a longer cooldown")],
)
def test_the_cooldown_skips_the_policies_of_the_hpa(cooldown: int, smallest: int) -> None:
    """https://github.com/kedacore/keda/issues/7770: from many replicas to 0, without the steps of the HPA."""
    steps = {"scaleDown": {"stabilizationWindowSeconds": 0, "policies": [POD_EACH_FIVE_MINUTES]}}
    result = simulated(
        external("s0-prometheus", "10"),
        spec={"behavior": steps},
        workload={"capacity": 10, "replicas": 6, "signals": {"s0-prometheus": {"source": "load"}}},
        load={"type": "Steps", "steps": [{"at": 0, "rate": 60}, {"at": "5m", "rate": 0}]},
        activator={"cooldownPeriod": cooldown},
        duration="40m",
    )
    downs = [each.before - each.after for each in result.actions if each.after < each.before]
    assert min(result.columns.replicas) == smallest
    assert (max(downs) > 1) == (cooldown == 300)


POD_EACH_FIVE_MINUTES = {"type": "Pods", "value": 1, "periodSeconds": 300}


@pytest.mark.parametrize(
    ("threshold", "is_stuck"),
    [pytest.param(50, True, id="as described"), pytest.param(0, False, id="what helps: a lower activation threshold")],
)
def test_an_activation_threshold_above_the_target_leaves_messages_waiting(threshold: int, is_stuck: bool) -> None:
    """https://github.com/kedacore/keda-docs/pull/863: 40 messages, a threshold of 10, and one of activation of 50."""
    result = simulated(
        external("s0-kafka-orders", "10"),
        workload={"capacity": 1, "signals": {"s0-kafka-orders": {"source": "queue"}}},
        load={"type": "Spike", "at": "10m", "peak": 4, "hold": "10s"},
        activator={"activationThresholds": {"s0-kafka-orders": threshold}},
        duration="1h",
    )
    assert (result.columns.queue[-1] == 40) == is_stuck
    assert [warning for warning in result.warnings if "s0-kafka-orders was at most 40" in warning] == list(
        result.warnings
    )
    assert bool(result.warnings) == is_stuck


def schedule(start: str, end: str, replicas: int, zone: str = "UTC") -> dict[str, Any]:
    """Return the signal of a trigger of type `cron`."""
    written = {"start": start, "end": end, "desiredReplicas": replicas, "timeZone": zone}
    return {"source": "schedule", "schedule": written}


@pytest.mark.parametrize(
    ("behavior", "late"),
    [
        # The window begins at the last sync before the end.
        pytest.param({}, 285, id="as reported"),
        pytest.param({"scaleDown": {"stabilizationWindowSeconds": 0}}, 0, id="what helped: no window of the HPA"),
    ],
)
def test_the_end_of_a_schedule_waits_for_the_window_of_the_hpa(behavior: dict[str, Any], late: float) -> None:
    """https://github.com/kedacore/keda/issues/5688: down five minutes after the end; cooldownPeriod is of no use."""
    name = "s0-cron-EST-1007xxx-3007xxx"
    result = simulated(
        external(name, "1"),
        spec={"minReplicas": 2, "maxReplicas": 6, "behavior": behavior},
        workload={"capacity": 10, "signals": {name: schedule("10 07 * * *", "30 07 * * *", 3, "EST")}},
        load={"type": "Steady", "rate": 0},
        start="2026-04-12T12:00:00Z",
        duration="1h",
    )
    assert [(each.time, each.after) for each in result.actions] == [(600, 3), (1800 + late, 2)]


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        pytest.param([("Percent", 5), ("Pods", 1)], 11, id="as reported"),
        pytest.param([("Percent", 100)], 10, id="what helped: a policy of 100 percent"),
    ],
)
def test_small_steps_down_end_within_the_tolerance(policies: list[tuple[str, int]], expected: int) -> None:
    """https://github.com/kedacore/keda/issues/5820: from 20 to 10 by a schedule, and 11 stay."""
    steps = [{"type": kind, "value": value, "periodSeconds": 2} for kind, value in policies]
    signals = {"s0-cron": schedule("0 6 * * *", "0 1 * * *", 20), "s1-cron": schedule("0 1 * * *", "0 6 * * *", 10)}
    result = simulated(
        external("s0-cron", "1"),
        external("s1-cron", "1"),
        spec={
            "minReplicas": 10,
            "maxReplicas": 200,
            "behavior": {"scaleDown": {"policies": steps, "stabilizationWindowSeconds": 2}},
        },
        workload={"capacity": 10, "replicas": 20, "signals": signals},
        load={"type": "Steady", "rate": 0},
        duration="5h",
    )
    assert counts(result, 3 * 3600, 5 * 3600) == {expected}


@pytest.mark.parametrize(
    ("behavior", "expected"),
    [
        pytest.param({}, 19, id="as reported"),
        pytest.param({"scaleUp": {"tolerance": "0"}}, 20, id="what helps: a tolerance of 0"),
    ],
)
def test_a_schedule_within_the_tolerance_is_never_reached(behavior: dict[str, Any], expected: int) -> None:
    """https://github.com/kedacore/keda/issues/7900: 20 scheduled, 19 run, and a ratio of 1.05 is close enough."""
    result = simulated(
        external("s0-cron", "1"),
        spec={"maxReplicas": 50, "behavior": behavior},
        workload={"capacity": 10, "replicas": 19, "signals": {"s0-cron": schedule("0 * * * *", "59 * * * *", 20)}},
        load={"type": "Steady", "rate": 0},
        duration="40m",
    )
    assert counts(result, 600, 2400) == {expected}
