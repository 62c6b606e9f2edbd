"""One quick run of all benchmarks, for all tests: it starts operators, which takes its time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def quick() -> subprocess.CompletedProcess[str]:
    """Run the command as users do."""
    command = [sys.executable, "-m", "benchmarks", "--quick", "--output", "json"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 (our own code)


@pytest.fixture(scope="session")
def quick_figures(quick: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """Give the figures of that run by name."""
    assert quick.returncode == 0, quick.stderr
    return {figure["name"]: figure for figure in json.loads(quick.stdout)["figures"]}
