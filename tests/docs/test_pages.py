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
TEXTS: Final = [*PAGES, *(ROOT / f"{name}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY", "CODE_OF_CONDUCT"))]
FENCE: Final = re.compile(r"^```(\w*)\n.*?^```$", re.MULTILINE | re.DOTALL)
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
