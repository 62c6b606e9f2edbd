"""The built site in a browser: its pages on a phone in both schemes of colours, its diagrams, and the search.

`make site` builds it, strictly: a link or an anchor that leads nowhere fails the build. Without it these tests are
skipped, unless `OCF_REQUIRE` lists `site`.
"""

import asyncio
import re
from pathlib import Path
from typing import Final

import pytest
import yaml

from scripts.site import api
from scripts.site.build import HTML, assemble, is_current, playground
from tests.browser import SUFFICIENT_CONTRAST, contrast, luminance
from tests.docs.site.visit import PHONE, SCREEN, Visit, opened_playground, visited
from tests.requirements import leave_out

READABLE: Final = 9
"""Smallest size of text in a diagram, in pixels: a wider diagram is shrunk more."""

COMMAND: Final = re.compile(r"^\$ ((?:.*\\\n)*.*)$", re.MULTILINE)
"""A command of a session, over several lines if they end with a backslash."""
WRONG: Final = re.compile(
    r"<code>[^<]*\\\|[^<]*</code>|&lt;(?:function|object|class) [^&]*|FieldInfo\(|\bat 0x[0-9a-f]{6,}"
)

TABLE: Final = Path(__file__).with_name("questions.yaml")
QUESTIONS: Final[dict[str, str]] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))


def address(place: str) -> str:
    """Return the address of a page, relative to that of the site."""
    folder, _, name = place.removesuffix(".md").rpartition("/")
    parts = [part for part in (folder, "" if name in {"index", "README"} else name) if part]
    return "".join(f"{part}/" for part in parts)


def looked_at(pages: dict[str, str]) -> list[str]:
    """Return the addresses of all pages. Of those that one template makes, the longest of each area is enough."""
    templates = ("reference/api/", "reference/kinds/")
    chosen = [place for place in pages if place.endswith(".md") and not place.startswith(templates)]
    longest = [max(map(api.place_of, names), key=lambda place: len(pages[place])) for names in api.MODULES.values()]
    return [address(place) for place in (*chosen, *longest)]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return assemble(with_playground=playground() is not None)


@pytest.fixture(scope="module")
def site() -> Path:
    if not is_current():
        leave_out("site", "the documentation site is not built from the present sources: `make site` builds it")
    return HTML


@pytest.fixture(scope="module")
def visit(chromium: str, site: Path, tmp_path_factory: pytest.TempPathFactory, pages: dict[str, str]) -> Visit:
    folder = tmp_path_factory.mktemp("browser")
    return asyncio.run(visited(chromium, site, folder, looked_at(pages), list(QUESTIONS)))


def test_no_page_writes_to_the_console(visit: Visit) -> None:
    assert len(visit.phone) > 40
    assert {page: seen.complaints for page, seen in visit.phone.items() if seen.complaints} == {}


def test_no_page_scrolls_sideways_on_a_phone(visit: Visit) -> None:
    seen = {page: each.measured for page, each in visit.phone.items()}

    assert {page: each["outside"] for page, each in seen.items() if each["outside"]} == {}
    assert {page for page, each in seen.items() if each["scrolled"] > each["width"] or each["width"] > PHONE} == set()


@pytest.mark.parametrize("width", [PHONE, SCREEN])
def test_no_identifier_breaks_within_a_word(visit: Visit, width: int) -> None:
    broken = {page: each.layout[width]["broken"] for page, each in visit.phone.items()}

    assert {page: each for page, each in broken.items() if each} == {}


def test_no_block_is_cut_off_on_a_screen(visit: Visit) -> None:
    """The longest line of each block that scrolls sideways."""
    cut = {page: each.layout[SCREEN]["cut"] for page, each in visit.phone.items()}

    assert {page: each for page, each in cut.items() if each} == {}


def test_an_entry_of_the_navigation_opens_what_it_says(visit: Visit) -> None:
    seen = {page: each.layout[SCREEN] for page, each in visit.phone.items()}

    # The entry of an area is the name of the area, and files of the repository have none.
    areas = {"", "reference/", *(page for page in seen if page.startswith("source/"))}
    wrong = {page: (each["entry"], each["heading"]) for page, each in seen.items() if each["entry"] != each["heading"]}
    assert {page: each for page, each in wrong.items() if page not in areas} == {}
    assert {page for page, each in seen.items() if each["grey"]} == set()


@pytest.mark.parametrize("width", [PHONE, SCREEN])
def test_the_search_shows_a_line_for_each_hit(visit: Visit, width: int) -> None:
    assert {each["text"]: each["lines"] for each in visit.hits[width] if each["lines"] > 3} == {}


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_a_page_has_the_scheme_of_the_browser_and_is_readable_in_it(visit: Visit, scheme: str) -> None:
    pages = visit.phone if scheme == "dark" else visit.light
    seen = {page: each.measured for page, each in pages.items()}

    assert {page for page, each in seen.items() if (luminance(each["paper"]) < 0.2) != (scheme == "dark")} == set()
    assert {page for page, each in seen.items() if contrast(each["text"], each["paper"]) < SUFFICIENT_CONTRAST} == set()


def test_every_diagram_is_drawn_and_readable_on_a_phone(visit: Visit, pages: dict[str, str]) -> None:
    wanted = {address(place): text.count("```mermaid\n") for place, text in pages.items()}

    assert {page: seen.failed for page, seen in visit.phone.items() if seen.failed} == {}
    assert {page: len(seen.measured["diagrams"]) for page, seen in visit.phone.items()} == {
        page: wanted[page] for page in visit.phone
    }
    sizes = {page: min(seen.measured["diagrams"], default=READABLE) for page, seen in visit.phone.items()}
    assert {page: size for page, size in sizes.items() if size < READABLE} == {}


def test_the_button_at_a_session_copies_commands_only(visit: Visit, pages: dict[str, str]) -> None:
    """A prompt that is pasted is no command, and neither is what a command prints."""
    copied = {
        page: [line for text in seen.measured["copied"] for line in text.splitlines() if line.strip()]
        for page, seen in visit.phone.items()
    }
    commands = {line for text in pages.values() for found in COMMAND.findall(text) for line in found.splitlines()}

    assert sum(map(len, copied.values())) > 50
    assert {page: wrong for page, lines in copied.items() if (wrong := set(lines) - commands)} == {}


def test_a_module_has_its_name_as_title(visit: Visit) -> None:
    modules = {page for page in visit.phone if page.startswith("reference/api/")}

    assert modules
    assert {page: visit.phone[page].measured["title"] for page in modules} == {
        page: f"{page.removeprefix('reference/api/').rstrip('/')} - ocf" for page in modules
    }


def test_no_page_shows_what_only_a_parser_reads(site: Path) -> None:
    """Escapes of tables, and representations of objects in place of types."""
    shown = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html") if "source" not in path.parts}
    found = {str(path.relative_to(site)): WRONG.findall(text) for path, text in shown.items()}

    assert {path: each for path, each in found.items() if each} == {}


def test_every_picture_has_an_alternative_text(visit: Visit) -> None:
    assert {page: seen.measured["nameless"] for page, seen in visit.phone.items() if seen.measured["nameless"]} == {}


def test_nothing_is_loaded_from_other_hosts(visit: Visit) -> None:
    assert {each for each in visit.requests if each.startswith("http")} == set()


def test_the_first_hit_of_the_search_answers_each_question(visit: Visit) -> None:
    """A page answers; where the table names a section, the best section of the page is that one."""
    wrong = {}
    for question, wanted in QUESTIONS.items():
        best = visit.answers[question][0] if visit.answers[question] else [""]
        page, _, section = wanted.partition("#")
        sections = [each for each in best if "#" in each]
        if best[0].partition("#")[0] != page or (section and sections[0] != wanted):
            wrong[question] = best[0]

    assert wrong == {}


def test_the_playground_opens_in_the_site_and_is_usable_on_a_phone(chromium: str, site: Path, tmp_path: Path) -> None:
    if not (site / "playground").is_dir():
        leave_out("playground", "the site is built without the playground: `make playground site` builds both")

    seen = asyncio.run(opened_playground(chromium, site, tmp_path))

    assert seen.entries == {"Playground": seen.address}
    assert seen.state == "done"
    assert seen.shown["actions"]
    assert seen.shown["scrolled"] <= seen.shown["width"] <= PHONE
    assert seen.shown["outside"] == []
    assert seen.complaints == []
    assert {each for each in seen.requests if not each.startswith((seen.origin, "data:", "blob:"))} == set()
