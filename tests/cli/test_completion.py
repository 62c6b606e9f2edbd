"""Completion in shells, and `kubectl ocf` with the real kubectl."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

import ocf
from ocf.cli.app import app
from ocf.testing.envtest.binaries import find_programs
from tests.requirements import leave_out

ROOT: Final = Path(__file__).parents[2]
PROGRAMS: Final = {
    "ocf": "from ocf.cli import main; main()",
    "kubectl-ocf": "from ocf.cli import main; main()",
    "kubectl_complete-ocf": "from ocf.cli.completion import complete_for_kubectl; complete_for_kubectl()",
}
HPA: Final = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: default}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 9
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Create a folder with the programs that an installation has, and a manifest."""
    for name, code in PROGRAMS.items():
        (tmp_path / name).write_text(f"#!{sys.executable}\n{code}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "web.yaml").write_text(HPA)
    return tmp_path


@pytest.fixture
def kubectl() -> str:
    programs = find_programs()
    found = programs.folder / "kubectl" if programs is not None else None
    if found is None or not found.exists():
        leave_out("envtest", "kubectl is not installed: `make envtest` installs it")
    return str(found)


def run(folder: Path, *command: str) -> str:
    """Run a program, which finds those of the folder first; return what it prints."""
    path = os.pathsep.join([str(folder), os.environ["PATH"]])
    given = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(folder), "COLUMNS": "120"}
    done = subprocess.run(  # noqa: S603 (programs of the test)
        command, cwd=folder, env=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        pytest.param("ocf expl", ["explain"], id="command"),
        pytest.param("ocf manifests shop --form", ["--format"], id="option"),
        pytest.param("ocf manifests shop --format h", ["helm"], id="value"),
        pytest.param("ocf bogus", [], id="nothing"),
    ],
)
def test_bash_completes(folder: Path, words: str, completions: list[str]) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    script = f"""source <(ocf completion bash)
        COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _ocf_completion ocf; printf '%s\\n' "${{COMPREPLY[@]}}" """

    assert run(folder, bash, "-c", script).split() == completions


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_script(shell: str) -> None:
    done = CliRunner().invoke(app, ["completion", shell])

    assert done.exit_code == 0
    assert f"_OCF_COMPLETE={shell}_complete" in done.stdout


@pytest.mark.parametrize(
    ("shell", "words", "cursor", "lines"),
    [
        pytest.param("bash", "ocf validate we", "2", ["file,we"], id="bash, argument"),
        pytest.param("bash", "ocf validate --update-from ", "3", ["file,"], id="bash, value of an option"),
        pytest.param("bash", "ocf bogus we", "2", ["file,we"], id="bash, after an unknown command"),
        pytest.param("bash", "ocf validate --output g", "3", ["plain,github"], id="bash, choice"),
        pytest.param("zsh", "ocf validate we", "2", ["file", "we", "_"], id="zsh, argument"),
        pytest.param("zsh", "ocf validate --output g", "3", ["plain", "github", "_"], id="zsh, choice"),
        pytest.param("fish", "ocf validate we", "we", ["file,we"], id="fish, argument"),
        pytest.param("fish", "ocf validate --output g", "g", ["plain,github"], id="fish, choice"),
    ],
)
def test_the_shell_completes_names_of_files_where_nothing_fits(
    folder: Path, shell: str, words: str, cursor: str, lines: list[str]
) -> None:
    """With click it is left to the type of each value: https://github.com/pallets/click/issues/780."""
    asked = {"_OCF_COMPLETE": f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": cursor}

    assert run(folder, "env", *(f"{name}={value}" for name, value in asked.items()), "ocf").splitlines() == lines


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        pytest.param(["expl"], ["explain", ":0"], id="command"),
        pytest.param(["validate", "--output", "s"], ["sarif", ":0"], id="choice"),
        pytest.param(["validate", "--output=s"], ["sarif", ":0"], id="choice in the same word"),
        pytest.param(["validate", "my file"], [":0"], id="file with a blank"),
        pytest.param(["validate", "it's"], [":0"], id="file with a quote"),
        pytest.param(["validate", "--disable", ""], [":0"], id="text"),
    ],
)
def test_kubectl_is_answered_in_its_protocol(folder: Path, words: list[str], lines: list[str]) -> None:
    """The protocol: https://github.com/kubernetes/kubernetes/pull/105867."""
    assert run(folder, "kubectl_complete-ocf", *words).splitlines() == lines


def test_another_shell_is_rejected() -> None:
    done = CliRunner().invoke(app, ["completion", "csh"], env={"COLUMNS": "200"})

    assert done.exit_code == 2
    assert "must be one of bash, zsh, fish, got 'csh'" in done.stderr


def test_the_version_is_an_option_too() -> None:
    done = CliRunner().invoke(app, ["--version"])

    assert (done.exit_code, done.stdout) == (0, f"{ocf.__version__}\n")


def test_kubectl_runs_every_command(folder: Path, kubectl: str) -> None:
    assert run(folder, kubectl, "ocf", "--version") == f"{ocf.__version__}\n"
    assert "Usage: kubectl ocf explain" in run(folder, kubectl, "ocf", "explain", "--help")


@pytest.mark.parametrize(
    "words", [pytest.param(["hpa", "web"], id="kind and name"), pytest.param(["hpa/web"], id="kind/name")]
)
def test_kubectl_names_an_autoscaler_as_usual(folder: Path, kubectl: str, words: list[str]) -> None:
    now = "--now=2026-01-31T12:00:00Z"
    explained = run(folder, kubectl, "ocf", "explain", *words, "--file=web.yaml", now)

    assert explained == run(folder, "ocf", "explain", "web", "--file=web.yaml", now)


def test_more_than_a_kind_and_a_name_is_not_explained() -> None:
    done = CliRunner().invoke(app, ["explain", "deployment", "web", "api"])

    assert done.exit_code == 2
    allowed = "write KIND/NAME for an owner, NAME or hpa/NAME for an autoscaler"
    assert done.stderr == f'error: invalid arguments "deployment web api": {allowed}\n'


def test_kubectl_completes_the_plugin(folder: Path, kubectl: str) -> None:
    assert run(folder, kubectl, "__complete", "ocf", "expl").splitlines()[0] == "explain"


def test_the_wheel_installs_the_programs() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")

    assert all(f"\n{name} = " in text for name in PROGRAMS)
