"""Every example of the documentation runs, every link of it leads somewhere.

The blocks of a page share one namespace and run in order, as a reader would type them; so a page is one test, which
random order cannot tear apart.
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
# The files of the tutorial import each other; `test_tutorial` writes and runs them.
EXAMPLES: Final = [page for page in PAGES if page.stem != "tutorial"]
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


@pytest.mark.parametrize("page", EXAMPLES, ids=named)
def test_the_examples_run(page: Path) -> None:
    for example in Sybil(parsers=[PythonCodeBlockParser()]).parse(page).examples():
        example.evaluate()


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
