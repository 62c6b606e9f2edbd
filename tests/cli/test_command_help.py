"""Help texts: they fit 80 columns, cut no name, and end with an example that runs."""

import asyncio
import os
import re
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from ocf.cli.app import GROUPS, app, load_command
from ocf.cli.command_help import Description
from ocf.cli.exit_status import FOUND, FOUND_BY, SUCCESS
from ocf.cli.operator_loader import load_operators
from ocf.cli.owner_check import apply_definitions
from ocf.objects.documents import load_documents
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from ocf_server.http.preload import load_manifests
from tests.cli.test_dev import SHOP

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "reference" / "commands.md"
COMMANDS: Final = [name for names in GROUPS.values() for name in names]
WEB: Final = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 6
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1", resources: {requests: {cpu: 500m}}}]}
"""
BUSY: Final = """
apiVersion: ocf.dev/v1
kind: Snapshot
now: 2026-01-31T12:00:00Z
replicas: 2
pods: [{count: 2, requests: {cpu: 500m}}]
metrics: [{name: cpu, perPod: 450m, age: 10s, window: 30s}]
"""
SCENARIO: Final = """
name: web
hpa:
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: web, namespace: shop}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    minReplicas: 2
    maxReplicas: 20
workload: {capacity: 10, requests: {cpu: 100m}}
load: [{type: Steady, rate: 12}]
duration: 10m
"""
CLUSTER: Final = """
apiVersion: autoscaling.ocf.dev/v1alpha1
kind: NodeGroup
metadata: {name: workers, namespace: default}
spec: {minNodes: 1, maxNodes: 5, datacenterID: fra, offeringIDs: [small]}
"""
TYPES: Final = """
- name: small
  allocatable: {cpu: "2", memory: 8Gi}
  offerings: [{zone: fra, price: 0.02}]
"""


CRONTABS: Final = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  names: {kind: CronTab, plural: crontabs, singular: crontab}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {image: {type: string}}}}
"""


def help_of(*words: str, columns: int = 80) -> str:
    """Return the help text of a command."""
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": str(columns)})
    assert shown.exit_code == SUCCESS
    return shown.stdout


def example_of(command: str) -> list[str]:
    """Return the lines of the example at the end of a help text."""
    return [line.strip() for line in help_of(*command.split()).partition("\nExample:\n")[2].splitlines()]


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_a_help_text_fits_its_width(command: str, columns: int) -> None:
    shown = help_of(*command.split(), columns=columns)
    words = [word for line in shown.partition("\nExample:")[0].splitlines() for word in [line.strip()]]
    # A name with its value is never cut, so on a narrow terminal it may be longer than a line.
    wide = [line for line in words if len(line) > min(columns, 80)]
    assert columns < 80 or wide == []
    assert all(line.startswith("-") or " " not in line for line in wide)


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_name_and_no_choice_is_cut(command: str, columns: int) -> None:
    words = {*help_of(*command.split(), columns=columns).split()}
    for parameter in load_command(command).params:
        if parameter.param_type_name == "option":
            assert {*parameter.opts, *parameter.secondary_opts} <= {word.strip("[],;") for word in words}
        assert {*(parameter.help or "").split()} <= words


def test_the_overview_groups_the_commands_by_task() -> None:
    shown = help_of()
    titles = re.findall(r"^(\S.*):$", shown, re.MULTILINE)
    assert titles == [*GROUPS, "Options"]
    assert re.findall(r"^  ([a-z-]+(?: [a-z]+)?)  ", shown.partition("Options:")[0], re.MULTILINE) == COMMANDS


def test_the_page_groups_the_commands_as_the_overview_does() -> None:
    rows = re.findall(r"^\| ([\w ]*) ?\| `ocf ([\w -]+)` \| \[", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    found: dict[str, list[str]] = {}
    for title, name in rows:
        found.setdefault(title.strip() or [*found][-1], []).append(name)
    assert found == {title: [*names] for title, names in GROUPS.items()}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_help_text_names_the_statuses_of_the_command(command: str) -> None:
    text = " ".join(help_of(*command.split()).partition("\nExit status:\n")[2].split())
    assert text.startswith("0 success")
    assert (f"1 {FOUND_BY.get(command)} 2 an error" in text) == (command in FOUND_BY)


def test_a_docstring_without_an_example_has_none() -> None:
    assert Description("Print.\n\nMore\nof it.").paragraphs == ["Print.", "More of it."]
    assert Description("Print.\n\nMore\nof it.").example == []


def environment_of(folder: Path, kubeconfig: str = "") -> dict[str, str]:
    """Return variables with which a line of an example finds `ocf`, and a kubectl that writes its input to a file."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    for name in ("ocf", "kubectl-ocf"):
        program = f"import sys; sys.argv[0] = '{name}'; from ocf.cli import main; main()"
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} -c "{program}" "$@"\n')
    (programs / "kubectl").write_text("#!/bin/sh\nexec cat > applied\n")
    for each in programs.iterdir():
        each.chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "KUBECONFIG": kubeconfig}


async def start(line: str, environment: dict[str, str]) -> asyncio.subprocess.Process:
    """Start a line of an example with bash, which is replaced by the program if there is only one."""
    pipe = asyncio.subprocess.PIPE
    words = ["bash", "-c", f"set -o pipefail; {line if '|' in line or '<(' in line else f'exec {line}'}"]
    return await asyncio.create_subprocess_exec(*words, stdout=pipe, stderr=pipe, env=environment)


def invoked(command: str, kubeconfig: str = "") -> Result:
    """Run the example of a command in this process."""
    (line,) = example_of(command)
    return CliRunner().invoke(app, shlex.split(line)[1:], env={"KUBECONFIG": kubeconfig, "COLUMNS": "80"})


async def run(line: str, environment: dict[str, str]) -> tuple[int | None, str, str]:
    """Run a line of an example; return its exit status, its output and its errors."""
    process = await start(line, environment)
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in a folder with the files that the examples name."""
    files = {
        "web.yaml": WEB,
        "manifests.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}",
        "busy.yaml": BUSY,
        "scenario.yaml": SCENARIO,
        "cluster.yaml": CLUSTER,
        "types.yaml": TYPES,
        "crontabs.yaml": CRONTABS,
        "shop/__init__.py": "",
        "shop/operator.py": SHOP,
        "shop.yaml": "{apiVersion: example.com/v1, kind: Shop, metadata: {name: web, namespace: default}}",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] == "shop"]:
        del sys.modules[name]


def test_every_command_has_an_example_of_one_line() -> None:
    assert [command for command in COMMANDS if len(example_of(command)) != 1] == []


@pytest.mark.parametrize(
    ("command", "shown", "written"),
    [
        pytest.param("validate", "", "", id="validate"),
        pytest.param("default", "minReplicas: 2", "", id="default"),
        pytest.param("explain", "shop/web scales Deployment web", "", id="explain"),
        pytest.param("simulate", "overload", "report.html", id="simulate"),
        pytest.param("tune", "spec.minReplicas", "tuning.html", id="tune"),
        pytest.param("preview", "Deployment", "", id="preview"),
        pytest.param("manifests", "wrote deploy/", "deploy/base/kustomization.yaml", id="manifests"),
        pytest.param("new operator", "wrote", "shop-operator/pyproject.toml", id="new operator"),
        pytest.param("new kind", "wrote", "tests/kinds", id="new kind"),
        pytest.param("nodegroups", "workers", "", id="nodegroups"),
    ],
)
def test_the_example_runs(folder: Path, command: str, shown: str, written: str) -> None:
    done = invoked(command)
    assert (done.exit_code, done.stderr.partition("error: ")[2]) == (SUCCESS, "")
    assert shown in done.stdout
    assert (folder / written).stat().st_size > 0


@pytest.mark.parametrize(
    ("command", "written"),
    [pytest.param("hpa-controller", "applied", id="pipe"), pytest.param("completion", "", id="substitution")],
)
async def test_the_example_with_a_shell_runs(folder: Path, command: str, written: str) -> None:
    (line,) = example_of(command)
    assert await run(line, environment_of(folder)) == (SUCCESS, "", "")
    assert (folder / written).stat().st_size > 0


@pytest.mark.parametrize("command", ["serve", "dev"])
async def test_the_example_of_a_server_runs_until_it_is_stopped(folder: Path, command: str) -> None:
    (line,) = example_of(command)
    process = await start(line, environment_of(folder))
    assert process.stdout is not None
    first = await process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = await process.communicate()
    assert first.startswith(b"serving on http://127.0.0.1:"), err.decode()
    assert process.returncode == SUCCESS


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[dict[str, str]]:
    """Serve a cluster with the autoscaler; provide variables with which programs find it."""
    embedded = EmbeddedCluster(namespaces=["shop"])
    await load_manifests(embedded, load_documents(WEB), field_manager="test")
    await apply_definitions(embedded, load_operators("shop.operator:shops")[0].all_definitions)
    async with serving(embedded) as server:
        write_kubeconfig(server.kubeconfig(), folder / "kubeconfig")
        yield environment_of(folder, str(folder / "kubeconfig"))


async def test_the_example_of_a_recording_runs_until_it_is_stopped(folder: Path) -> None:
    (line,) = example_of("record")
    async with cluster(folder) as environment:
        process = await start(line, environment)
        assert process.stderr is not None
        warning = await process.stderr.readline()  # the cluster has no metrics; the file is open by then
        process.send_signal(signal.SIGINT)
        await process.communicate()
    assert b"metrics" in warning
    assert process.returncode == SUCCESS
    assert (folder / "web.jsonl").exists()


async def test_the_example_of_a_diff_shows_what_a_new_owner_gets(folder: Path) -> None:
    async with cluster(folder):
        done = await asyncio.to_thread(invoked, "diff", str(folder / "kubeconfig"))
    assert done.exit_code == FOUND, done.stderr
    assert "Deployment" in done.stdout


async def test_a_plugin_of_kubectl_shows_examples_with_its_own_name(folder: Path) -> None:
    _, shown, _ = await run("kubectl-ocf validate --help", environment_of(folder))
    assert shown.startswith("Usage: kubectl ocf validate [OPTIONS] FILE...\n")
    assert shown.endswith("\nExample:\n  kubectl ocf validate --lint web.yaml\n")
