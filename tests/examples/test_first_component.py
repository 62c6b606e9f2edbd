"""Tests of the demo: it runs, its piped output is plain text, and it fails if a claim does not hold."""

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

SCRIPT: Final = Path(__file__).parents[2] / "examples" / "first_component.py"
TERMINAL_SETTINGS: Final = frozenset({"COLUMNS", "FORCE_COLOR", "PYTHONIOENCODING", "TTY_COMPATIBLE"})


def run(directory: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in TERMINAL_SETTINGS}
    command = [sys.executable, "-W", "error", str(SCRIPT)]
    return subprocess.run(  # noqa: S603 (our own script)
        command, cwd=directory, env=environment, capture_output=True, encoding="ascii", timeout=600, check=False
    )


@pytest.fixture(scope="module")
def piped(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    return run(tmp_path_factory.mktemp("elsewhere"))


def test_every_fact_holds(piped: subprocess.CompletedProcess[str]) -> None:
    assert (piped.returncode, piped.stderr) == (0, "")


def test_the_output_fits_a_terminal_of_80_columns(piped: subprocess.CompletedProcess[str]) -> None:
    assert max(map(len, piped.stdout.splitlines())) <= 80


def test_piped_output_has_no_control_characters(piped: subprocess.CompletedProcess[str]) -> None:
    assert not {character for character in piped.stdout if not character.isprintable()} - {"\n"}


def test_it_prints_the_same_every_time(piped: subprocess.CompletedProcess[str], tmp_path: Path) -> None:
    assert run(tmp_path).stdout == piped.stdout


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("   +  maxReplicas: 20", id="the diff of two versions"),
        pytest.param("   WebReady=False OperationFailing", id="a failing autoscaler shows"),
        pytest.param("   WebReady=True Healthy", id="healthy in the end"),
        pytest.param("   ok  write requests: 0", id="no write without a change"),
        pytest.param("   ok  replicas after three reconciles: 6", id="the autoscaler's count survives"),
        pytest.param("   ok  the autoscaler went first", id="scaler before target"),
        pytest.param("   ok  replicas: 0", id="suspended"),
        pytest.param("   ok  replicas at once: 6", id="the live count is back"),
    ],
)
def test_it_shows(piped: subprocess.CompletedProcess[str], line: str) -> None:
    assert line in piped.stdout.splitlines()


def test_a_claim_that_does_not_hold_ends_the_demo_with_an_error() -> None:
    fact = runpy.run_path(str(SCRIPT))["fact"]

    with pytest.raises(SystemExit, match="this should hold, and does not: water is dry"):
        fact("water is dry", holds=False)
