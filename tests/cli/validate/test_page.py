"""The examples of docs/autoscaling/validate.md, the pre-commit hook, and the GitHub action."""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest
import yaml
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.cli.validate.output import ReportFormat
from tests.cli.github_action import run_action
from tests.cli.page_commands import run_commands

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs" / "autoscaling" / "validate.md").read_text(encoding="utf-8")
WEB: Final = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment}}
"""
CONSTANT: Final = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {minReplicas: 3, maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
"""


def test_every_command_of_the_page_prints_the_output_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_commands(PAGE) == 4


def test_every_option_is_documented() -> None:
    documented = set(re.findall(r"^\| `(--[a-z-]+)", PAGE, re.MULTILINE))
    shown = CliRunner().invoke(app, ["validate", "--help"], env={"COLUMNS": "200"}).stdout
    assert documented == set(re.findall(r"--[a-z-]+", shown)) - {"--help", "--traceback"}
    assert set(re.findall(r"`--output ([a-z]+)`", PAGE)) == set(ReportFormat) - {ReportFormat.TEXT}


def test_the_hook_names_a_command_that_exists(tmp_path: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    program, *arguments = hook["entry"].split()
    (tmp_path / "web.yaml").write_text(WEB)
    answer = CliRunner().invoke(app, [*arguments, str(tmp_path / "web.yaml")])
    assert (program, answer.exit_code) == ("ocf", 1)
    assert f"  - id: {hook['id']}\n" in PAGE


def act(folder: Path, **inputs: str) -> "subprocess.CompletedProcess[str]":
    return run_action(ROOT / "action.yml", folder, inputs)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    found = tmp_path / "repository"
    for name in ("deploy/web.yaml", "more/a b.yaml", ".github/workflows/hidden.yaml"):
        (found / name).parent.mkdir(parents=True, exist_ok=True)
        (found / name).write_text(WEB)
    (found / "workflow.yaml").write_text("on: push\njobs: {}\n")
    return found


def marked(ran: subprocess.CompletedProcess[str]) -> list[str]:
    return re.findall("file=([^,]*),", ran.stdout)


def test_the_action_annotates_the_whole_repository(repository: Path) -> None:
    ran = act(repository)
    location = "file=deploy/web.yaml,line=5,col=24,title=HorizontalPodAutoscaler web"
    assert ran.returncode == 1
    assert ran.stdout.splitlines()[0] == f"::error {location}::spec.scaleTargetRef.name: Required value"
    assert marked(ran) == ["deploy/web.yaml", "more/a b.yaml"]
    assert ran.stderr.splitlines()[0] == "validated 2 HorizontalPodAutoscalers: 0 valid, 2 invalid"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param("deploy", ["deploy/web.yaml"], id="one"),
        pytest.param("deploy more", ["deploy/web.yaml", "more/a b.yaml"], id="with spaces"),
        pytest.param("\n  deploy\n  more\n", ["deploy/web.yaml", "more/a b.yaml"], id="lines"),
        pytest.param("deploy\n'more/a b.yaml'", ["deploy/web.yaml", "more/a b.yaml"], id="quoted"),
    ],
)
def test_the_action_reads_all_files(repository: Path, files: str, expected: list[str]) -> None:
    assert marked(act(repository, FILES=files)) == expected


def test_a_file_that_is_missing_fails_the_action(repository: Path) -> None:
    ran = act(repository, FILES="deploy\nnothing")
    assert (ran.returncode, marked(ran)) == (2, ["deploy/web.yaml", "nothing"])


@pytest.mark.parametrize(
    ("inputs", "code", "levels"),
    [
        pytest.param({}, 0, ["warning"], id="no hints"),
        pytest.param({"SEVERITY": "info"}, 0, ["notice", "notice", "warning"], id="hints"),
        pytest.param({"FAIL_ON": "warning"}, 1, ["warning"], id="fail on a warning"),
        pytest.param({"DISABLE": "slow-drain constant-size"}, 0, [], id="codes"),
        pytest.param({"LINT": "false"}, 0, [], id="no lint"),
        pytest.param({"VERSION": "1.30"}, 0, ["warning"], id="version"),
    ],
)
def test_the_inputs_of_the_action_are_options(
    repository: Path, inputs: dict[str, str], code: int, levels: list[str]
) -> None:
    (repository / "deploy" / "web.yaml").write_text(CONSTANT)
    ran = act(repository, FILES="deploy", **inputs)
    assert (ran.returncode, re.findall("^::([a-z]+) ", ran.stdout, re.MULTILINE)) == (code, levels)


@pytest.mark.parametrize(("one_cluster", "codes"), [("false", []), ("true", ["shared-target"] * 2)])
def test_the_action_takes_all_folders_for_one_cluster(repository: Path, one_cluster: str, codes: list[str]) -> None:
    (repository / "deploy" / "web.yaml").write_text(CONSTANT)
    (repository / "more" / "a b.yaml").write_text(CONSTANT.replace("name: web", "name: second", 1))
    ran = act(repository, FILES="deploy more", DISABLE="constant-size", ONE_CLUSTER=one_cluster)

    assert re.findall(r"\b(shared-target)\b", ran.stdout) == codes
