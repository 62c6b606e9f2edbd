"""Tests of the demo: its output is the same every time, fits a terminal, and is plain text when piped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from examples.memcached.demo.output import fact

ROOT: Final = Path(__file__).parents[3]
RECORDED: Final = Path(__file__).parent / "demo.txt"
# The demo waits for controllers most of its minute: little CPU time, and yet the longest test of all.
pytestmark = pytest.mark.long
TERMINAL_SETTINGS: Final = frozenset({"COLUMNS", "FORCE_COLOR", "PYTHONIOENCODING", "TTY_COMPATIBLE"})


@pytest.fixture(scope="module")
def piped() -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in TERMINAL_SETTINGS}
    command = [sys.executable, "-W", "error", "-m", "examples.memcached.demo"]
    return subprocess.run(  # noqa: S603 (our own program)
        command, cwd=ROOT, env=environment, capture_output=True, encoding="ascii", timeout=600, check=False
    )


def test_every_fact_holds(piped: subprocess.CompletedProcess[str]) -> None:
    assert (piped.returncode, piped.stderr) == (0, "")


def test_the_output_matches_the_recorded_one(piped: subprocess.CompletedProcess[str]) -> None:
    """Update the recorded output with `python -m examples.memcached.demo > demo.txt`, and review the change."""
    assert piped.stdout == RECORDED.read_text(encoding="ascii")


def test_the_output_fits_a_terminal_of_80_columns(piped: subprocess.CompletedProcess[str]) -> None:
    assert max(map(len, piped.stdout.splitlines())) <= 80


def test_piped_output_has_no_control_characters(piped: subprocess.CompletedProcess[str]) -> None:
    assert not {character for character in piped.stdout if not character.isprintable()} - {"\n"}


def test_a_claim_that_does_not_hold_ends_the_demo_with_an_error() -> None:
    with pytest.raises(SystemExit, match="this should hold, and does not: water is dry"):
        fact("water is dry", holds=False)
