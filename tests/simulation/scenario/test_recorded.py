"""Scenarios that replay recordings."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ocf.objects import Manifest
from ocf.simulation import InputError, load_series, parse_scenario, read_scenario, simulate
from ocf.simulation.measures import with_measures
from ocf.simulation.measures.verdicts import verdicts
from ocf.simulation.scenario.objectives import Objectives
from ocf.simulation.scenario.recorded import recorded_scenario
from tests.simulation.recording.recordings import METRICS, NOON, hpa, instants, lines, queue, scale, usage, write


def test_a_recording_is_a_scenario(tmp_path: Path) -> None:
    scenario = read_scenario(write(tmp_path))

    assert (scenario.name, scenario.start, scenario.duration) == ("web", NOON, timedelta(minutes=1))
    assert isinstance(scenario.hpa, dict)
    assert scenario.hpa["spec"]["maxReplicas"] == 9
    assert "status" not in scenario.hpa
    assert scenario.workload.replicas == 2


def test_its_load_is_what_was_used(tmp_path: Path) -> None:
    scenario = read_scenario(write(tmp_path))
    load = load_series(scenario, tmp_path)

    assert list(load.times) == [0, 15, 30, 45]
    assert list(load.rates) == pytest.approx([0.8, 0.8, 1.6, 1.6])
    assert load.end == 60


@pytest.mark.parametrize(
    ("used", "capacity"),
    [
        pytest.param(450, 0.5, id="their request, if they have never used more"),
        # A hundredth more than the 1.6 cores of two pods.
        pytest.param(800, 0.808, id="the most that they have used together"),
    ],
)
def test_pods_are_at_their_capacity_where_they_use_their_request_or_the_most(
    tmp_path: Path, used: int, capacity: float
) -> None:
    states = [
        (at, [each if each["kind"] != "PodMetrics" else usage(n % 2, f"{used}m", at) for n, each in enumerate(found)])
        for at, found in instants()
    ]
    workload = read_scenario(write(tmp_path, lines(states))).workload

    assert workload.capacity == capacity
    assert workload.requests == {"cpu": 500, "memory": 2**30 * 1000}
    assert workload.usage["cpu"].busy == capacity * 1000


def test_a_load_of_cores_has_no_latency(tmp_path: Path) -> None:
    cores = read_scenario(write(tmp_path))
    states = [(at, [hpa(metrics=[METRICS[1]]), scale(2), queue("40", at)]) for at, _ in instants()]
    (tmp_path / "queue").mkdir()
    messages = read_scenario(write(tmp_path / "queue", lines(states)))
    objectives = Objectives.model_validate({"overloadTime": 0.02, "latency": {"atMost": "1s"}})

    names = {}
    for scenario, folder in ((cores, tmp_path), (messages, tmp_path / "queue")):
        asked = scenario.model_copy(update={"objectives": objectives})
        found = with_measures(simulate(asked, load_series(asked, folder)), asked)
        late = {name for name in found.measures if "late" in name}
        names[scenario.workload.capacity] = late, [each.objective for each in verdicts(found, asked)]

    assert names == {
        0.808: (set(), ["overload time at most 2 %"]),
        10: (
            {"late_share", "latency_p50", "latency_p95", "latency_p99"},
            ["overload time at most 2 %", "latency, 95th percentile, at most 1 s"],
        ),
    }


def test_other_metrics_follow_the_load(tmp_path: Path) -> None:
    signals = read_scenario(write(tmp_path)).workload.signals

    # 40 waited while 0.8 cores were used, and 80 with 1.6 cores.
    assert signals["queue"].factor == pytest.approx(50)


def test_delays_of_pods_are_those_that_were_recorded(tmp_path: Path) -> None:
    workload = read_scenario(write(tmp_path)).workload

    assert (workload.startup.mean, workload.startup.spread) == (timedelta(seconds=2), timedelta())
    assert (workload.readiness.mean, workload.readiness.spread) == (timedelta(seconds=10), timedelta())


def test_the_load_of_a_recording_can_be_used_with_another_hpa(tmp_path: Path) -> None:
    write(tmp_path, recording(edited()))
    scenario = parse_scenario(
        """
        hpa:
          apiVersion: autoscaling/v2
          kind: HorizontalPodAutoscaler
          metadata: {name: other}
          spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
        workload: {capacity: 0.5, requests: {cpu: 500m}}
        load: {type: Recording, path: web.jsonl, metric: 1, factor: 0.5, timeFactor: 2}
        """,
        directory=tmp_path,
    )
    load = load_series(scenario, tmp_path)

    assert scenario.hpa_edits == ()
    assert list(load.rates) == [20, 20, 40, 40, 40]
    assert load.end == 150


def test_a_metric_that_is_not_a_resource_has_its_target_as_capacity(tmp_path: Path) -> None:
    states = [(at, [hpa(metrics=[METRICS[1]]), scale(2), queue("40", at)]) for at, _ in instants()]

    scenario = recorded_scenario(write(tmp_path, lines(states)))

    assert scenario.workload.capacity == 10
    assert scenario.workload.signals["queue"].factor == 1


FIRST, SECOND = "2026-01-31T09:00:00Z", "2026-01-31T12:00:30Z"


def edited(**spec: Any) -> Callable[[int], Manifest]:
    """Return the HPA of a recording, which is edited at 15 s and at 45 s."""
    edits = {0: spec, 1: {**spec, "maxReplicas": 3}, 2: {**spec, "maxReplicas": 3}, 3: {"maxReplicas": 6}}
    return lambda step: hpa(**edits.get(step, {"maxReplicas": 6}))


def recording(hpa_at: Callable[[int], Manifest]) -> str:
    """Return the minute of `instants` with another HPA at each step."""
    states = []
    for step, (at, found) in enumerate(instants()):
        states.append((at, [hpa_at(step), *(each for each in found if each["kind"] != "HorizontalPodAutoscaler")]))
    return lines(states)


METRIC_KINDS = ("PodMetrics", "ExternalMetricValue")


def without_metrics(missing: set[int], *, kinds: tuple[str, ...] = METRIC_KINDS, conditions: Sequence[str] = ()) -> str:
    """Return the minute of `instants` without some kinds at some steps, and with a condition ScalingActive."""
    states = []
    for step, (at, found) in enumerate(instants()):
        kept = [each for each in found if step not in missing or each["kind"] not in kinds]
        if step < len(conditions):
            status = {"conditions": [{"type": "ScalingActive", "status": conditions[step]}]}
            kept = [{**each, "status": status} if each["kind"] == "HorizontalPodAutoscaler" else each for each in kept]
        states.append((at, kept))
    return lines(states)


def test_edits_of_the_spec_are_replayed_at_their_time(tmp_path: Path) -> None:
    scenario = read_scenario(write(tmp_path, recording(edited())))

    edits = [(each.at.total_seconds(), each.spec["maxReplicas"]) for each in scenario.hpa_edits]
    assert edits == [(15, 3), (45, 6)]
    found = simulate(scenario, load_series(scenario, tmp_path))
    # A queue of 40 needs four pods, and one of 80 eight.
    assert [(each.time, each.after) for each in found.actions] == [(0, 4), (15, 3), (45, 6)]


@pytest.mark.parametrize(
    ("created", "recreated"),
    [
        pytest.param([FIRST, FIRST, FIRST, FIRST], [], id="the same HPA"),
        pytest.param([FIRST, FIRST, SECOND, SECOND], [30], id="created anew"),
        pytest.param([None, None, None, None], [], id="times of creation that were not recorded"),
    ],
)
def test_an_hpa_with_another_time_of_creation_is_created_anew(
    tmp_path: Path, created: list[str | None], recreated: list[float]
) -> None:
    def at(step: int) -> Manifest:
        found = hpa()
        return found | {"metadata": found["metadata"] | {"creationTimestamp": created[min(step, 3)]}}

    edits = read_scenario(write(tmp_path, recording(at))).hpa_edits
    assert [(each.at.total_seconds(), each.recreated) for each in edits] == [(time, True) for time in recreated]


def test_a_status_that_changes_is_not_an_edit(tmp_path: Path) -> None:
    text = recording(lambda step: {**hpa(), "status": {"currentReplicas": step}})

    assert read_scenario(write(tmp_path, text)).hpa_edits == ()


def test_a_metric_that_an_edit_adds_follows_the_load(tmp_path: Path) -> None:
    only_cpu = {"metrics": [METRICS[0]]}
    scenario = read_scenario(write(tmp_path, recording(lambda step: hpa(**({} if step > 1 else only_cpu)))))

    assert [len(each.spec["metrics"]) for each in scenario.hpa_edits] == [2]
    assert scenario.workload.signals["queue"].factor == pytest.approx(50)


def test_a_time_without_metrics_is_an_outage(tmp_path: Path) -> None:
    """The load is held, and the syncs fail."""
    scenario = read_scenario(write(tmp_path, without_metrics({2, 3})))

    assert [(each.at.total_seconds(), each.duration.total_seconds()) for each in scenario.metrics.outages] == [(30, 30)]
    load = load_series(scenario, tmp_path)
    assert (load.at(14), load.at(44)) == (0.8, 0.8)
    found = simulate(scenario, load)
    failures = [(each.time, each.reason) for each in found.condition_changes if each.type == "ScalingActive"]
    assert failures == [(0, "ValidMetricFound"), (30, "FailedGetResourceMetric")]


@pytest.mark.parametrize(
    ("missing", "kinds", "conditions", "outages"),
    [
        pytest.param({0}, METRIC_KINDS, [], [(0, 15)], id="at the start"),
        pytest.param({2, 3, 4}, METRIC_KINDS, [], [(30, 15)], id="until the last change"),
        pytest.param({4}, METRIC_KINDS, [], [], id="at the last instant"),
        pytest.param({1, 3}, METRIC_KINDS, [], [(15, 15), (45, 15)], id="twice"),
        pytest.param({1, 2}, METRIC_KINDS, ["False"] * 5, [(15, 30)], id="that the controller has noticed"),
        pytest.param({1, 2}, METRIC_KINDS, ["True", "True", "False"], [(15, 30)], id="that it notices later"),
        pytest.param({1}, METRIC_KINDS, ["True", "True", "False"], [(15, 15)], id="whose status comes after it"),
        pytest.param({1, 2}, METRIC_KINDS, ["True"] * 5, [], id="values that only the recording lacks"),
        pytest.param({1, 2}, ("PodMetrics",), [], [], id="one of two metrics"),
        pytest.param({1, 2}, (*METRIC_KINDS, "Scale"), [], [], id="no scale, so that no metric is read"),
    ],
)
def test_an_outage_is_a_time_in_which_no_metric_has_a_value(
    tmp_path: Path, missing: set[int], kinds: tuple[str, ...], conditions: list[str], outages: list[tuple[float, float]]
) -> None:
    scenario = read_scenario(write(tmp_path, without_metrics(missing, kinds=kinds, conditions=conditions)))

    found = [(each.at.total_seconds(), each.duration.total_seconds()) for each in scenario.metrics.outages]
    assert found == outages


def test_without_replicas_there_is_no_outage(tmp_path: Path) -> None:
    states = [
        (at, [hpa(metrics=[METRICS[1]]), scale(2), queue("9", at)])
        if step not in {1, 2}
        else (at, [hpa(metrics=[METRICS[1]]), scale(0)])
        for step, (at, _) in enumerate(instants())
    ]

    assert read_scenario(write(tmp_path, lines(states))).metrics.outages == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            lines([(NOON, [scale(2)])]),
            "web.jsonl:2: the first change must hold the HorizontalPodAutoscaler",
            id="no HPA",
        ),
        pytest.param(lines([(NOON, [hpa()])]), "the first metric of the HPA was never measured", id="no metrics"),
        pytest.param(lines(list(instants())[:1]), "there is only one instant", id="one instant"),
        pytest.param(
            lines([(at, [each for each in found if each["kind"] != "Pod"]) for at, found in instants()]),
            "no pod has a request for cpu, and its target is a utilization",
            id="no pods",
        ),
    ],
)
def test_a_recording_without_enough_is_an_error(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        recorded_scenario(write(tmp_path, text))

    assert problem in str(caught.value)


def test_a_load_of_a_metric_that_was_not_recorded_is_an_error(tmp_path: Path) -> None:
    write(tmp_path)
    scenario = recorded_scenario(tmp_path / "web.jsonl")
    (load,) = scenario.load

    with pytest.raises(InputError, match=r"web\.jsonl:2: spec\.metrics: metric 2 does not exist: the HPA has 2"):
        load_series(scenario.model_copy(update={"load": (load.model_copy(update={"metric": 2}),)}), tmp_path)
