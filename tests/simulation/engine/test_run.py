"""Runs whose course is computed by hand, and rules that hold for each run."""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ocf.errors import ConfigError
from ocf.simulation import LoadSeries, simulate
from ocf.simulation.report.actions import has_actors
from tests.simulation.engine.scenarios import hpa_of, rows_of, run, scenario_of

INSTANT: dict[str, Any] = {"startup": {"mean": "0s"}, "readiness": {"mean": "0s"}, "termination": {"mean": "0s"}}


def metric_of(kind: str, **target: str) -> dict[str, Any]:
    field = {"Pods": "pods", "Object": "object", "External": "external"}[kind]
    described = {"describedObject": {"apiVersion": "v1", "kind": "Service", "name": "web"}} if kind == "Object" else {}
    return {"type": kind, field: {"metric": {"name": "rps"}, "target": target, **described}}


def scaled(hpa: dict[str, Any], *steps: tuple[float, float], **rest: Any) -> list[tuple[float, int]]:
    return [(action.time, action.after) for action in run(scenario_of(hpa, **rest), *steps).actions]


def test_a_workload_with_the_right_size_is_left_alone() -> None:
    result = run(scenario_of(workload={"replicas": 4}), (0, 20))
    assert result.actions == ()
    assert set(result.columns.replicas) == {4}
    assert set(result.columns.utilization) == {1.0}


def test_load_that_rises_is_measured_decided_and_served() -> None:
    """At 60 s the load doubles: the next sample shows it, and pods that start at once serve it."""
    result = run(scenario_of(workload={"replicas": 4, **INSTANT}), (0, 20), (60, 40))
    assert [(action.time, action.before, action.after) for action in result.actions] == [(75, 4, 8)]
    [action] = result.actions
    assert action.reason == "cpu resource utilization (percentage of request) above target"
    assert action.explanation[0].startswith("8 replicas next: cpu is at 100% of the requests, target 50%")
    row = next(row for row in rows_of(result) if row["time"] == 75)
    assert (row["load"], row["served"], row["capacity"], row["demand"]) == (40, 40, 80, 4)
    assert (row["replicas"], row["ready"], row["wanted"], row["utilization"], row["synced"]) == (8, 8, 8, 2.0, 1)


def test_scaling_down_waits_for_the_stabilization_window() -> None:
    """Without a behavior, a recommendation that is exactly as old as the window still counts."""
    assert scaled(hpa_of(), (0, 20), (60, 10), workload={"replicas": 4, **INSTANT}) == [(375, 2)]


@pytest.mark.parametrize(
    ("metric", "replicas"),
    [
        pytest.param(metric_of("Pods", type="AverageValue", averageValue="4"), 10, id="load per ready pod"),
        pytest.param(metric_of("External", type="AverageValue", averageValue="5"), 8, id="external, per pod"),
        pytest.param(metric_of("External", type="Value", value="20"), 8, id="external, in total"),
        pytest.param(metric_of("Object", type="AverageValue", averageValue="2"), 20, id="object, per pod"),
        pytest.param(metric_of("Object", type="Value", value="16"), 10, id="object, in total"),
    ],
)
def test_a_signal_decides_by_its_target(metric: dict[str, Any], replicas: int) -> None:
    workload = {"replicas": 4, "signals": {"rps": {}}, **INSTANT}
    scenario = scenario_of(hpa_of(metric), workload=workload, duration="1s")
    [action] = run(scenario, (0, 40)).actions
    rate_limit = 8
    assert action.after == min(replicas, rate_limit)
    assert rows_of(run(scenario, (0, 40)))[0]["wanted"] == replicas


def test_a_container_metric_measures_the_container_of_the_pods() -> None:
    target = {"type": "Utilization", "averageUtilization": 50}
    metric = {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "main", "target": target}}
    assert scaled(hpa_of(metric), (0, 20), workload=INSTANT, duration="1s") == [(0, 2)]


def test_the_queue_is_a_signal() -> None:
    metric = metric_of("External", type="AverageValue", averageValue="100")
    workload = {"replicas": 1, "signals": {"rps": {"source": "queue"}}, **INSTANT}
    assert scaled(hpa_of(metric), (0, 20), workload=workload, duration="1m") == [(15, 2)]


@pytest.mark.parametrize(
    ("starting", "share"),
    [
        pytest.param({}, 0.0, id="no start"),
        pytest.param({"starting": "3"}, 2 / 11, id="until it is ready"),
        pytest.param({"starting": "3", "starting_time": "1s"}, 1 / 11, id="before it is ready"),
        pytest.param({"starting": "3", "starting_time": "8s"}, 8 / 11, id="after it is ready"),
        pytest.param({"starting": "3", "starting_time": "1m"}, 1.0, id="longer than the window"),
        pytest.param({"starting": "0", "starting_time": "8s"}, -4 / 11, id="less than without load"),
    ],
)
def test_a_pod_that_starts_uses_more_without_load(starting: dict[str, str], share: float) -> None:
    """A pod fails at 60 s. The containers of the new one start at 64 s, it is ready at 66 s, and measured at 75 s."""
    target = {"type": "AverageValue", "averageValue": "1"}
    metric = {"type": "Resource", "resource": {"name": "memory", "target": target}}
    workload = {
        "replicas": 5,
        "usage": {"memory": {"idle": "1", "busy": "1", **starting}},
        "startup": {"mean": "1s"},
        "image_pull": {"mean": "3s"},
        "readiness": {"mean": "2s"},
        "failures": [{"at": "60s"}],
    }
    scenario = scenario_of(hpa_of(metric, minReplicas=5, maxReplicas=5), workload=workload, duration="76s")
    last = rows_of(run(scenario, (0, 0)))[-1]
    assert last["time"] == 75
    assert last["utilization"] == pytest.approx(1 + 2 * share / 5, abs=0.001)


@pytest.mark.parametrize(
    ("release_after", "wanted"),
    [
        pytest.param("0s", {60: 0.5, 75: 0.564, 135: 0.5}, id="at once"),
        # The pod that replaces the failed one has only seen the lower load.
        pytest.param("60s", {60: 0.9, 75: (0.9 * 4 + 0.6) / 5, 135: 0.5}, id="a minute later"),
        pytest.param("24h", {60: 0.9, 75: (0.9 * 4 + 0.6) / 5, 135: (0.9 * 4 + 0.6) / 5}, id="never"),
    ],
)
def test_memory_falls_some_time_after_the_load(release_after: str, wanted: dict[float, float]) -> None:
    """Five pods are at 80 % of their capacity, and at 0 from 45 s on; a pod fails at 60 s."""
    target = {"type": "AverageValue", "averageValue": "1"}
    metric = {"type": "Resource", "resource": {"name": "memory", "target": target}}
    workload = {
        "replicas": 5,
        "usage": {"memory": {"idle": "500m", "busy": "1", "release_after": release_after}},
        "failures": [{"at": "60s"}],
        "startup": {"mean": "0s"},
        "readiness": {"mean": "1s"},
    }
    scenario = scenario_of(hpa_of(metric, minReplicas=5, maxReplicas=5), workload=workload, duration="136s")
    found = {row["time"]: row["utilization"] for row in rows_of(run(scenario, (0, 40), (45, 0), (60.5, 10), (70, 0)))}
    assert {time: found[time] for time in wanted} == pytest.approx(wanted, abs=0.011)


def test_a_pod_has_no_samples_while_it_pulls_its_image() -> None:
    """The only pod fails at 20 s; the containers of the new one start at 62 s."""
    workload = {"replicas": 1, "image_pull": {"mean": "40s"}, "failures": [{"at": "20s"}]}
    result = run(scenario_of(workload=workload, duration="2m"), (0, 5))
    found = [
        (each.time, each.message.partition(": ")[2]) for each in result.condition_changes if each.status == "False"
    ]
    [(time, message)] = [each for each in found if each[1]]
    assert time == 30
    assert message.endswith("no metrics returned from resource metrics API")


def test_samples_are_read_after_their_delay() -> None:
    delayed = scaled(hpa_of(), (0, 20), (60, 40), workload={"replicas": 4, **INSTANT}, metrics={"delay": "20s"})
    assert delayed[0] == (105, 8)


def test_a_longer_window_sees_a_change_later() -> None:
    metrics = {"window": "60s"}
    first, *_ = scaled(hpa_of(), (0, 20), (60, 40), workload={"replicas": 4, **INSTANT}, metrics=metrics)
    assert first == (75, 5)


def test_nothing_is_scaled_in_an_outage() -> None:
    scenario = scenario_of(workload={"replicas": 4, **INSTANT}, metrics={"outages": [{"at": "70s", "duration": "60s"}]})
    result = run(scenario, (0, 20), (60, 40))
    assert [(action.time, action.after) for action in result.actions] == [(135, 8)]
    failures = [(change.time, change.reason) for change in result.condition_changes if change.type == "ScalingActive"]
    assert failures == [(0, "ValidMetricFound"), (75, "FailedGetResourceMetric"), (135, "ValidMetricFound")]


def test_without_any_sample_nothing_is_scaled() -> None:
    result = run(scenario_of(workload={"replicas": 4}, metrics={"dropped": 1.0}), (0, 40))
    assert result.actions == ()
    assert result.condition_changes[1].message.endswith("no metrics returned from resource metrics API")


def test_pods_that_start_are_not_counted_twice() -> None:
    """While pods start, the load is above target; but the pods that were added for it count as idle."""
    assert scaled(hpa_of(), (0, 20), (60, 40), workload={"replicas": 4, "readiness": {"mean": "60s"}}) == [(75, 8)]


def test_replicas_out_of_range_are_moved_into_it_first() -> None:
    assert scaled(hpa_of(), (0, 0), workload={"replicas": 25}, duration="1s") == [(0, 20)]
    assert scaled(hpa_of(minReplicas=5), (0, 0), workload={"replicas": 2}, duration="1s") == [(0, 5)]


def test_a_workload_without_replicas_is_not_scaled() -> None:
    result = run(scenario_of(workload={"replicas": 0}, duration="1s"), (0, 40))
    assert result.actions == ()
    assert [change.reason for change in result.condition_changes] == ["SucceededGetScale", "ScalingDisabled"]


def test_policies_limit_the_rate_of_change() -> None:
    policy = {"type": "Pods", "value": 1, "periodSeconds": 60}
    hpa = hpa_of(behavior={"scaleUp": {"policies": [policy]}})
    assert scaled(hpa, (0, 20), (60, 40), workload={"replicas": 4, **INSTANT}, duration="4m") == [
        (75, 5),
        (135, 6),
        (195, 7),
    ]


def test_the_release_decides_whether_the_tolerance_of_a_behavior_counts() -> None:
    hpa = hpa_of(behavior={"scaleUp": {"tolerance": "500m"}})
    rest = {"workload": {"replicas": 4, **INSTANT}, "duration": "1s"}
    assert scaled(hpa, (0, 28), **rest) == []
    assert scaled(hpa, (0, 28), controller={"kubernetes": "1.30"}, **rest) == [(0, 6)]


def test_a_row_begins_where_the_queue_is_empty() -> None:
    """A load of 40 for 10 s leaves 200 at a capacity of 20, of which 8 per second are served once the load is 12."""
    rows = rows_of(run(scenario_of(hpa_of(maxReplicas=2), workload={"replicas": 2}), (0, 40), (10, 12)))
    empty = next(row for row in rows if row["time"] > 10 and row["queue"] == 0)
    assert (empty["time"], empty["served"], empty["synced"]) == (35, 12, 0)


def test_the_time_series_ends_at_the_duration() -> None:
    result = run(scenario_of(duration="61s"), (0, 5))
    assert (result.duration, result.syncs, max(result.columns.time)) == (61, 5, 60)


def test_a_scenario_without_an_end_is_an_error() -> None:
    scenario = scenario_of().model_copy(update={"duration": None})
    with pytest.raises(ConfigError, match="no end"):
        simulate(scenario, LoadSeries.of([(0, 1)]))
    assert simulate(scenario, LoadSeries.of([(0, 1)], end=30)).duration == 30


@pytest.mark.parametrize(
    ("metric", "match"),
    [
        pytest.param(metric_of("Pods", type="AverageValue", averageValue="4"), "workload.signals.rps", id="signal"),
        pytest.param(
            {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization"}}},
            "workload.usage.memory",
            id="resource",
        ),
    ],
)
def test_a_metric_without_values_is_an_error_that_names_the_field(metric: dict[str, Any], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        run(scenario_of(hpa_of(metric)), (0, 1))


def test_an_hpa_in_a_file_has_to_be_passed() -> None:
    scenario = scenario_of().model_copy(update={"hpa": "hpa.yaml"})
    with pytest.raises(ConfigError, match=r"hpa\.yaml"):
        simulate(scenario, LoadSeries.of([(0, 1)]))
    assert simulate(scenario, LoadSeries.of([(0, 1)]), hpa=hpa_of()).syncs == 40


def test_progress_is_reported_up_to_the_end() -> None:
    seen: list[float] = []
    scenario = scenario_of().model_copy(update={"duration": timedelta(days=1)})
    simulate(scenario, LoadSeries.of([(0, 1)]), progress=seen.append)
    assert seen == sorted(seen)
    assert len(seen) > 3
    assert seen[-1] == 1.0


PROGRAM = """
import hashlib
from tests.simulation.engine.scenarios import run, scenario_of

delay = {"mean": "20s", "spread": "15s"}
workload = {"startup": delay, "readiness": delay, "termination": delay}
scenario = scenario_of(workload=workload, metrics={"dropped": 0.2}, duration="1h", seed=7)
result = run(scenario, *((30 * step, (step * 37) % 150) for step in range(120)))
rows = b"".join(getattr(result.columns, name).tobytes() for name in type(result.columns).__slots__)
explained = repr([(action, tuple(action.explanation)) for action in result.actions])
print(hashlib.sha256(rows + explained.encode() + repr(result.condition_changes).encode()).hexdigest())
"""


def test_the_same_seed_gives_the_same_bytes_in_each_process() -> None:
    root = Path(__file__).parents[3]
    digests = set()
    for seed in ("0", "1"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True)  # noqa: S603 (ours)
        digests.add(done.stdout)
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        pytest.param("External", {"type": "Value", "value": "250m"}, id="external"),
        pytest.param("Object", {"type": "Value", "value": "250m"}, id="object"),
        pytest.param("Pods", {"type": "AverageValue", "averageValue": "250m"}, id="of pods, which share it"),
    ],
)
def test_a_latency_follows_the_queueing_model(kind: str, target: dict[str, str]) -> None:
    """One pod at 8 of 10 units per second: 1 / (10 - 8) = 0.5 s, twice the target.

    Two pods are M/M/2 at 0.4: Erlang C is 8 / 35, so that the mean is 8 / 35 / (20 - 8) + 1 / 10 = 0.11905 s, of which
    the controller reads 120 thousandths.
    """
    workload = {"replicas": 1, "signals": {"rps": {"source": "latency"}}, **INSTANT}
    result = run(scenario_of(hpa_of(metric_of(kind, **target)), workload=workload, duration="1m"), (0, 8))

    assert [(action.time, action.after) for action in result.actions] == [(0, 2)]
    assert [row["utilization"] for row in rows_of(result) if row["synced"]] == pytest.approx([2, 0.48, 0.48, 0.48])


def test_a_latency_behind_a_backlog_is_the_time_to_serve_it() -> None:
    """From 60 s on, 20 units per second wait: 300 of them at 75 s, for 30 s and the 0.1 s of their own service."""
    hpa = hpa_of(metric_of("External", type="Value", value="1"), maxReplicas=1)
    workload = {"replicas": 1, "signals": {"rps": {"source": "latency", "factor": 10}}, **INSTANT}
    result = run(scenario_of(hpa, workload=workload, duration="2m"), (0, 5), (60, 30))

    found = {row["time"]: row["utilization"] for row in rows_of(result)}
    assert found[45] == pytest.approx(2)  # 1 / (10 - 5) s
    assert found[75] == pytest.approx(301)


NEVER = (
    "spec.metrics[0] of the HPA never scales up: a pod at full capacity uses SHARE % of the target for cpu; measure"
    " what it uses, and raise `workload.FIELD`, or lower the target"
)


@pytest.mark.parametrize(
    ("target", "workload", "expected"),
    [
        pytest.param("1500m", {}, ("66.7", "requests.cpu"), id="more than the request"),
        pytest.param("1", {}, ("100", "requests.cpu"), id="the request"),
        pytest.param("950m", {}, ("105", "requests.cpu"), id="within the tolerance"),
        pytest.param("900m", {}, None, id="above the tolerance"),
        pytest.param(90, {"usage": {"cpu": {"busy": "800m"}}}, ("88.9", "usage.cpu.busy"), id="a utilization"),
        pytest.param(70, {"usage": {"cpu": {"busy": "800m"}}}, None, id="a utilization that is reached"),
        pytest.param(90, {"usage": {"cpu": {"busy": "800m", "starting": "2"}}}, None, id="reached while pods start"),
    ],
)
def test_a_target_that_full_load_does_not_reach_is_in_the_warnings(
    target: int | str, workload: dict[str, Any], expected: tuple[str, str] | None
) -> None:
    kind = {"averageValue": target} if isinstance(target, str) else {"averageUtilization": target}
    name = "AverageValue" if isinstance(target, str) else "Utilization"
    hpa = hpa_of({"type": "Resource", "resource": {"name": "cpu", "target": {"type": name, **kind}}})
    result = run(scenario_of(hpa, workload=workload), (0, 200))
    found = [] if expected is None else [NEVER.replace("SHARE", expected[0]).replace("FIELD", expected[1])]
    assert list(result.warnings) == found
    assert not found or max(result.columns.replicas) == 1


@pytest.mark.parametrize("connections", [None, {"lifetime": "1m"}])
@pytest.mark.parametrize("objectives", [{}, {"latency": {"atMost": "2s"}}])
def test_a_bound_of_latencies_with_connections_has_a_warning(
    connections: dict[str, str] | None, objectives: dict[str, Any]
) -> None:
    workload = {} if connections is None else {"connections": connections}
    warnings = run(scenario_of(workload=workload, objectives=objectives), (0, 5)).warnings
    expected = "`objectives.latency` is left out with `workload.connections`: "
    assert [each[: len(expected)] for each in warnings] == [expected] * bool(connections and objectives)


def test_rollouts_and_failures_are_in_the_actions() -> None:
    workload = {
        "replicas": 2,
        "failures": [{"at": "1m"}, {"at": "2m", "pods": 2}],
        "rollouts": [{"at": "3m", "maxSurge": 2, "maxUnavailable": 0}],
        "readiness": {"mean": "20s"},
        "startup": {"mean": "0s"},
    }
    result = run(scenario_of(hpa_of(minReplicas=2), workload=workload), (0, 5))
    assert [(each.time, each.after, each.actor, each.reason) for each in result.all_actions] == [
        (60, 2, "workload", "1 pod fails and is replaced"),
        (120, 2, "workload", "2 pods fail and are replaced"),
        (180, 2, "workload", "a rollout begins"),
        (200, 2, "workload", "the rollout has ended"),
    ]
    assert result.actions == ()
    assert has_actors(result)
