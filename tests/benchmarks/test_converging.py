"""What the benchmark of bringing caches to rest finds of a small fleet, whatever the machine."""

from typing import Any

import pytest

pytestmark = pytest.mark.long

CACHES = 10
OBJECTS = 6
KINDS = 7


@pytest.fixture(scope="module")
def found(quick_figures: dict[str, dict[str, Any]]) -> dict[str, float]:
    return {name: figure["median"] for name, figure in quick_figures.items()}


def requests(found: dict[str, float], name: str) -> int:
    return round(found[name] * CACHES * OBJECTS / 100)


def test_the_rival_sends_one_apply_per_object_one_status_and_its_own_annotation(found: dict[str, float]) -> None:
    """Besides, it lists and watches the caches and the definitions."""
    assert requests(found, "converging.kopf.requests") == CACHES * (OBJECTS + 2) + 4


def test_the_operator_sends_one_apply_per_object_and_one_status(found: dict[str, float]) -> None:
    """Besides, it lists and watches each kind, its own included."""
    assert requests(found, "converging.requests") == CACHES * (OBJECTS + 1) + 2 * KINDS


def test_each_figure_of_the_operator_is_compared_with_the_rival(quick_figures: dict[str, dict[str, Any]]) -> None:
    compared = {name: figure["against"] for name, figure in quick_figures.items() if name.startswith("converging.")}
    ours = {name for name in compared if not name.startswith("converging.kopf.")}
    assert {name: compared[name] for name in ours} == {
        name: name.replace("converging.", "converging.kopf.") for name in ours
    }
    assert ours == {"converging.cpu", "converging.elapsed", "converging.requests"}
