"""`ocf simulate`: its output, files, gates and errors."""

import csv
import json
import re
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from errno import ENOSPC
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from ocf.cli.app import app
from ocf.cli.simulate import files as simulate_files
from ocf.cli.simulate import init as simulate_init
from ocf.cli.simulate import run as simulate_run
from ocf.objects import Manifest, load_document
from ocf.simulation import parse_scenario
from ocf.simulation.measures.catalog import MEASURES, Group
from ocf.simulation.report.rows import COLUMN_NAMES
from ocf.simulation.result import SimulationResult

WEB: Final = """\
name: web
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: web, namespace: shop}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    minReplicas: 2
    maxReplicas: 20
    metrics:
      - type: Resource
        resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}
workload: {capacity: 10, requests: {cpu: 100m}}
load: {type: Steps, steps: [{at: 0s, rate: 10}, {at: 5m, rate: 80}]}
duration: 20m
objectives: {overloadTime: 0.5, latency: {atMost: 1s}}
"""
HPA: Final = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop, uid: "1", managedFields: []}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 20
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]
status: {currentReplicas: 1}
"""
DEPLOYMENT: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: web, resources: {requests: {cpu: 333m}}}]}
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("web.yaml").write_text(WEB)
    Path("hot.yaml").write_text(WEB.replace("averageUtilization: 60", "averageUtilization: 90"))


def simulated(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["simulate", *arguments])


@pytest.mark.parametrize("version", ["autoscaling/v2beta1", "autoscaling/v2beta2"])
@pytest.mark.parametrize("inline", [True, False], ids=["in the scenario", "in a file"])
def test_an_hpa_of_a_beta_is_converted_with_a_note(version: str, *, inline: bool) -> None:
    """Once for all scenarios of a command, and on standard error, so that it is not part of JSON."""
    old = {"resource": {"name": "cpu", "targetAverageUtilization": 60}}
    target = {"type": "Utilization", "averageUtilization": 60}
    new = {"resource": {"name": "cpu", "target": target}}
    metrics = [{"type": "Resource", **(old if version.endswith("1") else new)}]
    scenario = load_document(WEB)
    hpa = {**scenario["hpa"], "apiVersion": version, "spec": {**scenario["hpa"]["spec"], "metrics": metrics}}
    Path("old.yaml").write_text(json.dumps(hpa))
    for name in ("one", "two"):
        text = json.dumps({**scenario, "hpa": hpa if inline else "old.yaml"})
        Path(f"{name}.yaml").write_text(text)
    single, both = (
        simulated("one.yaml", "--output", "json"),
        simulated("one.yaml", "two.yaml", "--compare", "--output", "json"),
    )
    place = "one.yaml" if inline else "old.yaml"

    assert single.stderr.startswith(f"note: {place}: {version} is not served by Kubernetes 1.2")
    assert single.stderr.splitlines()[0].endswith("; it is simulated as autoscaling/v2")
    assert both.stderr.count("note: ") == (2 if inline else 1)
    assert json.loads(single.stdout)
    assert "note: " not in simulated("web.yaml", "--output", "json").stderr


def test_a_scenario_gives_a_summary_and_a_page() -> None:
    done = simulated("web.yaml")
    assert (done.exit_code, done.stderr) == (0, "report: report.html\n")
    assert done.stdout.startswith("web: 20 min from 2026-01-01 00:00:00, 80 syncs\n\npods: █ ready")
    assert "  met     overload time at most 50 %: " in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert Path("report.html").read_text().startswith("<!doctype html>")


def test_json_has_measures_objectives_actions_and_conditions() -> None:
    done = simulated("web.yaml", "--output", "json", "--no-report", "--fail-if", "flaps > 100")
    found = json.loads(done.stdout)
    [run] = found["runs"]
    assert list(run["measures"]) == [name for name, each in MEASURES.items() if each.group is not Group.NODES]
    assert [each["met"] for each in run["objectives"]] == [True, False]
    assert run["actions"][0]["before"] == 2
    assert run["actions"][0]["explanation"]
    assert {each["type"] for each in run["conditions"]} == {"AbleToScale", "ScalingActive", "ScalingLimited"}
    assert found["gates"] == {"flaps > 100": True}
    assert not Path("report.html").exists()


NODE_GROUPS = """
nodeGroups:
- name: workers
  maxNodes: 5
  instanceTypes: [{name: small, cpu: 1, memory: 4Gi, price: 0.5}]
"""


def test_node_groups_have_actions_totals_columns_and_a_gate() -> None:
    Path("nodes.yaml").write_text(WEB + NODE_GROUPS)
    options = ("--csv", "rows.csv", "--no-report", "--fail-if", "node_cost > 0.1")
    done = simulated("nodes.yaml", "--output", "json", *options)
    [run] = json.loads(done.stdout)["runs"]
    assert done.exit_code == 1
    assert {each["source"] for each in run["actions"]} == {"HPA", "node group workers"}
    assert run["nodeGroups"][0]["group"] == "workers"
    assert run["nodeGroups"][0]["cost"] == pytest.approx(run["measures"]["node_cost"])
    with Path("rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["nodes_ready"] == row["nodes_ready.workers"] for row in rows} == {True}
    assert max(int(row["pending"]) for row in rows) > 0
    shown = simulated("nodes.yaml", "--no-report").stdout
    assert re.search(r"node-hours +\d", shown)
    assert re.search(r"pod-seconds of waiting +\d", shown)


def test_the_same_scenario_gives_the_same_bytes() -> None:
    outputs = []
    for name in ("one", "two"):
        options = ("--output", "json", "--report", f"{name}.html", "--csv", f"{name}.csv")
        outputs.append(
            (simulated("web.yaml", *options).stdout, *(Path(f"{name}.{e}").read_bytes() for e in ("html", "csv")))
        )
    assert outputs[0] == outputs[1]


def test_csv_has_a_row_for_each_row_of_the_run() -> None:
    simulated("web.yaml", "--csv", "rows.csv", "--no-report")
    with Path("rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMN_NAMES
    assert (rows[0]["time"], rows[0]["load"], rows[0]["replicas"]) == ("0", "10", "2")
    assert sum(row["synced"] == "1" for row in rows) == 80


def test_compared_scenarios_are_side_by_side() -> None:
    done = simulated("--compare", "web.yaml", "hot.yaml", "--csv", "rows.csv")
    assert done.exit_code == 0
    assert re.search(r"measure +web +hot$", done.stdout, re.MULTILINE)
    assert re.search(r"elastic speedup +1 +\d", done.stdout)
    assert re.search(r"objective: overload time at most 50 % +met +met", done.stdout)
    with Path("rows.csv").open(newline="") as file:
        assert {row["run"] for row in csv.DictReader(file)} == {"web", "hot"}
    assert "<h1>web / hot</h1>" in Path("report.html").read_text()


def test_scenarios_of_one_name_are_told_apart_by_their_folder() -> None:
    for folder in ("a", "b"):
        Path(folder).mkdir()
        Path(folder, "web.yaml").write_text(WEB)
    found = json.loads(simulated("--compare", "a/web.yaml", "b/web.yaml", "--output", "json").stdout)
    assert [each["name"] for each in found["runs"]] == ["a/web.yaml", "b/web.yaml"]


@pytest.mark.parametrize(
    ("gates", "status"),
    [
        pytest.param(["overload_time > 99%"], 0, id="passed"),
        pytest.param(["overload_time < 99%"], 1, id="failed"),
        pytest.param(["overload_time > 99%", "pod_hours > 0"], 1, id="one of two"),
    ],
)
def test_a_gate_decides_the_exit_status(gates: list[str], status: int) -> None:
    done = simulated("web.yaml", *(word for gate in gates for word in ("--fail-if", gate)))
    assert done.exit_code == status
    assert done.stderr.count("failed: ") == status
    assert Path("report.html").exists()


def test_a_failed_gate_names_run_and_value() -> None:
    done = simulated("--compare", "web.yaml", "hot.yaml", "--fail-if", "replicas_max > 18")
    assert done.stderr.splitlines()[1:] == ["failed: replicas_max > 18: replicas_max is 20 in web"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param([], "no scenario given: write its file, or --init FILE to get one for an HPA", id="nothing"),
        pytest.param(["web.yaml", "hot.yaml"], "2 scenarios given: add --compare to compare them", id="no --compare"),
        pytest.param(["--compare", "web.yaml"], "--compare needs at least two scenarios", id="one to compare"),
        pytest.param(
            ["web.yaml", "--fail-if", "overlaod_time > 2%"],
            "there is no measure 'overlaod_time'; did you mean overload_time?",
            id="unknown measure",
        ),
        pytest.param(["web.yaml", "--report", "x/y.html"], "--report: the folder x does not exist", id="no folder"),
        pytest.param(["web.yaml", "--csv", "."], "--csv: . is a folder; write the name of a file", id="a folder"),
        pytest.param(["missing.yaml"], "missing.yaml: ", id="no file"),
        pytest.param(["--init"], "--init needs the manifest of an HPA, or --name of one in a cluster", id="init"),
    ],
)
def test_errors_have_status_2_and_write_nothing(arguments: list[str], message: str) -> None:
    done = simulated(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not Path("report.html").exists()


def test_each_problem_of_a_file_has_a_line() -> None:
    Path("web.yaml").write_text("hpa: hpa.yaml\nworkload: {capacity: -1}\nload: {type: Stedy}\n")
    lines = simulated("web.yaml").stderr.splitlines()
    assert lines[0] == "error: web.yaml:2: workload.capacity: must be greater than 0, got -1"
    assert lines[1].startswith("error: web.yaml:3: load.type: ")
    assert len(lines) == 2


@pytest.mark.parametrize("kind", ["HorizontalPodAutoscaler", "ScaledObject"])
def test_an_autoscaler_in_place_of_a_scenario_is_one_problem(kind: str) -> None:
    Path("web.yaml").write_text(HPA if kind == "HorizontalPodAutoscaler" else SCALED_OBJECT)
    assert simulated("web.yaml").stderr == (
        f"error: web.yaml:2: kind: must be 'Scenario', got '{kind}': `ocf simulate --init` writes a scenario for it\n"
    )


@pytest.mark.parametrize("autoscaler", ["HorizontalPodAutoscaler", "ScaledObject"])
def test_manifests_in_place_of_a_scenario_have_a_hint(autoscaler: str) -> None:
    manifest = HPA if autoscaler == "HorizontalPodAutoscaler" else SCALED_OBJECT
    Path("web.yaml").write_text(f"{DEPLOYMENT}---\n{manifest}")
    assert simulated("web.yaml").stderr == (
        f"error: web.yaml: must hold one Scenario, got Deployment, {autoscaler}: `ocf simulate --init` writes a"
        " scenario for them\n"
    )


def test_an_output_to_a_full_disk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(simulate_run, "print_summary", full)
    done = simulated("web.yaml", "--no-report")
    assert (done.exit_code, done.stderr) == (2, "error: the output cannot be written: No space left on device\n")


def test_options_are_checked_before_anything_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(simulate_run, "read_scenario")
    assert simulated("web.yaml", "--csv", ".").exit_code == 2


def test_ctrl_c_has_status_130_and_leaves_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> SimulationResult:
        raise KeyboardInterrupt

    monkeypatch.setattr(simulate_run, "simulate", interrupted)
    done = simulated("web.yaml", "--csv", "rows.csv")
    assert done.exit_code == 130
    assert sorted(each.name for each in Path().iterdir()) == ["hot.yaml", "web.yaml"]


def test_a_full_disk_leaves_no_half_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> Iterator[str]:
        yield "half of it"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(simulate_files, "csv_lines", full)
    done = simulated("web.yaml", "--csv", "rows.csv")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--csv: " in done.stderr
    assert "rows.csv cannot be written: No space left on device" in done.stderr
    assert sorted(each.name for each in Path().iterdir()) == ["hot.yaml", "web.yaml"]


def test_progress_is_shown_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[float] = []

    class Bars(nullcontext[Any]):
        def __init__(self, **_: object) -> None:
            super().__init__(self)

        def add_task(self, name: str, *, total: float) -> int:
            assert (name, total) == ("web.yaml", 1.0)
            return 0

        def update(self, _: int, *, completed: float) -> None:
            shares.append(completed)

    monkeypatch.setattr("rich.progress.Progress", Bars)
    simulated("web.yaml")
    assert shares == []
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    simulated("web.yaml")
    assert shares[-1] == 1.0


def test_the_schema_is_that_of_a_scenario() -> None:
    found = json.loads(simulated("--schema").stdout)
    assert {"hpa", "workload", "load"} <= set(found["required"])


def test_init_prints_a_scenario_that_runs() -> None:
    Path("manifests.yaml").write_text(f"{HPA}---\n{DEPLOYMENT}")
    done = simulated("--init", "manifests.yaml")
    assert "cpu: 333m" in done.stdout
    assert "uid" not in done.stdout
    Path("new.yaml").write_text(done.stdout)
    assert simulated("new.yaml").exit_code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param([], "found 2; select one of these with --name: other, web", id="two"),
        pytest.param(["--name", "third"], "found 0; select one of these with --name: other, web", id="another"),
        pytest.param(["--name", "web", "-n", "elsewhere"], "found 0", id="another namespace"),
    ],
)
def test_init_needs_one_hpa(options: list[str], message: str) -> None:
    Path("manifests.yaml").write_text(f"{HPA}---\n{HPA.replace('name: web, namespace', 'name: other, namespace')}")
    done = simulated("--init", "manifests.yaml", *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


def test_init_names_the_file_without_an_hpa() -> None:
    Path("manifests.yaml").write_text(DEPLOYMENT)
    done = simulated("--init", "manifests.yaml")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "error: manifests.yaml: expected a HorizontalPodAutoscaler or a ScaledObject, found none\n"


SCALED_OBJECT = """\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: worker}
spec:
  scaleTargetRef: {name: web}
  maxReplicaCount: 5
  triggers:
  - {type: rabbitmq, metadata: {host: "amqp://user:secret@rabbit/", queueName: jobs, value: "5"}}
  - {type: mysql, metadata: {queryValue: "12"}}
"""


def test_init_writes_the_scenario_of_a_scaled_object() -> None:
    target = DEPLOYMENT.replace(", namespace: shop}\nspec:", "}\nspec:\n  replicas: 3")
    Path("manifests.yaml").write_text(f"{SCALED_OBJECT}---\n{target}")
    done = simulated("--init", "manifests.yaml")
    assert done.exit_code == 0, done.output
    assert done.stderr == (
        "note: workload.signals.s1-mysql: trigger 1, mysql: assumed; write its source (load, served, queue, backlog,"
        " latency) and factor\n"
    )
    assert "secret" not in done.output
    scenario = parse_scenario(done.stdout)
    assert scenario.activator is not None
    assert scenario.workload.replicas == 3
    Path("scenario.yaml").write_text(done.stdout)
    run = json.loads(simulated("scenario.yaml", "--output", "json", "--no-report").stdout)["runs"][0]
    assert {"activator", "HPA"} == {each["source"] for each in run["actions"]}
    assert run["warnings"] == []


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        pytest.param(
            "maxReplicaCount: 5",
            "minReplicaCount: 9\n  maxReplicaCount: 5",
            "manifests.yaml:7: spec.maxReplicaCount: of the HPA that KEDA makes of it: ",
            id="what the API server rejects",
        ),
        pytest.param(
            "maxReplicaCount: 5",
            "maxReplicaCount: 5\n  advanced: {horizontalPodAutoscalerConfig: {behavior: {scaleUp:"
            " {stabilizationWindowSeconds: 9999}}}}",
            "spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleUp.stabilizationWindowSeconds: of the HPA",
            id="a field of the behavior",
        ),
        pytest.param(
            'queryValue: "12"',
            'queryValue: "0"',
            "spec.triggers[1].metadata: of the HPA",
            id="a trigger",
        ),
        pytest.param(
            "type: mysql, metadata: {queryValue",
            "type: cron, metadata: {timezone: UTC, start: 0 8 * * *, end: 0 25 * * *, desiredReplicas",
            "manifests.yaml:9: spec.triggers[1].metadata.end: the hour must be 0 to 23",
            id="what KEDA rejects",
        ),
    ],
)
def test_init_names_the_line_of_a_problem_of_a_scaled_object(before: str, after: str, problem: str) -> None:
    Path("manifests.yaml").write_text(SCALED_OBJECT.replace(before, after))
    done = simulated("--init", "manifests.yaml")
    assert (done.exit_code, done.stdout) == (2, "")
    assert problem in done.stderr
    assert "secret" not in done.output


def test_init_selects_an_hpa_by_its_name() -> None:
    Path("manifests.yaml").write_text(f"{HPA}---\n{HPA.replace('name: web, namespace', 'name: other, namespace')}")
    assert "name: other\n" in simulated("--init", "manifests.yaml", "--name", "other").stdout


def test_init_rejects_an_invalid_hpa_as_the_api_server_does() -> None:
    invalid = HPA.replace("maxReplicas:", "minReplicas: 30\n  maxReplicas:")
    Path("manifests.yaml").write_text(f"{DEPLOYMENT}---\n{invalid}")
    line = f"{DEPLOYMENT}---\n{invalid}".splitlines().index("  minReplicas: 30") + 1
    done = simulated("--init", "manifests.yaml")

    assert (done.exit_code, done.stdout) == (2, "")
    assert "manifests.yaml:" in done.stderr
    assert "must be greater than or equal to `minReplicas`" in done.stderr
    assert abs(int(done.stderr.partition("manifests.yaml:")[2].partition(":")[0]) - line) <= 1


def test_init_reads_a_live_hpa(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    async def live(*arguments: Any) -> tuple[Manifest, Manifest | None]:
        asked.append(arguments)
        return load_document(HPA), load_document(DEPLOYMENT)

    monkeypatch.setattr(simulate_init, "_of_cluster", live)
    done = simulated("--init", "--name", "web", "-n", "shop", "--context", "test")
    assert asked == [("web", "shop", None, "test")]
    assert "cpu: 333m" in done.stdout


def test_parquet_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = simulated("web.yaml", "--parquet", "rows.parquet")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--parquet needs pyarrow: install it with pip install 'ocf[parquet]', or use --csv" in done.stderr


def test_parquet_has_the_rows_of_csv() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    simulated("--compare", "web.yaml", "hot.yaml", "--parquet", "rows.parquet", "--csv", "rows.csv", "--no-report")
    table = parquet.read_table("rows.parquet")
    with Path("rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert table.schema.names == list(rows[0])
    assert table.column("run").to_pylist() == [row["run"] for row in rows]
    assert "at" not in rows[0]
    assert table.column("load").to_pylist() == [float(row["load"]) for row in rows]
    assert table.column("wanted").to_pylist() == [int(row["wanted"]) if row["wanted"] else None for row in rows]
