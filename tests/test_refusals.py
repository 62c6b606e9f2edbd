"""The list of what the embedded cluster refuses is what the suite proves, no less and no more."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[1]
SCRIPT: Final[dict[str, Any]] = runpy.run_path(str(ROOT / "scripts" / "generate" / "refusals.py"))
written: Final[Callable[..., str]] = SCRIPT["written"]

EMPTY: Final = f"before\n{SCRIPT['BEGIN']}\nold\n{SCRIPT['END']}\nafter\n"
CASES: Final = """
import pytest

@pytest.mark.refused("dream", "sleep")
async def test_dreams(): ...

@pytest.mark.parametrize("number", [pytest.param(1, marks=pytest.mark.refused("fly", "walk"))])
async def test_wings(number): ...

@pytest.mark.refused("dream", "sleep")
async def test_nightmares(): ...
"""


def test_the_list_is_what_the_suite_proves() -> None:
    """When this fails, `python scripts/generate/refusals.py` writes it anew."""
    page = (ROOT / "docs" / "testing" / "embedded-cluster.md").read_text(encoding="utf-8")

    assert page == written(page)
    assert page.count("| so |") == 1


def test_each_refusal_is_one_row(tmp_path: Path) -> None:
    (tmp_path / "test_dreams.py").write_text(CASES)
    lines = written(EMPTY, tmp_path).splitlines()

    assert sorted(line for line in lines if line.startswith("| ") and "---" not in line and "so |" not in line) == [
        "| dream | sleep |",
        "| fly | walk |",
    ]
    assert (lines[0], lines[-1]) == ("before", "after")
    assert "old" not in lines


def test_a_marker_that_has_to_be_run_to_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test_dreams.py").write_text(CASES.replace('"walk"', "str(1)"))

    with pytest.raises(ValueError, match=r'test_dreams\.py, line 7: a marker is refused\("what"'):
        written(EMPTY, tmp_path)


def test_a_page_without_a_place_for_the_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the page has no lines"):
        written("nothing", tmp_path)
