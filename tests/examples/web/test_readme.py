"""Tests of the README: its commands run, and its links are valid."""

import re
import shlex
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from ocf.cli.app import app
from ocf.objects.documents import load_documents

CHECKOUT: Final = Path(__file__).parents[3]
EXAMPLE: Final = CHECKOUT / "examples" / "web"
PAGE: Final = (EXAMPLE / "README.md").read_text(encoding="utf-8")
GOLDENS: Final = Path(__file__).parent / "goldens"


def preview(*more: str) -> Result:
    """Run the page's `ocf preview`."""
    (found,) = re.findall(r"^\.venv/bin/ocf (preview (?:.*\\\n)*.*)$", PAGE, re.MULTILINE)
    return CliRunner().invoke(app, [*shlex.split(found.replace("\\\n", "")), *more])


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CHECKOUT)


def test_every_link_is_valid() -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", PAGE)

    assert links
    assert [link for link in links if not (EXAMPLE / link).exists()] == []


def test_every_module_is_listed() -> None:
    modules = {path.name for path in EXAMPLE.glob("*.py") if not path.name.startswith("__")}

    assert {name for name in modules if f"[{name}]({name})" not in PAGE} == set()


def test_the_preview_matches_the_goldens() -> None:
    shown = preview()
    folders = ("database/plain", "application/exporter")
    goldens = [(GOLDENS / folder / "1.4.2.yaml").read_text(encoding="utf-8") for folder in folders]

    assert (shown.exit_code, shown.stderr) == (0, "")
    assert list(load_documents(shown.stdout)) == [one for golden in goldens for one in load_documents(golden)]


def test_the_preview_lists_the_applied_mutations() -> None:
    shown = preview("--output", "text")

    assert re.search(r"Deployment/shop/corner-web +applied +database-access, database-url", shown.stdout)


def test_the_preview_names_the_mutation_that_set_a_field() -> None:
    shown = preview("--explain")

    assert re.search(r"--max_connections=100 +mutation few-connections", shown.stdout)
