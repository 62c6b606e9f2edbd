"""The examples of docs/validate.md, the pre-commit hook, and the GitHub action."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml
from typer.testing import CliRunner

from ocf.cli.app import app
from ocf.cli.validate import ReportFormat

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "validate.md").read_text(encoding="utf-8")
SESSION: Final = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
WEB: Final = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment}}
"""


def steps() -> Iterator[tuple[list[str], str]]:
    """Yield the commands of the page, each with its output."""
    for session in SESSION.findall(PAGE):
        for step in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
            command, _, output = step.partition("\n")
            yield command.split(), output


def test_every_command_of_the_page_prints_the_output_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = 0
    for (program, *arguments), output in steps():
        if program == "cat":
            Path(arguments[0]).write_text(output)
        else:
            assert program == "ocf"
            assert CliRunner().invoke(app, arguments).stdout == output
            ran += 1
    assert ran == 3


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


@pytest.mark.parametrize(
    ("lint", "version", "level"), [("true", "", "::error"), ("false", "1.34", "::error")], ids=["lint", "version"]
)
def test_the_action_annotates(tmp_path: Path, lint: str, version: str, level: str) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    step = action["runs"]["steps"][-1]
    inputs = {name: text.strip("${} ").removeprefix("inputs.") for name, text in step["env"].items()}
    assert set(inputs.values()) == set(action["inputs"])
    programs = tmp_path / "ocf" / "bin"
    programs.mkdir(parents=True)
    (programs / "ocf").write_text(f"#!/bin/sh\nexec {sys.executable} -c 'from ocf.cli import main; main()' \"$@\"\n")
    (programs / "ocf").chmod(0o755)
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "web.yaml").write_text(WEB)
    environment = {**os.environ, "FILES": "deploy", "LINT": lint, "VERSION": version, "RUNNER_TEMP": str(tmp_path)}
    ran = subprocess.run(  # noqa: S603 (the step of our own action)
        ["bash", "-euo", "pipefail", "-c", step["run"]],  # noqa: S607 (a workflow uses the first bash, too)
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    location = "file=deploy/web.yaml,line=1,title=HorizontalPodAutoscaler web"
    assert (ran.returncode, ran.stderr) == (1, "")
    assert ran.stdout == f"{level} {location}::spec.scaleTargetRef.name: Required value\n"
