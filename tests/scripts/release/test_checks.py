"""What a release requires."""

from datetime import date
from pathlib import Path
from typing import Final

import pytest

from scripts.release.checks import Checkout, problems, released_changelog, released_project

ROOT: Final = Path(__file__).parents[3]
GOOD: Final = Checkout(
    branch="main",
    changes=(),
    tags=("v0.9.0", "v1.0.0rc1", "demo"),
    changelog="## Unreleased\n\n* A.\n",
    has_address=True,
)


def test_a_clean_checkout_with_entries_and_a_higher_version_can_be_released() -> None:
    assert list(problems("1.0.0", GOOD)) == []


@pytest.mark.parametrize(
    ("version", "checkout", "problem"),
    [
        pytest.param("1.0.0", GOOD._replace(branch="topic"), "branch topic: ", id="branch"),
        pytest.param("1.0.0", GOOD._replace(changes=["b", "a"]), "changes that are not committed: a, b", id="changes"),
        pytest.param("1.0.0", GOOD._replace(has_address=False), "fill in REPOSITORY", id="address"),
        pytest.param(
            "1.0.0", GOOD._replace(changelog="## Unreleased\n\n## 0.9.0\n\n* A.\n"), "no entry", id="changelog"
        ),
        pytest.param("1.0.0", GOOD._replace(changelog="# Changelog\n"), "no entry", id="no section"),
        pytest.param("1.0", GOOD, "must be of the form 1.2.3", id="short"),
        pytest.param("v1.0.0", GOOD, "must be of the form 1.2.3", id="with v"),
        pytest.param("1.0.0.dev0", GOOD, "must be of the form 1.2.3", id="development"),
        pytest.param("1.0.0rc1", GOOD, "must be above 1.0.0rc1", id="the same"),
        pytest.param("0.10.0", GOOD, "must be above 1.0.0rc1", id="lower"),
    ],
)
def test_a_problem_is_named(version: str, checkout: Checkout, problem: str) -> None:
    (found,) = problems(version, checkout)
    assert problem in found


def test_all_problems_are_named_at_once() -> None:
    assert len(list(problems("x", Checkout("topic", ["a"], (), "", has_address=False)))) == 5


def test_the_entries_get_the_version_and_the_next_ones_have_a_place() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = released_changelog(text, "0.1.0", date(2026, 1, 31))
    assert released.replace("\n## 0.1.0 - 2026-01-31\n", "", 1) == text
    checkout = GOOD._replace(changelog=released)
    assert [each for each in problems("2.0.0", checkout) if "no entry" in each] != []


def test_the_project_has_one_version() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'version = "0.1.0"\n' in released_project(text, "0.1.0")
    with pytest.raises(ValueError, match="has 0 lines with a version"):
        released_project("", "0.1.0")
