"""Docstrings below the exported surface say what names and types do not; pages are made from those above."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from scripts.site.api import MODULES

ROOT: Final = Path(__file__).parents[2]
FILES: Final = [path for package in ("ocf", "ocf_server") for path in sorted((ROOT / package).rglob("*.py"))]
ENTRY: Final = re.compile(r"^ {4}\*{0,2}(?P<name>\w+)(?: \([^)]*\))?: (?P<text>.*(?:\n {5,}.*)*)$", re.MULTILINE)
SECTION: Final = re.compile(r"^(?:Args|Attributes):\n(?P<entries>(?:    .*\n?|\n)+)", re.MULTILINE)
DEFINITIONS: Final = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
FILLING: Final = frozenset(
    re.findall(r"\w+", "the a an of this that its it to for in on as and or is are be with one each all")
)


def words(text: str) -> set[str]:
    """Return the words that mean something, in the singular."""
    found = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower().replace("_", " "))
    return {word.removesuffix("s") if len(word) > len("ids") else word for word in found if word not in FILLING}


def repeated(docstring: str) -> Iterator[str]:
    """Yield the names of arguments and attributes whose description has no other word than the name."""
    for section in SECTION.finditer(docstring):
        for entry in ENTRY.finditer(section["entries"]):
            said = words(entry["text"])
            if said and said <= words(entry["name"]):
                yield entry["name"]


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        pytest.param("pods: The pods.", ["pods"], id="the name"),
        pytest.param("api_version: Its API version.", ["api_version"], id="the words of the name"),
        pytest.param("limit: The limit, in bytes.", [], id="a unit"),
        pytest.param("limit: The limit.\n        None for none.", [], id="a second line"),
        pytest.param("**options: The options.", ["options"], id="keywords"),
    ],
)
def test_an_entry_that_repeats_its_name_is_found(entry: str, found: list[str]) -> None:
    assert list(repeated(f"Do it.\n\nArgs:\n    {entry}\n")) == found


def exported() -> set[tuple[str, str]]:
    """Return the exported names, each with the module that defines it."""
    modules = [import_module(name) for names in MODULES.values() for name in names]
    return {(getattr(getattr(module, name), "__module__", ""), name) for module in modules for name in module.__all__}


def test_no_entry_below_the_surface_only_repeats_its_name() -> None:
    above = exported()
    found = []
    for path in FILES:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        # The schema of the scenario file has a description of each field.
        if module.startswith("ocf.simulation.scenario."):
            continue
        for top in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(top, DEFINITIONS) and (module, top.name) not in above:
                nodes = [node for node in ast.walk(top) if isinstance(node, DEFINITIONS)]
                found += [f"{module}: {name}" for node in nodes for name in repeated(ast.get_docstring(node) or "")]
    assert found == []
