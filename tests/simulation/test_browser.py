"""The entry of the playground: the files of a scenario in, an answer out, as JSON."""

import json
import textwrap
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.simulation.browser import CURVE_PARTS, MAX_SYNCS, answer

HPA: Final = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 9
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}
"""
SCENARIO: Final = """\
hpa: hpa.yaml
workload: {capacity: 10, requests: {cpu: 100m}}
duration: 20m
load: [{type: Sine, mean: 40, amplitude: 30, period: 7m}, {type: Noise, share: 0.3}]
"""
TOO_LONG: Final = f"must be at most 208 h 20 min in the browser, {MAX_SYNCS} syncs"
EXAMPLES: Final = Path(__file__).parents[2] / "docs" / "playground" / "examples.yaml"


def asked(scenario: str = SCENARIO, hpa: str = HPA, **more: Any) -> Any:
    return json.loads(answer(json.dumps({"files": {"scenario.yaml": scenario, "hpa.yaml": hpa}, **more})))


@pytest.mark.parametrize(("output", "option"), [("csv", "--csv"), ("report", "--report")])
def test_the_files_are_those_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, option: str
) -> None:
    (tmp_path / "hpa.yaml").write_text(HPA)
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    written = tmp_path / "written"
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["simulate", "scenario.yaml", option, str(written)])
    assert done.exit_code == 0
    assert asked(output=output) == {"problems": [], "text": written.read_text(encoding="utf-8")}


def test_a_view_has_the_parts_of_the_report_without_its_page() -> None:
    found = asked()
    page = asked(output="report")["text"]
    assert found["problems"] == []
    assert found["body"] in page
    assert found["data"].replace("<", "\\u003c") in page
    assert "<h1" not in found["body"]
    assert found["title"] == "simulation"
    assert found["summary"].startswith("80 syncs, ")


def test_the_curve_is_the_mean_load_of_each_part() -> None:
    steps = [{"at": 20 * part, "rate": part % 7} for part in range(CURVE_PARTS)]
    scenario = SCENARIO.replace(SCENARIO.splitlines()[-1], f"load: {{type: Steps, steps: {json.dumps(steps)}}}")
    assert asked(scenario)["curve"] == {"rates": [each["rate"] for each in steps], "end": 1200.0, "fixed": True}


def test_the_end_of_the_curve_may_follow_from_the_load() -> None:
    steps = "load: {type: Steady, rate: 5, duration: 5m}"
    scenario = SCENARIO.replace("duration: 20m\n", "").replace(SCENARIO.splitlines()[-1], steps)
    assert asked(scenario)["curve"] == {"rates": [5.0] * CURVE_PARTS, "end": 300.0, "fixed": False}


@pytest.mark.parametrize(
    ("scenario", "hpa", "problem"),
    [
        pytest.param(
            SCENARIO,
            HPA.replace("maxReplicas: 9", "maxReplicas: 1"),
            ("hpa.yaml", 7, "spec.maxReplicas", "Invalid value: 1: must be greater than or equal to `minReplicas`"),
            id="the API server would reject the HPA",
        ),
        pytest.param(
            SCENARIO,
            HPA.replace("spec:", "kind: twice\nspec:"),
            ("hpa.yaml", 4, "kind", '"twice" is not a kind of the group autoscaling: write HorizontalPodAutoscaler'),
            id="the text of the HPA",
        ),
        pytest.param(
            SCENARIO.replace("capacity: 10", "capacity: -1"),
            HPA,
            ("scenario.yaml", 2, "workload.capacity", "must be greater than 0, got -1"),
            id="a value of the scenario",
        ),
        pytest.param(
            SCENARIO.replace("mean: 40", "mean: 4"),
            HPA,
            (
                "scenario.yaml",
                4,
                "load[0]",
                "amplitude 30 is above the mean 4: a load is never negative, got a mapping",
            ),
            id="a load",
        ),
        pytest.param(
            SCENARIO.replace("{type: Noise, share: 0.3}", "{type: Csv, path: load.csv}"),
            HPA,
            ("scenario.yaml", 4, "load[1].path", "there is no file load.csv"),
            id="a file that is missing, without the folder of the run",
        ),
        pytest.param(
            SCENARIO.replace("20m", "9000h"),
            HPA,
            (
                "scenario.yaml",
                3,
                "duration",
                f"{TOO_LONG}, got 9000 h: run it with `ocf simulate`",
            ),
            id="a duration that is too long",
        ),
        pytest.param(
            SCENARIO.replace("duration: 20m", "seed: 1").replace("period: 7m", "period: 7m, duration: 209h"),
            HPA,
            (
                "scenario.yaml",
                None,
                "duration",
                f"{TOO_LONG}, got 209 h: run it with `ocf simulate`",
            ),
            id="a load that is too long",
        ),
        pytest.param(
            SCENARIO.replace("duration: 20m\n", ""),
            HPA,
            (
                "",
                None,
                "",
                "duration: required value: no load of the scenario ends, write for example `duration: 1h`",
            ),
            id="no end",
        ),
    ],
)
def test_a_problem_has_its_place(scenario: str, hpa: str, problem: tuple[str, int | None, str, str]) -> None:
    file, line, field, detail = problem
    assert asked(scenario, hpa) == {"problems": [{"file": file, "line": line, "field": field, "detail": detail}]}


def test_a_longer_period_of_syncs_allows_a_longer_simulation() -> None:
    found = asked(f"{SCENARIO.replace('20m', '209h')}controller: {{syncPeriod: 1h}}\n")
    assert found["problems"] == []


def test_a_file_is_never_written_outside_of_the_folder_of_the_run(tmp_path: Path) -> None:
    outside = tmp_path / "outside.yaml"
    answer(json.dumps({"files": {"scenario.yaml": SCENARIO, "hpa.yaml": HPA, str(outside): "text"}}))
    assert not outside.exists()


def test_progress_is_reported_to_the_end() -> None:
    shares: list[float] = []
    answer(json.dumps({"files": {"scenario.yaml": SCENARIO, "hpa.yaml": HPA}}), shares.append)
    assert shares[-1] == 1.0


@pytest.mark.parametrize(
    "example", [pytest.param(each, id=each["title"]) for each in yaml.safe_load(EXAMPLES.read_text(encoding="utf-8"))]
)
def test_the_examples_of_the_page_can_be_simulated(example: dict[str, str]) -> None:
    load = textwrap.indent(example["load"], "  ")
    assert asked(f"hpa: hpa.yaml\n{example['scenario']}load:\n{load}", example["hpa"])["problems"] == []
