"""One quick run of all benchmarks, for all tests of all processes: it starts operators, which takes its time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.once import once, run_folder

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """Run the command as users do; the first process that needs it runs it for all processes of the test run."""
    return subprocess.CompletedProcess(**once(run_folder(tmp_path_factory) / "benchmarks.json", _run))


def _run() -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks", "--quick", "--output", "json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 (our own code)
    return vars(done)


@pytest.fixture(scope="session")
def quick_figures(quick: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """Give the figures of that run by name."""
    assert quick.returncode == 0, quick.stderr
    return {figure["name"]: figure for figure in json.loads(quick.stdout)["figures"]}
