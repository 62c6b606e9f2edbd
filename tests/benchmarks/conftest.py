"""One quick run of all benchmarks, for all tests of all processes: it starts operators, which takes its time."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """Run the command as users do; the first process that needs it runs it for all processes of the test run."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    kept = folder / "benchmarks.json"
    with (folder / "benchmarks.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_text(json.dumps(_run()))
    return subprocess.CompletedProcess(**json.loads(kept.read_text()))


def _run() -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks", "--quick", "--output", "json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 (our own code)
    return vars(done)


@pytest.fixture(scope="session")
def quick_figures(quick: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """Give the figures of that run by name."""
    assert quick.returncode == 0, quick.stderr
    return {figure["name"]: figure for figure in json.loads(quick.stdout)["figures"]}
