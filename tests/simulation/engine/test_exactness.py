"""A run computed from counts of alike pods equals one in which every sync runs `decide` on a snapshot of all pods.

So does one in which the syncs of a stretch run together, where only the load changes.
"""

from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.errors import ConfigError
from ocf.simulation import Scenario, Shared, simulate
from ocf.simulation.engine.autoscaling import HPAController
from ocf.simulation.engine.stretches import Stretches
from ocf.simulation.load import LoadSeries
from ocf.simulation.result import SimulationResult
from ocf.simulation.scenario.scenario import HpaEdit
from ocf.simulation.scenario.workload import Delay
from tests.simulation.engine.scenarios import hpa_of, rows_of, run, scenario_of

NAMES = st.sampled_from(["cpu", "memory"])


def resource(name: str, target: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def other(kind: str, target: dict[str, Any]) -> dict[str, Any]:
    field = {"Pods": "pods", "Object": "object", "External": "external"}[kind]
    described = {"describedObject": {"apiVersion": "v1", "kind": "Service", "name": "web"}} if kind == "Object" else {}
    return {"type": kind, field: {"metric": {"name": "signal"}, "target": target, **described}}


def container(metric: dict[str, Any]) -> dict[str, Any]:
    return {"type": "ContainerResource", "containerResource": {**metric["resource"], "container": "main"}}


utilizations = st.integers(20, 120).map(lambda percent: {"type": "Utilization", "averageUtilization": percent})
averages = st.integers(1, 900).map(lambda milli: {"type": "AverageValue", "averageValue": f"{milli}m"})
rates = st.integers(1, 20).map(lambda rate: {"type": "AverageValue", "averageValue": str(rate)})
totals = st.integers(1, 90).map(lambda rate: {"type": "Value", "value": str(rate)})
resources = st.builds(resource, NAMES, utilizations | averages)
metrics = st.one_of(
    resources,
    resources.map(container),
    st.builds(other, st.just("Pods"), rates),
    st.builds(other, st.sampled_from(["Object", "External"]), rates | totals),
)
seconds = st.integers(0, 90)
policies = st.builds(
    lambda kind, value, period: {"type": kind, "value": value, "periodSeconds": period},
    st.sampled_from(["Pods", "Percent"]),
    st.integers(1, 120),
    st.sampled_from([15, 30, 60, 61, 180]),
)
rules = st.fixed_dictionaries(
    {},
    optional={
        "stabilizationWindowSeconds": st.sampled_from([0, 15, 30, 60, 200]),
        "policies": st.lists(policies, min_size=1, max_size=2),
        "selectPolicy": st.sampled_from(["Max", "Min", "Disabled"]),
        "tolerance": st.sampled_from(["0", "0.05", "0.3"]),
    },
)
behaviors = st.none() | st.fixed_dictionaries({}, optional={"scaleUp": rules, "scaleDown": rules})
delays = st.builds(lambda mean, spread: {"mean": f"{mean}s", "spread": f"{spread}ms"}, seconds, st.integers(0, 20_000))
starting: st.SearchStrategy[dict[str, str]] = st.just({}) | st.fixed_dictionaries(
    {"starting": st.sampled_from(["900m", "3m", "2"])}, optional={"starting_time": st.sampled_from(["1s", "50s", "4m"])}
)
shares = st.sampled_from([0, 1, 7, "25%", "100%"])
rollouts = st.fixed_dictionaries(
    {"at": st.integers(0, 700).map("{}s".format), "max_surge": shares, "max_unavailable": shares},
    optional={"image_pull": delays},
)
loads = st.lists(st.tuples(st.integers(1, 60_000), st.floats(0, 200, allow_subnormal=False)), min_size=1, max_size=12)


@st.composite
def hpas(draw: st.DrawFn) -> dict[str, Any]:
    """Return an HPA."""
    behavior = draw(behaviors)
    return hpa_of(
        *draw(st.lists(metrics, min_size=1, max_size=3)),
        minReplicas=draw(st.integers(1, 5)),
        maxReplicas=draw(st.integers(5, 30)),
        **({} if behavior is None else {"behavior": behavior}),
    )


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Return a scenario of about 60 syncs."""
    hpa = draw(hpas())
    workload = {
        "replicas": draw(st.none() | st.integers(0, 35)),
        "requests": {"cpu": "500m", "memory": "64Mi"},
        "usage": {
            "memory": {
                "idle": "20Mi",
                "busy": "90Mi",
                "release_after": draw(st.sampled_from(["0s", "0s", "70s", "1h"])),
            },
            "cpu": {"idle": "7m", "busy": "600m", **draw(starting)},
        },
        "signals": {
            "signal": {
                "source": draw(st.sampled_from(["load", "served", "queue", "backlog", "latency"])),
                "factor": draw(st.sampled_from([1.0, 0.37])),
            }
        },
        "startup": draw(delays),
        "image_pull": draw(st.just({"mean": "0s"}) | delays),
        "readiness": draw(delays),
        "termination": draw(delays),
        "warm_up": f"{draw(seconds)}s",
        "connections": draw(
            st.sampled_from([None, None, None, {"lifetime": "1m"}, {"lifetime": "10s"}, {"lifetime": "9h"}])
        ),
        "queue": {"length": draw(st.none() | st.integers(0, 500))},
        "rollouts": draw(st.lists(rollouts, max_size=2)),
        "failures": [
            {"at": f"{at}s", "pods": pods}
            for at, pods in draw(st.lists(st.tuples(st.integers(0, 900), st.integers(1, 3)), max_size=2))
        ],
    }
    pipeline = {
        "scrape_period": f"{draw(st.sampled_from([5, 15, 22, 60]))}s",
        "window": draw(st.none() | st.sampled_from(["10s", "30s", "1m", "2500ms"])),
        "delay": f"{draw(st.sampled_from([0, 4, 15, 40]))}s",
        "dropped": draw(st.sampled_from([0.0, 0.0, 0.2, 1.0])),
        "outages": [{"at": f"{draw(st.integers(0, 900))}s", "duration": "40s"}] if draw(st.booleans()) else [],
    }
    controller = {
        "kubernetes": draw(st.sampled_from([None, "1.30", "1.37"])),
        "tolerance": draw(st.sampled_from([0.1, 0.0, 0.4])),
        "downscale_stabilization": draw(st.sampled_from(["5m", "15s", "90s"])),
        "cpu_initialization_period": draw(st.sampled_from(["5m", "20s"])),
    }
    start = draw(st.sampled_from(["2026-01-01T00:00:00Z", "2026-03-29T00:59:50.25Z"]))
    return scenario_of(
        hpa,
        workload=workload,
        metrics=pipeline,
        controller=controller,
        duration="12m",
        start=start,
        seed=draw(st.integers(0, 9)),
    )


@given(scenarios(), loads)
def test_counts_of_pods_give_what_snapshots_of_all_pods_give(
    scenario: Scenario, changes: list[tuple[int, float]]
) -> None:
    compare(scenario, changes)


instants = st.lists(st.integers(0, 720_000), min_size=1, max_size=4, unique=True).map(sorted)


@given(scenarios(), instants, st.data(), loads)
@settings(max_examples=60)
def test_counts_of_pods_give_what_snapshots_give_when_the_hpa_is_edited(
    scenario: Scenario, edited: list[int], data: st.DataObject, changes: list[tuple[int, float]]
) -> None:
    edits = tuple(
        HpaEdit(at=timedelta(milliseconds=at), spec=data.draw(hpas())["spec"], recreated=data.draw(st.booleans()))
        for at in edited
    )
    compare(scenario.model_copy(update={"hpa_edits": edits}), changes)


@st.composite
def calm_scenarios(draw: st.DrawFn) -> Scenario:
    """Return a scenario of up to 160 syncs whose pods start quickly, so that often only the load changes."""
    scenario = draw(scenarios())
    quick = draw(st.sampled_from([0, 3, 20]))
    workload = scenario.workload.model_copy(
        update={
            "startup": Delay(mean=timedelta(seconds=quick)),
            "readiness": Delay(mean=timedelta()),
            "warm_up": timedelta(seconds=draw(st.sampled_from([0, 0, 40]))),
            "replicas": draw(st.none() | st.integers(1, 20)),
        }
    )
    pipeline = scenario.metrics.model_copy(update={"dropped": draw(st.sampled_from([0.0, 0.0, 0.0, 0.2]))})
    period = timedelta(seconds=draw(st.sampled_from([10, 15, 15, 27])))
    controller = scenario.controller.model_copy(update={"sync_period": period})
    minutes = timedelta(minutes=draw(st.integers(12, 27)))
    parts = {"workload": workload, "metrics": pipeline, "controller": controller, "duration": minutes}
    return scenario.model_copy(update=parts)


@st.composite
def calm_loads(draw: st.DrawFn) -> list[tuple[int, float]]:
    """Return a load that changes by little on a grid, and now and then by much."""
    grid = draw(st.sampled_from([5000, 7250, 15_000, 60_000]))
    middle = draw(st.floats(5, 150))
    noise = st.floats(-0.2, 0.2).map(lambda share: middle * (1 + share))
    rates = draw(st.lists(noise | st.floats(0, 200, allow_subnormal=False), min_size=10, max_size=60))
    return [(grid, rate) for rate in rates]


@given(calm_scenarios(), calm_loads(), st.lists(instants, max_size=1), st.data())
def test_syncs_that_run_together_give_what_snapshots_give(
    scenario: Scenario, changes: list[tuple[int, float]], edited: list[list[int]], data: st.DataObject
) -> None:
    times = [at for each in edited for at in each]
    edits = tuple(HpaEdit(at=timedelta(milliseconds=at), spec=data.draw(hpas())["spec"]) for at in times)
    compare(scenario.model_copy(update={"hpa_edits": edits}), changes)


@given(calm_scenarios(), calm_loads())
@settings(max_examples=40)
def test_a_run_without_stretches_gives_the_same(scenario: Scenario, changes: list[tuple[int, float]]) -> None:
    steps = steps_of(changes)
    with patch.object(Stretches, "run", return_value=None):
        alone = run(scenario, *steps)
    same(run(scenario, *steps), alone)


@given(calm_scenarios(), calm_loads(), st.lists(hpas(), min_size=2, max_size=3))
@settings(max_examples=25)
def test_runs_that_share_what_follows_from_the_load_give_what_each_gives_alone(
    scenario: Scenario, changes: list[tuple[int, float]], several: list[dict[str, Any]]
) -> None:
    steps = steps_of(changes)
    shared = Shared(LoadSeries.of(steps))
    for hpa in [*several, *several]:
        tried = scenario.model_copy(update={"hpa": hpa})
        same(run(tried, *steps, shared=shared), run(tried, *steps))


def test_what_runs_share_is_of_one_load() -> None:
    load, other = LoadSeries.of([(0, 20)]), LoadSeries.of([(0, 30)])
    assert simulate(scenario_of(), load, shared=Shared(LoadSeries.of([(0, 20)]))).syncs == 40
    with pytest.raises(ConfigError, match="`shared` was made for another load"):
        simulate(scenario_of(), load, shared=Shared(other))


def test_runs_whose_metrics_differ_share_no_samples() -> None:
    usage = {"usage": {"memory": {"idle": "20Mi", "busy": "90Mi"}, "cpu": {"idle": "7m", "busy": "600m"}}}
    workload = {"requests": {"cpu": "500m", "memory": "64Mi"}, "replicas": 5, **usage}
    target = {"type": "Utilization", "averageUtilization": 60}
    hpas_of_names = [hpa_of(resource(name, target), minReplicas=5, maxReplicas=5) for name in ("cpu", "memory", "cpu")]
    tried = [scenario_of(hpa, workload=workload) for hpa in hpas_of_names]
    steps = [(15.0 * step, 20.0 + step % 7) for step in range(40)]
    shared = Shared(LoadSeries.of(steps))
    for scenario in tried:
        same(run(scenario, *steps, shared=shared), run(scenario, *steps))


@pytest.mark.parametrize(
    "pipeline",
    [
        pytest.param({"window": "60s"}, id="window longer than the period"),
        pytest.param({"window": "7s"}, id="window shorter than the period"),
        pytest.param({"window": "60s", "delay": "40s"}, id="samples that are read late"),
        pytest.param({"scrape_period": "60s"}, id="samples that several syncs read"),
        pytest.param({"scrape_period": "4s", "delay": "1s"}, id="samples that no sync reads"),
    ],
)
def test_the_samples_after_a_stretch_average_over_the_load_before_its_end(pipeline: dict[str, Any]) -> None:
    """The load changes every five seconds, and jumps in the middle of a window."""
    steps = [(5.0 * step, (20.0 if step < 66 or step > 190 else 55.0) + step % 7) for step in range(400)]
    scenario = scenario_of(metrics=pipeline, workload={"startup": {"mean": "3s"}}, duration="33m")
    quick = run(scenario, *steps)
    assert len(quick.actions) > 2
    same(quick, run(scenario, *steps, full=True))


@pytest.mark.parametrize(
    "part",
    [
        pytest.param({"usage": {"cpu": {"busy": "1", "starting": "2", "starting_time": "90s"}}}, id="start"),
        pytest.param({"usage": {"cpu": {"busy": "1", "release_after": "4m"}}}, id="usage that is kept"),
        pytest.param({"connections": {"lifetime": "2m"}}, id="connections"),
        pytest.param({"rollouts": [{"at": "403s"}, {"at": "25m", "max_surge": 0}]}, id="rollouts"),
        pytest.param({"image_pull": {"mean": "20s", "spread": "9s"}}, id="pull of the image"),
    ],
)
def test_what_pods_do_besides_their_load_is_the_same_in_a_stretch(part: dict[str, Any]) -> None:
    """The load changes by little, and rises for ten minutes."""
    steps = [(5.0 * step, (20.0 if step < 100 or step > 220 else 55.0) + step % 7) for step in range(400)]
    scenario = scenario_of(workload={"startup": {"mean": "3s"}, **part}, duration="33m")
    quick = run(scenario, *steps)
    assert len(quick.actions) > 2
    same(quick, run(scenario, *steps, full=True))


def test_a_sample_of_the_start_is_that_of_the_pods_before_the_first_sync() -> None:
    scenario = scenario_of(hpa_of(maxReplicas=5), metrics={"scrape_period": "60s"}, workload={"replicas": 10})
    steps = [(15.0 * step, 5.0 + step % 3) for step in range(40)]
    same(run(scenario, *steps), run(scenario, *steps, full=True))


def test_syncs_between_changes_of_the_pods_run_together(monkeypatch: pytest.MonkeyPatch) -> None:
    alone: list[int] = []
    sync = HPAController.sync

    def counted(controller: HPAController, now: int) -> Any:
        alone.append(now)
        return sync(controller, now)

    monkeypatch.setattr(HPAController, "sync", counted)
    scenario = scenario_of().model_copy(update={"duration": timedelta(days=1)})
    result = run(scenario, *((15.0 * step, 50.0 + step % 3) for step in range(5760)))
    assert result.syncs == 5760
    assert len(alone) < 60


def steps_of(changes: list[tuple[int, float]]) -> list[tuple[float, float]]:
    """Return begin and rate of the steps of a load, from the milliseconds between them."""
    at, steps = 0, [(0.0, changes[0][1])]
    for later, rate in changes[1:]:
        at += later
        steps.append((at / 1000, rate))
    return steps


def compare(scenario: Scenario, changes: list[tuple[int, float]]) -> None:
    """Compare a run that counts pods with one that runs `decide` in every sync."""
    steps = steps_of(changes)
    same(run(scenario, *steps), run(scenario, *steps, full=True))


def same(quick: SimulationResult, full: SimulationResult) -> None:
    """Check that two results are equal in all bits."""
    for ours, theirs in zip(rows_of(quick), rows_of(full), strict=True):
        assert repr(ours) == repr(theirs)
    assert quick.condition_changes == full.condition_changes
    assert quick.actions == full.actions
