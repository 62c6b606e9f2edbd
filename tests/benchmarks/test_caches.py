"""What the benchmark of caches finds of a small fleet, whatever the machine: what is asked of the cluster."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CACHES = 10
OBJECTS = 6


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks", "--quick", "--output", "json", "-k", "caches"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S603
    return {figure["name"]: figure["median"] for figure in json.loads(printed)["figures"]}


def test_a_resync_of_all_caches_asks_nothing(found: dict[str, Any]) -> None:
    assert found["caches.idle"] == 0


def test_making_a_cache_takes_one_request_per_object_and_one_for_its_status(found: dict[str, Any]) -> None:
    """Besides, each of the seven kinds is listed and watched."""
    assert found["caches.requests"] * CACHES * OBJECTS / 100 <= CACHES * (OBJECTS + 1) + 2 * (OBJECTS + 1) + 1


def test_a_new_process_that_finds_all_as_it_should_be_only_looks(found: dict[str, Any]) -> None:
    assert found["caches.again"] == 2 * (OBJECTS + 1)
    assert found["caches.again"] < found["caches.kopf.again"]
