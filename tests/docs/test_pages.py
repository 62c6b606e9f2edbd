"""No example of the documentation is passed over where they are run, and every link of it leads somewhere.

`make test-wheel` runs the examples, with the built wheel and what their page says to install.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHOWN: Final = [*(ROOT / "examples").rglob("README.md"), *(ROOT / "charts").rglob("README.md")]
"""Pages of the repository that the site shows below `source/`."""
TEXTS: Final = [*PAGES, *(ROOT / f"{name}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY", "CODE_OF_CONDUCT"))]
FENCE: Final = re.compile(r"^```(\w*)\n.*?^```$", re.MULTILINE | re.DOTALL)
COLUMNS: Final = 84
"""The site shows so many columns of a block without scrolling, on a screen of 1280 pixels."""
LINK: Final = re.compile(r"\]\(([^)\s]+)\)")


def named(path: Path) -> str:
    return path.name


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> Iterator[str]:
    """Yield the anchors of a page's headings, as the usual viewers build them."""
    for heading in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE):
        yield re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_no_example_is_passed_over(page: Path) -> None:
    """A block that the reader of the examples does not see would never be run."""
    fences = FENCE.findall(page.read_text(encoding="utf-8"))
    seen = list(Sybil(parsers=[PythonCodeBlockParser()]).parse(page).examples())

    assert len(seen) == fences.count("python")
    assert set(fences) <= {"console", "mermaid", "python", "sh", "text", "toml", "yaml"}


def code_lines(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of the code of a page with their numbers. What programs print is as they print it."""
    language, continued = "", False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = re.match(r" *```(\w*)", line)
        if fence:
            language = "" if language else fence[1]
        elif language in {"python", "sh", "toml", "yaml"} or (
            language == "console" and (continued or line.startswith("$ "))
        ):
            continued = line.endswith("\\")
            yield number, line
        else:
            continued = False


@pytest.mark.parametrize("page", [*TEXTS, *SHOWN], ids=lambda page: page.parent.name + "/" + page.name)
def test_no_line_of_code_is_wider_than_the_site_shows(page: Path) -> None:
    wide = [
        f"{page.relative_to(ROOT)}:{number}: {len(line)} columns"
        for number, line in code_lines(page)
        if len(line) > COLUMNS
    ]

    assert wide == []


@pytest.mark.parametrize("page", TEXTS, ids=named)
def test_every_link_leads_somewhere(page: Path) -> None:
    lost = []
    for link in LINK.findall(prose(page)):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)

    assert lost == []
