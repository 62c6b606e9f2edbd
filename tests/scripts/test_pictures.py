"""The pictures of the documentation show what the code does now: `python -m scripts.generate.pictures` draws them."""

import re
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest

from scripts.generate.pictures import PICTURES, Cut, framed, path_of

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = """\
<!doctype html>
<html><head><style>
h2{color:red}
</style><link rel="stylesheet" href="more.css"></head><body>
<header><a class="skip" href="#main">To the content</a></header>
<main><p>1 &lt; 2<br><b hidden>no</b></p>
<section><h2>First</h2><svg viewBox="0 0 1 1" preserveAspectRatio="none"><rect width="1"/></svg>
<details><summary>Table</summary><table><tr><td>3</td></tr></table></details></section>
<section><h2>Second</h2></section></main><script>alert(1)</script></body></html>
"""


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_what_the_code_does(name: str) -> None:
    assert path_of(name).read_text(encoding="utf-8") == PICTURES[name]()


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "pictures").iterdir()), ids=lambda path: path.stem)
def test_a_picture_is_complete_in_itself_and_stands_on_a_page(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]

    root = ET.fromstring(text)  # noqa: S314 (our own file)
    assert [each for each in root.iter() if each.tag.endswith(("script", "image", "link"))] == []
    assert {*re.findall(r"https?://[^\"' )<]+", text)} <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"}
    assert any(f"pictures/{path.name})" in page.read_text(encoding="utf-8") for page in pages)


@pytest.mark.parametrize(
    ("cut", "shown"),
    [
        pytest.param(Cut(100, 50), "1 < 2 First Table Second", id="the whole page"),
        pytest.param(Cut(100, 50, ("Second",)), "1 < 2 Second", id="some sections"),
        pytest.param(Cut(100, 50, ("First",), alone=True), "First Table", id="a section alone"),
    ],
)
def test_a_picture_has_the_shown_parts_of_its_page(cut: Cut, shown: str) -> None:
    picture = ET.fromstring(framed(PAGE, cut, "A page", "p{margin:0}"))  # noqa: S314 (our own)
    content = picture.find("{*}foreignObject")

    assert content is not None
    assert " ".join(" ".join(content.itertext()).split()) == shown
    assert (picture.get("viewBox"), picture.get("aria-label")) == ("0 0 100 50", "A page")
    style = picture.findtext("{*}style") or ""
    assert style.startswith("h2{color:red}\np{margin:0}")
    drawn = content.find(".//{http://www.w3.org/2000/svg}svg")
    assert ("First" in shown) == (drawn is not None)
    assert drawn is None or (drawn.get("viewBox"), drawn.get("preserveAspectRatio")) == ("0 0 1 1", "none")
