"""The activator scales from and to the idle replicas as KEDA's `scaleexecutor` does."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.simulation import InputError, Scenario, parse_scenario
from ocf.simulation.engine.stretches import Stretches
from ocf.simulation.measures import with_measures
from ocf.simulation.result import ScalingAction, SimulationResult
from tests.simulation.engine.scenarios import CPU, hpa_of, rows_of, run, scenario_of
from tests.simulation.engine.test_exactness import compare, loads, scenarios

QUEUE: dict[str, Any] = {
    "type": "External",
    "external": {"metric": {"name": "jobs"}, "target": {"type": "AverageValue", "averageValue": "50"}},
}
ARRIVED: dict[str, Any] = {
    "type": "External",
    "external": {"metric": {"name": "arrived"}, "target": {"type": "AverageValue", "averageValue": "10"}},
}
SIGNALS = {"signals": {"jobs": {"source": "queue"}, "arrived": {"source": "load"}}}


def idle(
    activator: dict[str, Any] | None = None,
    *metrics: dict[str, Any],
    spec: dict[str, Any] | None = None,
    workload: dict[str, Any] | None = None,
    **rest: Any,
) -> Scenario:
    """Return a scenario with an activator."""
    hpa = hpa_of(*(metrics or (QUEUE,)), **(spec or {}))
    return scenario_of(hpa, workload={**SIGNALS, **(workload or {})}, **{"activator": activator or {}, **rest})


def by_activator(result: SimulationResult) -> list[tuple[float, int, int]]:
    """Return time and replicas of the actions of the activator."""
    return [(each.time, each.before, each.after) for each in result.actions if each.actor == "activator"]


@pytest.mark.parametrize(
    ("activator", "steps", "expected"),
    [
        pytest.param({}, [(0, 0)], [(0, 1, 0)], id="nothing to do from the start"),
        pytest.param({"initial_cooldown_period": "100s"}, [(0, 0)], [(120, 1, 0)], id="initial cooldown"),
        pytest.param({}, [(0, 0), (61, 1)], [(0, 1, 0), (90, 0, 1)], id="the next look after load arrives"),
        pytest.param({"polling_interval": "5s"}, [(0, 0), (61, 1)], [(0, 1, 0), (65, 0, 1)], id="a shorter interval"),
        pytest.param({"activation_thresholds": {"jobs": 30}}, [(0, 0), (60, 1)], [(0, 1, 0), (120, 0, 1)], id="above"),
        pytest.param({"activation_thresholds": {"jobs": 29}}, [(0, 0), (60, 1)], [(0, 1, 0), (90, 0, 1)], id="at once"),
    ],
)
def test_it_looks_at_its_triggers_at_each_polling_interval(
    activator: dict[str, Any], steps: list[tuple[float, float]], expected: list[tuple[float, int, int]]
) -> None:
    assert by_activator(run(idle(activator, duration="5m", metrics={"scrape_period": "5s"}), *steps)) == expected


@pytest.mark.parametrize(
    ("cooldown", "scaled_down"),
    [
        pytest.param("0s", 180, id="none"),
        pytest.param("60s", 210, id="of whole intervals"),
        pytest.param("61s", 240, id="a little longer"),
        pytest.param("5m", 450, id="the default of KEDA"),
    ],
)
def test_the_cooldown_counts_from_the_last_look_with_an_active_trigger(cooldown: str, scaled_down: float) -> None:
    """The load ends at 170 s, so that the look at 150 s is the last one with an active trigger."""
    scenario = idle({"cooldown_period": cooldown}, ARRIVED, duration="10m", metrics={"window": "1s"})
    found = by_activator(run(scenario, (0, 1), (170, 0)))
    assert found == [(scaled_down, 1, 0)]


def test_an_active_trigger_scales_up_to_min_replicas_and_leaves_the_rest_to_the_hpa() -> None:
    scenario = idle({}, ARRIVED, spec={"minReplicas": 3}, duration="5m")
    result = run(scenario, (0, 0), (60, 80))
    actions = [(each.time, each.before, each.after, each.actor) for each in result.actions]
    assert actions[:3] == [(0, 3, 0, "activator"), (90, 0, 3, "activator"), (90, 3, 6, "HPA")]


def test_the_hpa_is_off_at_zero_and_on_again_after_it() -> None:
    result = run(idle({}, duration="5m"), (0, 0), (60, 1))
    active = [
        (each.time, each.status, each.reason) for each in result.condition_changes if each.type == "ScalingActive"
    ]
    assert active == [(0, "False", "ScalingDisabled"), (90, "True", "ValidMetricFound")]


def test_what_waits_while_no_pod_runs_is_in_the_queue_and_in_the_measures() -> None:
    scenario = idle({}, duration="5m")
    result = with_measures(run(scenario, (0, 0), (60, 4)), scenario)
    # 30 s until the next look, and 10 s until the first pod is ready.
    assert result.measures["backlog_max"] == 4 * 40
    assert result.measures["overload_time"] > 40 / 300
    assert result.measures["latency_p99"] > 30


def test_several_replicas_go_to_zero_at_once() -> None:
    """KEDA does not wait for the policies of the HPA: https://github.com/kedacore/keda/issues/7770."""
    slow = {"behavior": {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 600}]}}}
    scenario = idle({}, ARRIVED, spec=slow, workload={"replicas": 5}, duration="15m")
    assert by_activator(run(scenario, (0, 50), (60, 0))) == [(360, 5, 0)]


def test_metrics_of_pods_do_not_keep_it_active() -> None:
    scenario = idle({}, CPU, ARRIVED, duration="5m")
    assert by_activator(run(scenario, (0, 0))) == [(0, 1, 0)]


def test_it_changes_nothing_while_no_metric_can_be_read() -> None:
    outage = {"metrics": {"outages": [{"at": "0s", "duration": "100s"}]}}
    assert by_activator(run(idle({}, duration="5m", **outage), (0, 0))) == [(120, 1, 0)]


def test_an_edit_of_the_hpa_changes_its_triggers_and_its_minimum() -> None:
    spec = hpa_of(ARRIVED, minReplicas=4)["spec"]
    scenario = idle({}, QUEUE, duration="10m", hpaEdits=[])
    edited = scenario.model_copy(
        update={
            "hpa_edits": Scenario.model_validate(
                {**scenario.model_dump(), "hpa_edits": [{"at": "90s", "spec": spec}]}
            ).hpa_edits
        }
    )
    result = run(edited, (0, 0), (200, 20))
    assert by_activator(result) == [(0, 1, 0), (210, 0, 4)]


def test_an_action_says_which_trigger_was_active() -> None:
    result = run(idle({"activation_thresholds": {"jobs": 29}}, duration="2m"), (0, 0), (60, 1))
    action = result.actions[1]
    assert action == ScalingAction(
        time=90,
        before=0,
        after=1,
        reason="trigger jobs is 30, active above 29",
        rule="activated",
        explanation=("jobs is 30, active above 29",),
    )


@given(
    scenarios(),
    loads,
    st.integers(1, 90),
    st.integers(0, 200),
    st.sampled_from([0.0, 3.0, 40.0]),
)
@settings(max_examples=40)
def test_counts_of_pods_give_what_snapshots_give_with_an_activator(
    scenario: Scenario, changes: list[tuple[int, float]], interval: int, cooldown: int, threshold: float
) -> None:
    settings = {
        "polling_interval": f"{interval}s",
        "cooldown_period": f"{cooldown}s",
        "activation_thresholds": {"signal": threshold},
    }
    activator = idle(settings).activator
    compare(scenario.model_copy(update={"activator": activator}), changes)


def test_looks_are_not_skipped_in_stretches_without_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any) -> None:
        raise AssertionError("the looks of the activator are not in a stretch")

    monkeypatch.setattr(Stretches, "run", forbidden)
    rows = rows_of(run(idle({}, ARRIVED, duration="1h"), (0, 5), (1800, 0)))
    assert rows[-1]["replicas"] == 0


WAITING = (
    "from 1m0s to the end, load waits or is dropped while the workload has no replicas, and no trigger is active: "
)


HIGH = "jobs was at most 510, and is active above 10000; lower `activator.activationThresholds.jobs`"
NONE = (
    "jobs was at most 0, and is active above 0; add a trigger that has a value without pods, such as a signal with the"
    " source queue or load"
)


@pytest.mark.parametrize(
    ("activator", "workload", "expected"),
    [
        pytest.param({"activation_thresholds": {"jobs": 10_000}}, {}, (WAITING + HIGH,), id="below the threshold"),
        pytest.param({}, {"signals": {"jobs": {"source": "served"}}}, (WAITING + NONE,), id="no value without pods"),
        pytest.param({}, {"signals": {"jobs": {"source": "backlog"}}}, (), id="active"),
    ],
)
def test_a_workload_that_stays_at_zero_under_load_is_in_the_warnings(
    activator: dict[str, Any], workload: dict[str, Any], expected: tuple[str, ...]
) -> None:
    assert run(idle(activator, workload=workload), (0, 0), (60, 1)).warnings == expected


def test_a_warning_of_a_run_with_dates_has_the_date() -> None:
    """With a zone of its own, the date is in UTC, as in all other outputs."""
    scenario = idle({"activation_thresholds": {"jobs": 10_000}}, start="2026-03-01T15:04:00+01:00")
    (warning,) = run(scenario, (0, 0), (60, 1)).warnings
    assert warning == WAITING.replace("1m0s", "2026-03-01 14:05:00") + HIGH


def test_a_workload_without_replicas_and_without_an_activator_is_in_the_warnings() -> None:
    result = run(scenario_of(workload={"replicas": 0}), (0, 5))
    (warning,) = result.warnings
    assert warning == (
        "from 0s to the end, load arrives while the workload has no replicas, and nothing scales it up: the HPA is off"
        " at 0 replicas; set `workload.replicas`, or add `activator`"
    )


BUSY: dict[str, Any] = {"capacity": 0.5, "replicas": 20, "requests": {}}


def test_a_worker_that_is_scaled_down_while_it_serves_load_is_in_the_warnings() -> None:
    scenario = idle({}, spec={"minReplicas": 20, "maxReplicas": 30}, workload=BUSY, duration="1h")
    result = run(scenario, (0, 6))
    (first, *_, last) = by_activator(result)
    assert (first[1:], last[1:]) in {((20, 0), (20, 0)), ((20, 0), (0, 20))}
    times = sum(after == 0 for _, _, after in by_activator(result))
    (warning,) = result.warnings
    assert warning == (
        f"at {first[0]:.0f}s, and {times} times in all, the activator scales down from 20 replicas while load is"
        " served, because no trigger is active; the source queue counts only what waits: if the scaler also counts"
        " what is in work, set the source backlog"
    )


def test_a_worker_is_active_while_its_backlog_is_in_work() -> None:
    busy = {**BUSY, "signals": {"jobs": {"source": "backlog"}}}
    scenario = idle({}, spec={"minReplicas": 20, "maxReplicas": 30}, workload=busy, duration="1h")
    result = run(scenario, (0, 6), (1800, 0))
    # Each of 6 units per second is in work for two seconds: 12 for 20 replicas with a target of 50.
    assert result.columns.utilization[5] == pytest.approx(0.6 / 50)
    assert [(before, after) for _, before, after in by_activator(result)] == [(20, 0)]
    assert result.warnings == ()


def test_load_that_arrives_just_before_the_end_is_no_reason_for_a_warning() -> None:
    assert run(idle({}, duration="120s"), (0, 0), (119, 1)).warnings == ()


BASE = """\
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: web}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    minReplicas: 2
    maxReplicas: 9
    metrics: [METRIC]
workload: {capacity: 10, requests: {cpu: 1}, signals: {jobs: {source: SOURCE}}}
load: {type: Steady, rate: 1}
duration: 1h
activator: ACTIVATOR
"""
JOBS = "{type: External, external: {metric: {name: jobs}, target: {type: AverageValue, averageValue: 5}}}"
PERCENT = "{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}"


@pytest.mark.parametrize(
    ("metric", "source", "activator", "problem"),
    [
        pytest.param(
            JOBS,
            "queue",
            "{idleReplicaCount: 2}",
            "activator.idleReplicaCount: must be less than minReplicas of the HPA, 2, got 2",
            id="idle replicas of the minimum",
        ),
        pytest.param(PERCENT, "queue", "{}", "activator: the HPA has no metric of type External", id="no trigger"),
        pytest.param(
            JOBS,
            "served",
            "{}",
            "workload.signals.jobs.source: must be load, queue or backlog, got served",
            id="a source that is zero without pods",
        ),
        pytest.param(
            JOBS,
            "queue",
            "{activationThresholds: {job: 3}}",
            "activator.activationThresholds.job: the HPA has no metric of type External or Object with this name; it"
            " has jobs",
            id="a threshold of an unknown metric",
        ),
    ],
)
def test_an_activator_that_could_not_scale_up_again_is_an_error(
    metric: str, source: str, activator: str, problem: str
) -> None:
    text = BASE.replace("METRIC", metric).replace("SOURCE", source).replace("ACTIVATOR", activator)
    with pytest.raises(InputError) as error:
        parse_scenario(text)
    assert problem in str(error.value)


def test_served_load_is_a_trigger_beside_another_one() -> None:
    metrics = f"{JOBS}, {JOBS.replace('jobs', 'arrived')}"
    text = BASE.replace("METRIC", metrics).replace("SOURCE", "served}, arrived: {source: load")
    assert parse_scenario(text.replace("ACTIVATOR", "{}")).activator is not None
