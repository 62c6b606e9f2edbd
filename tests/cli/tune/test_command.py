"""`ocf tune`: its output, files, exit status, and errors."""

import json
import re
import sys
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from errno import ENOSPC
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from ocf.cli.app import app
from ocf.cli.tune import executors
from ocf.cli.tune import run as tune_run
from ocf.objects import load_document
from ocf.simulation.measures.catalog import MEASURES
from ocf.simulation.tuning import evaluator
from ocf.simulation.tuning.evaluating import evaluate
from ocf.simulation.tuning.search import SearchFile
from tests.cli.simulate.test_command import WEB
from tests.simulation.recording.recordings import write

UTILIZATION: Final = "spec.metrics[0].resource.target.averageUtilization"
SEARCH: Final = ("--search", f"{UTILIZATION}=40..80 step 20", "--search", "spec.minReplicas=1|4")
HPA: Final = """\
# The shop.
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2  # one may fail
  maxReplicas: 20
  metrics:
    - type: Resource
      resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}
"""
FILES: Final = ("web.yaml", "dated.yaml")
INLINE: Final = re.compile(r"^hpa:\n(?:  .*\n)+", re.MULTILINE)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("web.yaml").write_text(WEB.replace("overloadTime: 0.5, latency: {atMost: 1s}", "overloadTime: 0.5"))
    Path("hpa.yaml").write_text(HPA)
    Path("named.yaml").write_text(INLINE.sub("hpa: hpa.yaml\n", Path("web.yaml").read_text()))


def tuned(*arguments: str, scenario: str = "web.yaml", search: tuple[str, ...] = SEARCH) -> Result:
    return CliRunner().invoke(app, ["tune", scenario, *search, "--jobs", "1", *arguments])


def test_a_search_gives_tables_a_verdict_and_a_page() -> None:
    done = tuned()
    assert (done.exit_code, done.stderr) == (0, "report: tuning.html\n")
    assert done.stdout.startswith("web: 7 candidates simulated\n\nsettings\n  field ")
    for title in (
        "searched: the first 75 % of the time",
        "held out: the last 25 % of the time",
        "front: ",
        "effects of single settings",
    ):
        assert f"\n{title}" in done.stdout
    assert "\nThe winner compared with the current settings: overload time " in done.stdout
    assert "\nThe winner compared with the runner-up: " in done.stdout
    assert " matters most." in done.stdout
    assert Path("tuning.html").read_text().startswith("<!doctype html>")


def test_a_dated_search_says_when_the_time_that_is_held_out_begins() -> None:
    """It is the last quarter of 20 minutes."""
    Path("dated.yaml").write_text(Path("web.yaml").read_text() + "start: 2026-03-01T15:04:00+01:00\n")
    found = tuned("--report", "dated.html", scenario="dated.yaml").stdout
    title = "eld out: the last 25 % of the time, from 2026-03-01 14:19:00 UTC"
    assert f"\nh{title}\n" in found
    assert f"<h2>H{title}</h2>" in Path("dated.html").read_text()
    json_of = {name: json.loads(tuned("--output", "json", "--no-report", scenario=name).stdout) for name in FILES}
    assert [json_of[each]["heldOutFrom"] for each in FILES] == [[None], ["2026-03-01T14:19:00+00:00"]]


def test_a_scenario_without_latencies_has_none_of_them(tmp_path: Path) -> None:
    """Its objective is no requirement, and asking for one is an error with the reason."""
    text = Path("web.yaml").read_text().replace("overloadTime: 0.5", "overloadTime: 1, latency: {atMost: 1s}")
    Path("bound.yaml").write_text(text)
    Path("connected.yaml").write_text(text.replace("capacity: 10,", "capacity: 10, connections: {lifetime: 5m},"))
    recording = write(tmp_path)

    assert "late_share" in tuned(scenario="bound.yaml").stdout
    for name, reason in (
        ("connected.yaml", "it has no latencies with `workload.connections`"),
        (recording.name, "its load is one of cores or bytes"),
    ):
        shown = tuned("--report", "page.html", scenario=name)
        json_text = tuned("--output", "json", "--no-report", scenario=name).stdout
        page = Path("page.html").read_text()
        assert shown.exit_code == 0
        assert not re.search(r"latency_|late_share|latency,", f"{shown.stdout}{json_text}{page}")
        refused = tuned("--require", "latency_p95 < 1s", scenario=name)
        assert (refused.exit_code, refused.stderr.rstrip()) == (
            2,
            f"error: web: latency_p95: {reason}",
        )


def test_json_has_everything_and_is_the_same_each_time() -> None:
    one, two = (tuned("--output", "json", "--no-report").stdout for _ in range(2))
    assert one == two
    found = json.loads(one)
    assert found["objectives"] == [
        {"measure": "overload_time", "direction": "min"},
        {"measure": "pod_hours", "direction": "min"},
    ]
    assert found["requirements"] == ["overload_time <= 0.5"]
    assert (found["evaluated"], found["invalid"], found["searched"]) == (7, 0, 0.75)
    assert found["winner"]["settings"] == found["front"][0]["settings"]
    [measures] = found["winner"]["heldOut"]
    assert set(measures) <= set(MEASURES)
    assert found["hpa"]["spec"]["minReplicas"] == found["winner"]["settings"]["spec.minReplicas"]
    assert not Path("tuning.html").exists()


def test_processes_print_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "_processors", lambda: 2)
    options = ["--output", "json", "--no-report"]
    done = CliRunner().invoke(app, ["tune", "web.yaml", *SEARCH, *options])
    assert done.stdout == tuned(*options).stdout


@pytest.mark.parametrize("scenario", ["web.yaml", "named.yaml"])
def test_the_manifest_of_the_winner_is_written(scenario: str) -> None:
    found = json.loads(tuned("--output", "json", "--write", "tuned.yaml", scenario=scenario).stdout)
    written = Path("tuned.yaml").read_text()
    values = found["winner"]["settings"]
    spec = load_document(written)["spec"]
    assert spec["minReplicas"] == values["spec.minReplicas"]
    assert spec["metrics"][0]["resource"]["target"]["averageUtilization"] == values[UTILIZATION]
    if scenario == "named.yaml":
        expected = HPA.replace("minReplicas: 2", f"minReplicas: {values['spec.minReplicas']}")
        assert written == expected.replace("ion: 60", f"ion: {values[UTILIZATION]}")


@pytest.mark.parametrize(
    ("hpa", "kept"),
    [
        pytest.param(HPA.replace("autoscaling/v2", "autoscaling/v2beta2"), True, id="v2beta2"),
        pytest.param(HPA.replace("maxReplicas:", "maxReplicas: 3\n  maxReplicas:"), False, id="a duplicate key"),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems:\n- " + HPA.strip().replace("\n", "\n  ") + "\n", False, id="a list"
        ),
    ],
)
def test_the_manifest_of_any_file_that_is_read_is_written(hpa: str, kept: bool) -> None:
    Path("hpa.yaml").write_text(hpa)
    found = json.loads(tuned("--output", "json", "--write", "tuned.yaml", scenario="named.yaml").stdout)
    text = Path("tuned.yaml").read_text()
    written = load_document(text)
    assert written["apiVersion"] == "autoscaling/v2"
    assert written["spec"]["minReplicas"] == found["winner"]["settings"]["spec.minReplicas"]
    assert ("# one may fail" in text) == kept


def test_an_hpa_of_a_beta_is_converted_with_a_note() -> None:
    Path("hpa.yaml").write_text(HPA.replace("autoscaling/v2", "autoscaling/v2beta2"))
    done = tuned(scenario="named.yaml")

    assert done.exit_code == 0
    assert done.stderr.startswith("note: hpa.yaml: autoscaling/v2beta2 is not served by Kubernetes 1.26 and newer: ")


def test_settings_that_the_manifest_has_no_field_for_are_noted() -> None:
    search = ("--search", "controller.tolerance=0.05|0.2", "--search", "spec.minReplicas=1|4")
    done = tuned("--output", "json", "--write", "tuned.yaml", search=search)
    value = json.loads(done.stdout)["winner"]["settings"]["controller.tolerance"]
    assert done.stderr == (
        f"note: controller.tolerance: the winner has {value}, which is not a field of the HPA: set it where the"
        " scenario has it from\n"
    )
    assert "note" not in tuned("--output", "json", search=search).stderr


def test_requirements_that_cannot_be_met_exit_with_1_and_write_no_manifest() -> None:
    done = tuned("--require", "overload_time < 1%", "--require", "pod_hours < 0.2", "--write", "tuned.yaml")
    assert done.exit_code == 1
    assert "No settings meet the requirements. The closest ones violate: " in done.stdout
    assert re.search(r"^  pod_hours < 0.2 +VIOLATED +VIOLATED", done.stdout, re.MULTILINE)
    assert not Path("tuned.yaml").exists()
    assert Path("tuning.html").exists()


def test_a_file_and_options_make_one_search() -> None:
    Path("search.yaml").write_text("settings: {spec.minReplicas: [1, 4]}\nobjectives: [flaps]\nrequire: [flaps < 9]\n")
    search = ("--search", "search.yaml", "--search", f"{UTILIZATION}=40|80")
    found = json.loads(tuned("--output", "json", "--require", "pod_hours < 99", search=search).stdout)
    assert [each["measure"] for each in found["objectives"]] == ["flaps"]
    assert found["requirements"] == ["pod_hours < 99", "flaps < 9", "overload_time <= 0.5"]
    assert list(found["winner"]["settings"]) == ["spec.minReplicas", UTILIZATION]


def test_several_scenarios_are_tuned_together() -> None:
    Path("calm.yaml").write_text(Path("named.yaml").read_text().replace("rate: 80", "rate: 40"))
    done = CliRunner().invoke(
        app, ["tune", "named.yaml", "calm.yaml", *SEARCH, "--jobs", "1", "--output", "json", "--no-report"]
    )
    found = json.loads(done.stdout)
    assert (found["scenarios"], found["across"]) == (["named", "calm"], "mean")
    assert len(found["winner"]["searched"]) == 2


@pytest.mark.parametrize("arguments", [["--across", "worst"], ["--search", "worst.yaml"]], ids=["option", "file"])
def test_an_objective_is_the_worst_of_several_scenarios_where_asked_for(arguments: list[str]) -> None:
    Path("calm.yaml").write_text(Path("named.yaml").read_text().replace("rate: 80", "rate: 40"))
    Path("worst.yaml").write_text("settings: {spec.maxReplicas: [19, 20]}\nacross: worst\n")
    done = CliRunner().invoke(
        app, ["tune", "named.yaml", "calm.yaml", *SEARCH, "--jobs", "1", "--no-report", *arguments]
    )
    assert (
        "\n  Totals are scaled to the length of the whole time. Each measure is the worst of 2 scenarios.\n"
        in done.stdout
    )
    assert " Each objective is the worst of 2 scenarios.\n" in done.stdout


def test_a_state_makes_an_interrupted_search_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = tuned("--output", "json", "--no-report").stdout
    calls = 0

    def interrupted(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return evaluate(*arguments)

    monkeypatch.setattr(evaluator, "evaluate", interrupted)
    options = ("--output", "json", "--no-report", "--state", "state.jsonl")
    done = tuned(*options)
    message = "interrupted: run the same command to go on with the evaluations in state.jsonl\n"
    assert (done.exit_code, done.stdout, done.stderr) == (130, "", message)
    assert len(Path("state.jsonl").read_text().splitlines()) == 1 + 3
    assert tuned(*options).stdout == expected
    assert calls == 4 + 4 + 2  # 7 candidates, of which 3 are known, and two finalists: the runner-up is the current one
    assert sorted(path.name for path in Path().iterdir()) == ["hpa.yaml", "named.yaml", "state.jsonl", "web.yaml"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        pytest.param(["tune"], "nothing to search: name a field", id="no search"),
        pytest.param(["tune", *SEARCH], "no scenario given", id="no scenario"),
        pytest.param(["tune", "lost.yaml", *SEARCH], "lost.yaml", id="no file"),
        pytest.param(["tune", "web.yaml", "--search", "lost.yaml"], "lost.yaml", id="no search file"),
        pytest.param(
            ["tune", "web.yaml", "--search", "spec.minReplicas=0"],
            "spec.minReplicas: no value is valid: spec.minReplicas: ",
            id="invalid setting",
        ),
        pytest.param(
            ["tune", "web.yaml", *SEARCH, "--objective", "cots"],
            "there is no measure 'cots'; did you mean",
            id="objective",
        ),
        pytest.param(
            ["tune", "web.yaml", *SEARCH, "--objective", "flaps", "--objective", "flaps"],
            "is given twice",
            id="objective twice",
        ),
        pytest.param(
            ["tune", "web.yaml", *SEARCH, "--objective", "flaps:max"],
            "contradicts the measure",
            id="contradicting objective",
        ),
        pytest.param(["tune", "web.yaml", *SEARCH, "--objective", "cost"], "there are no prices", id="no prices"),
        pytest.param(["tune", "web.yaml", *SEARCH, "--require", "flaps"], "invalid expression 'flaps'", id="require"),
        pytest.param(
            ["tune", "web.yaml", *SEARCH, "--holdout", "half"],
            "--holdout: must be from 0% to less than 100%, got 'half'",
            id="holdout",
        ),
        pytest.param(["tune", "web.yaml", *SEARCH, "--holdout", "100%"], "got '100%'", id="everything held out"),
        pytest.param(
            ["tune", "web.yaml", *SEARCH, "--sampler", "best"],
            "--sampler: must be one of auto, grid, tpe, nsga2, random, got 'best'",
            id="sampler",
        ),
        pytest.param(
            ["tune", "web.yaml", *SEARCH, "--across", "best"],
            "--across: must be one of mean, worst, got 'best'",
            id="across",
        ),
        pytest.param(
            ["tune", "web.yaml", *SEARCH, "--state", "lost/state"],
            "--state: the folder lost does not exist",
            id="state",
        ),
        pytest.param(
            ["tune", "web.yaml", *SEARCH, "--state", "web.yaml"],
            "--state: web.yaml is not the state of a",
            id="another file as the state",
        ),
        pytest.param(["tune", "web.yaml", *SEARCH, "--write", "lost/hpa"], "--write: the folder lost", id="write"),
        pytest.param(
            ["tune", "web.yaml", *SEARCH, "--dask", "tcp://127.0.0.1:1"],
            "--dask: tcp://127.0.0.1:1 cannot be reached",
            id="dask",
        ),
    ],
)
def test_an_error_is_one_line_and_writes_nothing(
    arguments: list[str], error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "_CONNECT_SECONDS", 0.1)
    before = {path: path.read_bytes() for path in Path().iterdir()}
    done = CliRunner().invoke(app, [*arguments, *(["--jobs", "1"] if len(arguments) > 1 else [])])
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert error in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


@pytest.mark.parametrize(
    ("module", "options", "error"),
    [
        pytest.param("optuna", ["--sampler", "tpe"], "pip install 'ocf[tune]', or use --sampler grid", id="optuna"),
        pytest.param("distributed", ["--dask", "tcp://127.0.0.1:1"], "pip install 'ocf[dask]'", id="dask"),
    ],
)
def test_without_an_extra_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, module: str, options: list[str], error: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    done = tuned(*options)
    assert (done.exit_code, error in done.stderr) == (2, True)


def test_a_worker_that_dies_is_an_error_and_keeps_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def submit(self, *_: Any) -> Any:
            raise BrokenProcessPool("A process in the process pool was terminated abruptly")

    @contextmanager
    def broken(**_: Any) -> Iterator[Any]:
        yield Broken()

    monkeypatch.setattr(tune_run, "executor_of", broken)
    done = tuned("--state", "state.jsonl")
    assert done.exit_code == 2
    assert "a worker ended unexpectedly, perhaps because memory ran out" in done.stderr
    assert len(Path("state.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize("option", ["--report", "--write"])
def test_a_full_disk_leaves_no_half_of_a_file(monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    from ocf.cli import output_files

    def full(_: Path) -> Any:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(output_files, "_opened", full)
    done = tuned(option, "out", *(() if option == "--report" else ("--no-report",)))
    assert done.exit_code == 2
    assert re.search(rf"error: {option}: .*out cannot be written: No space left on device", done.stderr)
    assert sorted(path.name for path in Path().iterdir()) == ["hpa.yaml", "named.yaml", "web.yaml"]


def test_the_schema_of_a_search_is_printed() -> None:
    done = CliRunner().invoke(app, ["tune", "--schema"])
    assert json.loads(done.stdout) == SearchFile.model_json_schema(by_alias=True)
