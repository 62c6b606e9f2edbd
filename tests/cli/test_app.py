"""The command line as a whole: the overview, unknown commands, and what a command imports."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner

from ocf.cli.app import app


def test_it_prints_the_installed_version() -> None:
    answer = CliRunner().invoke(app, ["--version"])
    assert (answer.exit_code, answer.stdout) == (0, f"{version('ocf')}\n")


def test_an_unknown_command_is_rejected_with_the_nearest_one() -> None:
    answer = CliRunner().invoke(app, ["validat"])
    assert answer.exit_code == 2
    assert "No such command 'validat'. Did you mean 'validate'?" in answer.stderr


@pytest.mark.parametrize("name", ["plan", "value", "table"])
def test_an_unknown_command_without_a_likely_one_has_no_suggestion(name: str) -> None:
    """A word with the same letters is none: `plan` is not `explain`."""
    answer = CliRunner().invoke(app, [name])
    assert answer.exit_code == 2
    assert answer.stderr.splitlines()[-1] == f"Error: No such command '{name}'."


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        pytest.param(["simulate", "--reprt"], ", did you mean --report?", id="likely"),
        pytest.param(["validate", "--exclude"], "", id="another word with its letters"),
        pytest.param(["serve", "--host"], "", id="a short word with half of its letters"),
    ],
)
def test_an_unknown_option_has_a_suggestion_only_if_one_is_likely(words: list[str], hint: str) -> None:
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 2
    assert answer.stderr.splitlines()[-1] == f"Error: No such option: {words[-1]}{hint}"


def test_an_invalid_choice_is_rejected_with_the_valid_ones() -> None:
    answer = CliRunner().invoke(app, ["validate", "--output", "xml", "web.yaml"], env={"COLUMNS": "200"})
    assert answer.exit_code == 2
    assert "Invalid value for '--output': must be one of text, json, github, sarif, got 'xml'" in answer.stderr


def loaded_by(*words: str) -> set[str]:
    """Return the modules that a process has imported when a command is done."""
    program = "import sys\nfrom ocf.cli import main\ntry: main()\nexcept SystemExit: print(*sys.modules)"
    command = [sys.executable, "-c", program, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    return set(done.stdout.splitlines()[-1].split())


def test_the_version_imports_nothing_of_the_commands() -> None:
    """It needs click, and nothing that only commands need."""
    loaded = loaded_by("--version")
    assert {name for name in loaded if name.startswith("ocf.")} == {
        "ocf.cli",
        "ocf.cli.app",
        "ocf.cli.command",
        "ocf.cli.exit_status",
    }
    assert loaded.isdisjoint({"kubernetes", "pydantic", "rich", "yaml"})


def test_values_are_converted_without_pydantic(tmp_path: Path) -> None:
    """Importing it would nearly double the time to validate a file."""
    file = tmp_path / "web.yaml"
    file.write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}")
    loaded = loaded_by("validate", str(file), "--output", "json", "--kubernetes-version", "1.36")
    assert "ocf.autoscaling" in loaded
    assert "pydantic" not in loaded


def test_a_valid_file_is_validated_without_what_takes_long_to_import(tmp_path: Path) -> None:
    """Each of them would take a twentieth of the time of the command, or more."""
    file = tmp_path / "web.yaml"
    file.write_text(
        """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 9
  metrics:
  - type: Resource
    resource: {name: memory, target: {type: AverageValue, averageValue: 1Gi}}
"""
    )
    loaded = loaded_by("validate", str(file))
    assert "ocf.autoscaling.validation.validation" in loaded
    assert loaded.isdisjoint({"dataclasses", "json", "pathlib", "argparse", "pydantic", "kubernetes"})


def test_everything_else_is_converted() -> None:
    answer = CliRunner().invoke(app, ["hpa-controller", "--port", "many"], env={"COLUMNS": "200"})
    assert answer.exit_code == 2
    assert "Invalid value for '--port'" in answer.stderr
    assert ", got 'many'" in answer.stderr


def test_a_missing_argument_is_named() -> None:
    answer = CliRunner().invoke(app, ["validate"])
    assert answer.exit_code == 2
    assert "Missing argument 'FILE...'" in answer.stderr
