"""Scenarios from files."""

import gzip
from datetime import UTC, datetime
from errno import EACCES
from pathlib import Path
from textwrap import dedent
from typing import Final

import pytest

from ocf.simulation.input_errors import InputError
from ocf.simulation.load import text_files
from ocf.simulation.load.generators import SteadyLoad
from ocf.simulation.scenario import Scenario, parse_scenario, read_scenario

HPA: Final = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 9
"""
TYPES: Final = "Csv, Daily, Json, Noise, Prometheus, Ramp, Recording, Served, Sine, Spike, Steady, Steps, Weekly"
QUANTITY: Final = (
    "'500x' is not a quantity: write digits (2, 0.5, -1.25), then nothing, one of n u m k M G T P E Ki Mi Gi Ti Pi Ei,"
    " or an exponent (e3)"
)
MEMORY: Final = """\
  metrics:
  - {type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 1Gi}}}
"""
VALID: Final = """\
apiVersion: ocf.dev/v1
kind: Scenario
hpa: hpa.yaml
workload:
  capacity: 10
  requests: {cpu: 500m}
load:
  type: Steady
  rate: 40
duration: 1h
"""


def problems(text: str, directory: Path = Path()) -> list[str]:
    """Return the problems of a scenario, without the folder."""
    with pytest.raises(InputError) as caught:
        parse_scenario(text, file="a.yaml", directory=directory)
    return [str(each).replace(f"{directory}/", "") for each in caught.value.problems]


def with_hpa(directory: Path, hpa: str = HPA) -> Path:
    """Write a scenario and its HPA."""
    (directory / "hpa.yaml").write_text(hpa)
    path = directory / "a.yaml"
    path.write_text(VALID)
    return path


def replaced(old: str, new: str, text: str = VALID) -> str:
    """Return a text in which something is replaced."""
    assert old in text
    return text.replace(old, new)


class TestValid:
    def test_the_hpa_is_read_from_its_file_with_its_defaults(self, tmp_path: Path) -> None:
        scenario = read_scenario(with_hpa(tmp_path))

        assert isinstance(scenario.hpa, dict)
        assert scenario.hpa["spec"]["minReplicas"] == 1
        assert scenario.hpa["spec"]["metrics"][0]["resource"]["name"] == "cpu"
        assert scenario.load == (SteadyLoad(type="Steady", rate=40),)

    def test_the_hpa_may_be_inline_and_of_autoscaling_v1(self) -> None:
        hpa = "hpa: {apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec:"
        target = "{apiVersion: apps/v1, kind: Deployment, name: web}"
        spec = f"{{maxReplicas: 9, targetCPUUtilizationPercentage: 70, scaleTargetRef: {target}}}}}"

        scenario = parse_scenario(replaced("hpa: hpa.yaml", f"{hpa} {spec}"))

        assert isinstance(scenario.hpa, dict)
        assert scenario.hpa["apiVersion"] == "autoscaling/v2"
        assert scenario.hpa["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 70

    def test_its_status_is_dropped(self, tmp_path: Path) -> None:
        scenario = read_scenario(with_hpa(tmp_path, f"{HPA}status: {{currentReplicas: 4, desiredReplicas: 4}}\n"))

        assert "status" not in scenario.hpa

    def test_the_file_of_the_hpa_may_hold_other_objects(self, tmp_path: Path) -> None:
        scenario = read_scenario(with_hpa(tmp_path, f"kind: Deployment\n---\n{HPA}"))

        assert isinstance(scenario.hpa, dict)
        assert scenario.hpa["metadata"]["name"] == "web"

    def test_what_was_read_is_read_again(self, tmp_path: Path) -> None:
        first = read_scenario(with_hpa(tmp_path))

        assert parse_scenario(first.model_dump_json(by_alias=True)) == first

    def test_a_scenario_of_python_has_the_same_models(self) -> None:
        written = {"hpa": "hpa.yaml", "workload": {"capacity": 1}, "load": {"type": "Steady", "rate": 1}}

        assert Scenario.model_validate(written).load == (SteadyLoad(type="Steady", rate=1),)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: [1\nb: 2", ["a.yaml:2: did not find expected ',' or ']'"], id="not YAML"),
        pytest.param("a: 1\na: 2", ["a.yaml:2: the key a is given twice"], id="key twice"),
        pytest.param("[]", ["a.yaml: a map with keys is expected, not a list"], id="list"),
        pytest.param(
            "{}",
            ["a.yaml:1: hpa: required value", "a.yaml:1: workload: required value", "a.yaml:1: load: required value"],
            id="empty",
        ),
        pytest.param(
            replaced("capacity", "capasity"),
            [
                "a.yaml:4: workload.capacity: required value",
                'a.yaml:5: workload.capasity: unknown field, did you mean "capacity"?',
            ],
            id="misspelled field",
        ),
        pytest.param(
            replaced("  rate: 40", "  rate: 40\n  duratoin: 5m"),
            ['a.yaml:10: load.duratoin: unknown field, did you mean "duration"?'],
            id="misspelled field of a load",
        ),
        pytest.param(
            replaced("type: Steady", "type: Steps\n  steps: [{at: 0, rate: 1}, {att: 5m, rate: 2}]"),
            [
                "a.yaml:9: load.steps[1].at: required value",
                'a.yaml:9: load.steps[1].att: unknown field, did you mean "at"?',
                "a.yaml:10: load.rate: unknown field",
            ],
            id="misspelled field in a list",
        ),
        pytest.param(
            replaced("requests:", "warm_up: 5s\n  requests:"),
            ['a.yaml:6: workload.warm_up: unknown field, did you mean "warmUp"?'],
            id="snake case",
        ),
        pytest.param(
            replaced("Steady", "Stedy"),
            [f"a.yaml:8: load.type: must be one of {TYPES}, got 'Stedy', did you mean \"Steady\"?"],
            id="misspelled type",
        ),
        pytest.param(
            replaced("type: Steady", "at: 0s"),
            [f"a.yaml:7: load.type: required value: must be one of {TYPES}"],
            id="no type",
        ),
        pytest.param(
            replaced("  type: Steady\n  rate: 40", "- type: Steady\n  rate: 40\n- type: Steady\n  rate: -1"),
            ["a.yaml:11: load[1].rate: must be greater than or equal to 0, got -1"],
            id="value in the second load",
        ),
        pytest.param(
            replaced("duration: 1h", "duration: 1 hour\nseed: x"),
            [
                "a.yaml:10: duration: must be a duration like 1m30s, not '1 hour'",
                "a.yaml:11: seed: must be a valid integer, unable to parse string as an integer, got 'x'",
            ],
            id="several values",
        ),
        pytest.param(
            replaced("500m", "500x"),
            [f"a.yaml:6: workload.requests.cpu: {QUANTITY}"],
            id="quantity",
        ),
        pytest.param(
            replaced("hpa.yaml", "7"),
            ["a.yaml:3: hpa: must be the manifest of a HorizontalPodAutoscaler, or the path of a file with one, got 7"],
            id="HPA",
        ),
        pytest.param(
            replaced("kind: Scenario", "kind: Snapshot"),
            ["a.yaml:2: kind: must be 'Scenario', got 'Snapshot'"],
            id="kind",
        ),
    ],
)
def test_problems_name_line_and_field(text: str, expected: list[str]) -> None:
    assert problems(text) == expected


@pytest.mark.parametrize(
    ("hpa", "expected"),
    [
        pytest.param(
            replaced("  maxReplicas: 9", "  maxReplicas: 2\n  minReplicas: 3", HPA),
            ["hpa.yaml:6: spec.maxReplicas: Invalid value: 2: must be greater than or equal to `minReplicas`"],
            id="validation",
        ),
        pytest.param(
            replaced("maxReplicas", "maxReplica", HPA), ["spec.maxReplica: unknown field"], id="unknown field"
        ),
        pytest.param(
            f"kind: A\n---\n{HPA}  minReplicas: x\n", ["hpa.yaml:9: spec.minReplicas"], id="line of a document"
        ),
        pytest.param("a: [", ["hpa.yaml:2: did not find"], id="not YAML"),
        pytest.param(
            "kind: Deployment",
            ["hpa.yaml: must hold one HorizontalPodAutoscaler, and holds 0; it holds: Deployment"],
            id="other kind",
        ),
        pytest.param(f"{HPA}---\n{HPA}", ["and holds 2; it holds: HorizontalPodAutoscaler, Hor"], id="two"),
        pytest.param("", ["and holds 0; it holds: nothing"], id="empty"),
        pytest.param(
            f"kind: A\n---\n{HPA.replace('kind: HorizontalPodAutoscaler', 'kind: HPA')}",
            ['hpa.yaml:4: kind: "HPA" is not a kind of the group autoscaling: write HorizontalPodAutoscaler'],
            id="a misspelt kind",
        ),
        pytest.param(f"%YAML 1.2\n---\n{HPA}", ["hpa.yaml:1: kubectl cannot read a directive"], id="a directive"),
    ],
)
def test_problems_of_the_hpa_are_those_of_the_api_server(hpa: str, expected: list[str], tmp_path: Path) -> None:
    with_hpa(tmp_path, hpa)

    found = problems(VALID, tmp_path)

    assert len(found) >= len(expected)
    assert all(text in problem for text, problem in zip(expected, found, strict=False)), found


@pytest.mark.parametrize(
    "hpa",
    [
        pytest.param(f"{HPA}  maxReplicas: 9\n", id="a duplicate key, as kubectl reads it"),
        pytest.param(HPA.replace("autoscaling/v2", "autoscaling/v2beta2"), id="v2beta2"),
        pytest.param(HPA.replace("autoscaling/v2", "autoscaling/v2beta1"), id="v2beta1"),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems:\n- " + HPA.rstrip().replace("\n", "\n  ") + "\n", id="an item of a list"
        ),
    ],
)
def test_an_hpa_is_read_as_in_all_commands(hpa: str, tmp_path: Path) -> None:
    found = [parse_scenario(VALID, file="a.yaml", directory=with_hpa(tmp_path, each).parent) for each in (hpa, HPA)]

    assert found[0].hpa == found[1].hpa


def test_problems_of_an_inline_hpa_have_its_lines() -> None:
    inline = "hpa:\n" + "".join(f"  {line}\n" for line in HPA.replace("maxReplicas: 9", "maxReplicas: -1").splitlines())

    found = problems(replaced("hpa: hpa.yaml\n", inline))

    assert found[0] == "a.yaml:9: hpa.spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1"


METRIC: Final = """\
  metrics:
  - {type: Pods, pods: {metric: {name: rps}, target: {type: AverageValue, averageValue: 5}}}
"""


@pytest.mark.parametrize(
    ("hpa", "text", "expected"),
    [
        pytest.param(
            HPA,
            replaced("cpu: 500m", "memory: 1Gi"),
            "a.yaml:6: workload.requests: required value: spec.metrics[0] of the HPA is a utilization, a share of the"
            " request for cpu: add for example `cpu: 500m`",
            id="request",
        ),
        pytest.param(
            HPA + MEMORY,
            VALID,
            "a.yaml:4: workload.usage: required value: spec.metrics[0] of the HPA is the use of memory: add for example"
            " `memory: {busy: 256Mi}`, or a request",
            id="usage",
        ),
        pytest.param(
            HPA + METRIC,
            VALID,
            "a.yaml:4: workload.signals: required value: spec.metrics[0] of the HPA is the metric rps of type Pods: add"
            " for example `rps: {source: load}`",
            id="signal",
        ),
        pytest.param(
            HPA + METRIC,
            replaced("  requests:", "  signals: {rsp: {}}\n  requests:"),
            'example `rps: {source: load}`, in place of "rsp"?',
            id="misspelled signal",
        ),
        pytest.param(
            HPA,
            replaced("  requests:", "  usage: {cpu: {idle: 300m, busy: 200m}}\n  requests:"),
            "a.yaml:6: workload.usage.cpu.busy: must be at least the usage without load, 300m, got 200m",
            id="usage that falls",
        ),
        pytest.param(
            HPA,
            replaced("  requests:", "  rollouts: [{at: 1m, maxSurge: 0%, maxUnavailable: 0}]\n  requests:"),
            "workload.rollouts[0].maxUnavailable: must not be 0 as well as maxSurge: nothing would be replaced",
            id="rollout that replaces nothing",
        ),
        pytest.param(
            HPA,
            replaced("  requests:", "  rollouts: [{at: 1m, maxSurge: half}]\n  requests:"),
            "workload.rollouts[0].maxSurge: must be a number of pods, or a percentage such as 25%, got 'half'",
            id="rollout with a word as surge",
        ),
        pytest.param(
            HPA,
            replaced("  requests:", "  rollouts: [{at: 4h}]\n  requests:"),
            "a.yaml:6: workload.rollouts[0].at: must be before the end of the simulation at 1h0m0s, got 4h0m0s",
            id="rollout after the end",
        ),
        pytest.param(
            HPA,
            replaced("  requests:", "  usage: {cpu: {busy: 200m, startingTime: 9s}}\n  requests:"),
            "a.yaml:6: workload.usage.cpu.starting: required value: there is a `startingTime`; add what a pod uses"
            " while it starts, such as `2`",
            id="start without a usage",
        ),
        pytest.param(
            HPA,
            replaced("  requests:", "  signals: {rps: {source: queue, percentile: 95}}\n  requests:"),
            "a.yaml:6: workload.signals.rps.percentile: needs the source latency, which has percentiles, and not queue",
            id="percentile",
        ),
        pytest.param(
            HPA,
            f"{VALID}objectives: {{latency: {{atMost: 50ms}}}}",
            "a.yaml:11: objectives.latency.atMost: can never be met: one load unit alone takes 0.1s, got 0.05s",
            id="latency",
        ),
        pytest.param(
            f"{HPA}  minReplicas: 4\n",
            f"{VALID}objectives: {{podHours: 3}}",
            "a.yaml:11: objectives.podHours: can never be met: minReplicas 4 alone makes 4 in 1h0m0s, got 3",
            id="pod-hours",
        ),
        pytest.param(
            f"{HPA}  minReplicas: 4\n",
            f"{VALID}objectives: {{cost: 3, prices: {{podHour: 2}}}}",
            "a.yaml:11: objectives.cost: can never be met: minReplicas 4 alone makes 8 in 1h0m0s, got 3",
            id="cost",
        ),
        pytest.param(
            HPA,
            f"{VALID}objectives: {{cost: 3}}",
            "a.yaml:11: objectives.prices: required value: there is a bound of the cost; add `podHour`",
            id="prices",
        ),
        pytest.param(
            HPA,
            f"{VALID}metrics: {{outages: [{{at: 2h, duration: 1m}}]}}",
            "a.yaml:11: metrics.outages[0].at: must be before the end of the simulation at 1h0m0s, got 2h0m0s",
            id="outage after the end",
        ),
        pytest.param(
            HPA,
            replaced("  rate: 40", "  rate: 40\n  at: 1h"),
            "a.yaml:10: load.at: must be before the end of the simulation at 1h0m0s, got 1h0m0s",
            id="load after the end",
        ),
        pytest.param(
            HPA,
            f"{VALID}controller: {{kubernetes: '1.9'}}",
            "a.yaml:11: controller.kubernetes: Kubernetes 1.9 is not known here, must be",
            id="release",
        ),
        pytest.param(
            HPA,
            replaced("  type: Steady\n  rate: 40", "  type: Csv\n  path: missing.csv"),
            "a.yaml:9: load.path: there is no file missing.csv",
            id="file of a load",
        ),
    ],
)
def test_contradictions_are_rejected(hpa: str, text: str, expected: str, tmp_path: Path) -> None:
    with_hpa(tmp_path, hpa)

    (found,) = problems(text, tmp_path)

    assert expected in found


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    with_hpa(tmp_path)
    text = dedent("""\
        hpa: hpa.yaml
        workload:
          capacity: 10
        load: {type: Csv, path: missing.csv}
        controller: {kubernetes: '0.1'}
        """)

    assert [each.partition(": ")[0] for each in problems(text, tmp_path)] == ["a.yaml:2", "a.yaml:4", "a.yaml:5"]


def test_the_release_decides_on_the_validation(tmp_path: Path) -> None:
    hpa = f"{HPA}  behavior: {{scaleUp: {{tolerance: 0.2}}}}\n"
    with_hpa(tmp_path, hpa)

    assert parse_scenario(VALID, directory=tmp_path).hpa
    (found,) = problems(f"{VALID}controller: {{kubernetes: '1.32'}}", tmp_path)
    assert "spec.behavior.scaleUp.tolerance: unknown field" in found


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        pytest.param("missing.yaml", "cannot be read: No such file or directory", id="missing"),
        pytest.param("folder", "must be a file, not a folder", id="folder"),
        pytest.param("binary.yaml", "must be a text in UTF-8", id="no text"),
        pytest.param("bomb.yaml.gz", "bomb.yaml.gz: longer than 1 MiB: is it another file?", id="large"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error(
    name: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "MAX_JSON_BYTES", 2**20)
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe")
    (tmp_path / "bomb.yaml.gz").write_bytes(gzip.compress(b"#" * 2**21))

    with pytest.raises(InputError, match=problem):
        read_scenario(tmp_path / name)


def test_a_load_in_a_folder_that_cannot_be_searched_is_not_reported_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(path: Path) -> bool:
        raise PermissionError(EACCES, "Permission denied", str(path))

    with_hpa(tmp_path, HPA)
    monkeypatch.setattr(Path, "exists", forbidden)

    text = replaced("  type: Steady\n  rate: 40", "  type: Csv\n  path: closed/load.csv")
    assert parse_scenario(text, directory=tmp_path).load


GROUP: Final = """\
nodeGroups:
- name: workers
  maxNodes: 5
  instanceTypes:
  - {name: small, cpu: 4, memory: 16Gi, price: 0.2}
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            "  maxNodes: 5",
            "  minNodes: 6\n  maxNodes: 5",
            ["a.yaml:13: nodeGroups[0].minNodes: must be at most maxNodes, 5, got 6"],
            id="minimum above the maximum",
        ),
        pytest.param(
            "  maxNodes: 5",
            "  maxNodes: 5\n  initialNodes: 9",
            ["a.yaml:14: nodeGroups[0].initialNodes: must be at most maxNodes, 5, got 9"],
            id="more nodes at the start than the maximum",
        ),
        pytest.param(
            "price: 0.2",
            "price: -0.2",
            ["a.yaml:15: nodeGroups[0].instanceTypes[0].price: must be greater than or equal to 0, got -0.2"],
            id="negative price",
        ),
        pytest.param(
            "cpu: 4",
            "cpu: 0",
            ["a.yaml:15: nodeGroups[0].instanceTypes[0].cpu: must be greater than 0"],
            id="node without cpu",
        ),
        pytest.param(
            "cpu: 4",
            "cpu: 400m",
            [
                (
                    "a.yaml:11: nodeGroups: no instance type holds a pod of the workload: small: cpu: 500m requested,"
                    " 400m free of 400m: add a larger type, or lower `workload.requests`"
                )
            ],
            id="pod that no type holds",
        ),
        pytest.param(
            "  - {name: small",
            "  - {name: small, cpu: 2, memory: 8Gi}\n  - {name: small",
            [
                (
                    "a.yaml:16: nodeGroups[0].instanceTypes[1].name: must be unique in its group, 'small' is the name"
                    " of another type"
                )
            ],
            id="type twice",
        ),
        pytest.param(
            "nodeGroups:\n",
            "nodeGroups:\n- {name: workers, maxNodes: 1, instanceTypes: [{name: large, cpu: 8, memory: 8Gi}]}\n",
            ["a.yaml:13: nodeGroups[1].name: must be unique, 'workers' is the name of another group"],
            id="group twice",
        ),
        pytest.param(
            "  maxNodes: 5",
            "  maxNodes: 5\n  spot: {interruptionsPerHour: 0}",
            ["a.yaml:14: nodeGroups[0].spot.interruptionsPerHour: must be greater than 0"],
            id="spot without interruptions",
        ),
        pytest.param(
            "  maxNodes: 5",
            "  maxNodes: 5\n  scaleDown: {cpuTreshold: 40}",
            ['a.yaml:14: nodeGroups[0].scaleDown.cpuTreshold: unknown field, did you mean "cpuThreshold"?'],
            id="misspelt threshold",
        ),
        pytest.param(
            "  instanceTypes:\n  - {name: small, cpu: 4, memory: 16Gi, price: 0.2}\n",
            "  instanceTypes: []\n",
            ["a.yaml:14: nodeGroups[0].instanceTypes: must have at least one instance type, got a list"],
            id="group without types",
        ),
    ],
)
def test_node_groups_that_cannot_be_are_errors_with_their_lines(
    old: str, new: str, expected: list[str], tmp_path: Path
) -> None:
    with_hpa(tmp_path)

    assert problems(VALID + replaced(old, new, GROUP), tmp_path) == expected


EDITED: Final = """\
hpa:
  apiVersion: VERSION
  kind: HorizontalPodAutoscaler
  metadata: {name: web}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    maxReplicas: 9
workload: {capacity: 10, requests: {cpu: 500m}}
load: {type: Steady, rate: 20}
duration: 1h
hpaEdits:
- at: 10m
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    maxReplicas: 12
"""


def test_an_edit_has_the_version_of_the_hpa_and_the_defaults_of_the_api_server() -> None:
    old = EDITED.replace("VERSION", "autoscaling/v1") + "    targetCPUUtilizationPercentage: 70\n"
    [edit] = parse_scenario(old).hpa_edits

    assert (edit.at.total_seconds(), edit.spec["maxReplicas"], edit.spec["minReplicas"]) == (600, 12, 1)
    assert edit.spec["metrics"][0]["resource"]["target"]["averageUtilization"] == 70


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            "maxReplicas: 12",
            "maxReplicas: 12\n    minReplicas: 13",
            "scenario:15: hpaEdits[0].spec.maxReplicas: Invalid value: 12: must be greater than or equal to",
            id="rejected by the API server",
        ),
        pytest.param(
            "kind: Deployment, name: web}\n    maxReplicas: 12",
            "kind: Deployment, name: other}\n    maxReplicas: 12",
            "scenario:14: hpaEdits[0].spec.scaleTargetRef: must be that of the HPA, Deployment web,"
            " got Deployment other: a scenario has one workload",
            id="another target",
        ),
        pytest.param(
            "    maxReplicas: 12\n",
            "    maxReplicas: 12\n- at: 5m\n  spec: {maxReplicas: 3,"
            " scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}\n",
            "scenario:16: hpaEdits[1].at: must be later than that of the edit before, 10m0s, got 5m0s",
            id="out of order",
        ),
        pytest.param(
            "    maxReplicas: 12\n",
            "    maxReplicas: 12\n    metrics: [{type: Resource, resource: {name: memory,"
            " target: {type: Utilization, averageUtilization: 50}}}]\n",
            "(in hpaEdits[0])",
            id="a metric without values",
        ),
    ],
)
def test_an_edit_that_cannot_be_is_an_error_with_its_line(old: str, new: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_scenario(EDITED.replace("VERSION", "autoscaling/v2").replace(old, new))

    [problem] = caught.value.problems
    assert expected in str(problem)


def test_the_value_of_an_error_is_named_once() -> None:
    text = VALID + "prediction: {forecaster: {type: SeasonalNaive, season: 90s}}\n"
    with pytest.raises(InputError) as caught:
        parse_scenario(text)
    [problem] = caught.value.problems
    assert problem.detail == "the season must be a multiple of the step, 1m0s, got 1m30s"


DEFAULT: Final = datetime(2026, 1, 1, tzinfo=UTC)
INSTANTS: Final = "2026-03-01T06:00:00+01:00,40\n2026-03-01T06:01:00+01:00,50\n2026-03-01T06:02:00+01:00,60\n"


@pytest.mark.parametrize(
    ("rows", "load", "start"),
    [
        pytest.param(INSTANTS, "", datetime(2026, 3, 1, 5, tzinfo=UTC), id="instants"),
        pytest.param(
            "2026-07-01 06:00,40\n2026-07-01 06:01,50\n",
            "timeZone: Europe/Berlin",
            datetime(2026, 7, 1, 4, tzinfo=UTC),
            id="dates of a time zone",
        ),
        pytest.param(
            "1772344800,40\n1772344860,50\n", "", datetime(2026, 3, 1, 6, tzinfo=UTC), id="seconds since 1970"
        ),
        pytest.param(INSTANTS, "from: 1m", datetime(2026, 3, 1, 5, 1, tzinfo=UTC), id="cut by a time"),
        pytest.param(
            INSTANTS, "from: '2026-03-01T05:01:00Z'", datetime(2026, 3, 1, 5, 1, tzinfo=UTC), id="cut at an instant"
        ),
        pytest.param(INSTANTS, "at: 10m", datetime(2026, 3, 1, 4, 50, tzinfo=UTC), id="begins later"),
        pytest.param(INSTANTS, "timeFactor: 2", DEFAULT, id="at another speed"),
        pytest.param("0,40\n60,50\n", "", DEFAULT, id="seconds from any start"),
        pytest.param("-30000-01-01,40\n", "", DEFAULT, id="no time"),
        pytest.param("9000000000,40\n9000000060,50\n", "", DEFAULT, id="a year that no scenario has"),
        pytest.param("", "", DEFAULT, id="empty"),
    ],
)
def test_a_simulation_starts_when_its_load_was_recorded(tmp_path: Path, rows: str, load: str, start: datetime) -> None:
    (tmp_path / "load.csv").write_text(rows, encoding="utf-8")
    (tmp_path / "hpa.yaml").write_text(HPA, encoding="utf-8")
    text = VALID.replace("type: Steady\n  rate: 40", f"type: Csv\n  path: load.csv\n  {load}")

    assert parse_scenario(text, directory=tmp_path).start == start
    set_by_hand = parse_scenario(f"{text}start: 2020-02-02T00:00:00Z\n", directory=tmp_path)
    assert set_by_hand.start == datetime(2020, 2, 2, tzinfo=UTC)


def test_of_several_loads_the_first_with_instants_says_when_it_starts(tmp_path: Path) -> None:
    (tmp_path / "any.csv").write_text("0,40\n60,50\n", encoding="utf-8")
    (tmp_path / "load.csv").write_text(INSTANTS, encoding="utf-8")
    (tmp_path / "hpa.yaml").write_text(HPA, encoding="utf-8")
    loads = "".join(f"- {{type: Csv, path: {name}}}\n" for name in ("any.csv", "load.csv"))
    text = VALID.replace("load:\n  type: Steady\n  rate: 40\n", f"load:\n{loads}")

    assert parse_scenario(text, directory=tmp_path).start == datetime(2026, 3, 1, 5, tzinfo=UTC)
