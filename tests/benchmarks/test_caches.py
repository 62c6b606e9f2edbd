"""What the benchmark of caches finds of a small fleet, whatever the machine: what is asked of the cluster."""

from typing import Any

import pytest

CACHES = 10
OBJECTS = 6


@pytest.fixture(scope="module")
def found(quick_figures: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {name: figure["median"] for name, figure in quick_figures.items()}


def test_a_resync_of_all_caches_asks_nothing(found: dict[str, Any]) -> None:
    assert found["caches.idle"] == 0


def test_making_a_cache_takes_one_request_per_object_and_one_for_its_status(found: dict[str, Any]) -> None:
    """Besides, each of the seven kinds is listed and watched."""
    assert found["caches.requests"] * CACHES * OBJECTS / 100 <= CACHES * (OBJECTS + 1) + 2 * (OBJECTS + 1) + 1


def test_a_new_process_that_finds_all_as_it_should_be_only_looks(found: dict[str, Any]) -> None:
    assert found["caches.again"] == 2 * (OBJECTS + 1)
    assert found["caches.again"] < found["caches.kopf.again"]
