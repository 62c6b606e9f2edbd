"""The tutorial and other pages with a session in a shell are followed to the letter."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Final

import pytest

from tests.docs.reader import Reader, Run, is_as_shown, steps
from tests.once import TYPES, locked

DOCS: Final = Path(__file__).parents[2] / "docs"


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "start", "end"),
    [
        pytest.param("start/tutorial.md", "# ", "\n## Read on\n", id="tutorial"),
        pytest.param("start/new.md", "# ", "\n## What is in it\n", id="new operator"),
        pytest.param(
            "operators/troubleshooting.md",
            "\n## The example\n",
            "\n## The operator writes again and again\n",
            id="troubleshooting",
        ),
    ],
)
def test_the_page_can_be_followed(reader: Reader, name: str, start: str, end: str) -> None:
    if name == "start/new.md":
        del reader.environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]  # its tests are asynchronous
        reader.environment["MYPY_CACHE_DIR"] = str(TYPES)
    if name == "start/tutorial.md":
        reader.folder = reader.folder.parent  # it makes the folder beside the clone itself
    page = (DOCS / name).read_text(encoding="utf-8")
    for step in steps(page[page.index(start) : page.index(end)]):
        with locked(TYPES) if isinstance(step, Run) and step.command == "make check" else nullcontext():
            reader.do(step)
    assert set(reader.leave()) == {0}


# As docs/start/install.md has it: into an environment of the reader's, never into that of the tests.
INSTALL: Final = (
    Run("python3 -m venv .venv && . .venv/bin/activate", "", stays=False),
    Run("pip install --quiet ../ocf", "", stays=False),
)


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "autoscaling/explain-hpa.md",
        "autoscaling/simulate.md",
        "autoscaling/tune.md",
        "autoscaling/validate.md",
        "nodes/nodegroup-controller.md",
    ],
)
def test_the_sessions_of_a_guide_print_what_it_shows(reader: Reader, name: str) -> None:
    """Its files are all that its commands need; other blocks are parts of files, and settings to choose from."""
    for install in INSTALL:
        reader.do(install)
    done = list(steps((DOCS / name).read_text(encoding="utf-8"), every=False))
    assert any(isinstance(step, Run) for step in done)
    for step in done:
        reader.do(step)


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        pytest.param("a  b\n", "a b", True, id="spaces"),
        pytest.param("web 3s", "web 12s", True, id="ages"),
        pytest.param("web 3s", "web 2m5s", True, id="longer ages"),
        pytest.param("on http://...; ends", "on http://127.0.0.1:5; ends", True, id="anything"),
        pytest.param("", "", True, id="nothing"),
        pytest.param("", "error", False, id="something instead of nothing"),
        pytest.param("2/2", "2/3", False, id="another number"),
        pytest.param("...\nb", "a\nc", False, id="another line"),
    ],
)
def test_outputs_are_compared_as_people_do(shown: str, printed: str, same: bool) -> None:
    assert is_as_shown(shown, printed) is same
