"""The README is short, its operator runs as shown, and its picture shows what the demo prints."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Final

import pytest

from scripts.record.demo import PICTURE, chapters_of
from tests.docs.reader import Reader, steps

ROOT: Final = Path(__file__).parents[2]
README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
DEMO: Final = ROOT / "tests" / "examples" / "memcached" / "demo.txt"
LINE: Final = re.compile(r'<text [^>]*\by="([\d.]+)"[^>]*clip-path[^>]*>([^<]*)</text>')
OPERATOR: Final = "## An operator in one file"


def section(heading: str) -> str:
    _, found, rest = README.partition(f"\n{heading}\n")
    assert found
    return rest.partition("\n## ")[0]


def test_it_has_at_most_150_lines() -> None:
    assert len(README.splitlines()) <= 150


@pytest.mark.long
def test_the_operator_can_be_followed(reader: Reader) -> None:
    for step in steps(section(OPERATOR)):
        reader.do(step)
    assert set(reader.leave()) == {0}


def test_the_lines_of_the_comparison_are_those_of_its_page() -> None:
    page = (ROOT / "docs" / "project" / "comparison.md").read_text(encoding="utf-8")
    written = re.search(r"^\| \*\*all that is written\*\* \|(.*)\|$", page, re.MULTILINE)
    shown = re.search(r"^\| lines of [^|]*\|(.*)\| not its task \|$", README, re.MULTILINE)

    assert written
    assert shown
    assert re.findall(r"\d+", shown[1]) == re.findall(r"\d+", written[1])


def test_the_picture_shows_what_the_demo_prints() -> None:
    """Draw it anew with `python -m scripts.record.demo` after a change of the demo."""
    rows: dict[float, str] = {}
    for y, text in LINE.findall(PICTURE.read_text(encoding="utf-8")):
        rows[float(y)] = rows.get(float(y), "") + unescape(text).replace("\xa0", " ")
    shown = [line.strip() for line in chapters_of(DEMO.read_text(encoding="ascii")).splitlines() if line]

    assert [text.strip() for _, text in sorted(rows.items()) if text.strip()] == shown


def test_the_picture_is_complete_in_itself() -> None:
    picture = PICTURE.read_text(encoding="utf-8")

    assert set(re.findall(r"https?://[^\"' )]+", picture)) == {"http://www.w3.org/2000/svg"}
