"""Scenarios with several workloads: what is wrong with them, with the place in the file."""

from pathlib import Path

import pytest

from ocf.errors import ConfigError
from ocf.simulation import InputError, Scenario, load_series, parse_scenario, simulate

METRIC = "{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}"
TARGET = "{apiVersion: apps/v1, kind: Deployment, name: NAME}"
HPA = (
    "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: NAME},"
    f" spec: {{maxReplicas: 9, scaleTargetRef: {TARGET}, metrics: [{METRIC}]}}}}"
)
SCENARIO = f"""\
name: front
hpa: {HPA.replace("NAME", "front")}
workload: {{capacity: 10, requests: {{cpu: 500m}}}}
load: {{type: Steady, rate: 5}}
duration: 1h
nodeGroups:
- {{name: workers, zone: a, maxNodes: 3, instanceTypes: [{{name: small, cpu: 2, memory: 4Gi}}]}}
neighbors:
- name: back
  hpa: {HPA.replace("NAME", "back")}
  workload: {{capacity: 10, requests: {{cpu: 250m}}}}
  load: {{type: Served, by: front}}
"""


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (
            "- name: back",
            "- name: front",
            "9: neighbors[0].name: must be unique, 'front' is the name of another workload",
        ),
        (
            "by: front",
            "by: back",
            "12: neighbors[0].load.by: must be the name of the scenario or of a neighbor that comes",
        ),
        ("duration: 1h\n", "", ": duration: required value: with neighbors, whose loads may end at other times"),
        (
            "{cpu: 250m}",
            "{memory: 1Gi}",
            "11: neighbors[0].workload.requests: required value: spec.metrics[0] of the HPA",
        ),
        ("{cpu: 250m}", "{cpu: 3}", "11: neighbors[0].workload.requests: no instance type holds a pod of back"),
        ("{name: back}, spec: {", "{name: back}, spec: {minReplicas: -1, ", "10: neighbors[0].hpa.spec.min"),
        ("by: front}", "by: front}\n  metrics: {}", "13: neighbors[0].metrics: unknown field"),
        (
            "{cpu: 250m}",
            "{cpu: 250m}, disruptionBudget: {}",
            "11: neighbors[0].workload.disruptionBudget: must have one",
        ),
        ("{cpu: 250m}", "{cpu: 250m}, disruptionBudget: {maxUnavailable: -1}", "must be a number of pods"),
        (
            "nodeGroups:",
            "nodes: {zoneOutages: [{zone: b, at: 5m}]}\nnodeGroups:",
            "6: nodes.zoneOutages[0].zone: no node",
        ),
        (
            "zone: a,",
            "zone: a, bootFailures: [{at: 2h}],",
            "7: nodeGroups[0].bootFailures[0].at: must be before the end",
        ),
        (
            "by: front}",
            "by: front}\n  prediction: {forecaster: {type: SeasonalNaive, season: 10m}}",
            "no forecast with a",
        ),
        ("hpa: {api", "hpa: gone.yaml #{api", "gone.yaml: "),
    ],
)
def test_a_problem_has_its_place(before: str, after: str, problem: str) -> None:
    at = SCENARIO.rindex(before)
    with pytest.raises(InputError) as caught:
        parse_scenario(f"{SCENARIO[:at]}{after}{SCENARIO[at + len(before) :]}")

    [found] = caught.value.problems
    assert problem in str(found)


def test_a_neighbor_reads_files_beside_the_scenario(tmp_path: Path) -> None:
    hpa = tmp_path / "hpa.yaml"
    hpa.write_text(HPA.replace("NAME", "back"))
    (tmp_path / "load.csv").write_text("seconds,rate\n0,5\n15,6\n")
    text = SCENARIO.replace(f"  hpa: {HPA.replace('NAME', 'back')}", "  hpa: hpa.yaml").replace(
        "{type: Served, by: front}", "{type: Csv, path: load.csv, time: seconds, value: rate, unit: PerSecond}"
    )
    _, back = parse_scenario(text, directory=tmp_path).services()

    assert isinstance(back.hpa, dict)
    assert load_series(back, tmp_path).at(20) == 6


@pytest.fixture
def scenario() -> Scenario:
    return parse_scenario(SCENARIO)


def test_each_neighbor_needs_a_load(scenario: Scenario) -> None:
    with pytest.raises(ConfigError, match="expected a load for each of 1 neighbors, got 0"):
        simulate(scenario, load_series(scenario))


def test_a_place_in_the_file_does_not_change_a_workload(scenario: Scenario) -> None:
    own = {"name": "other", "hpa": scenario.neighbors[0].hpa, "workload": {"capacity": 10, "requests": {"cpu": "1"}}}
    other = type(scenario.neighbors[0]).model_validate({**own, "load": {"type": "Noise", "spread": 3}}, by_alias=True)
    first = scenario.model_copy(update={"neighbors": (other, *scenario.neighbors)}).services()[1]
    last = scenario.model_copy(update={"neighbors": (*scenario.neighbors, other)}).services()[2]

    assert first == last
    assert load_series(first) != load_series(first.model_copy(update={"seed": scenario.seed}))
