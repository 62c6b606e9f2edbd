"""A page for each kind, from its declaration: the edits, the handlers of its status, and an example that runs."""

import ast
import inspect
import json
import pkgutil
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import yaml

import ocf.primitives
from ocf.primitives.mutator import BaseMutator
from scripts.site.docstrings import plain, summary

__all__ = ["NAMES", "example", "page", "place_of"]

_DOCS: Final = Path(__file__).parents[2] / "docs"
_ROW: Final = re.compile(r"^\| `(\w+)` \| (.+ \| .+ \| .+ \| .+) \|$", re.MULTILINE)
_INTRODUCTION: Final = """\
The kind {name} as a resource of a component: `from ocf.primitives import {kind}`. [Kinds](../kinds.md) compares
it with the others."""
_ORDER: Final = """\
A mutation records edits, which are applied in this order. [Mutations](../../operators/mutations.md) describes the
editors."""
_HANDLERS: Final = {
    "default_converging_status_handler": "Status",
    "default_operational_status_handler": "Status",
    "default_grace_status_handler": "After the grace period",
    "default_suspension_status_handler": "Suspension",
    "default_delete_on_suspend_handler": "Deletion on suspension",
}


def _names() -> Iterator[str]:
    for each in pkgutil.iter_modules(ocf.primitives.__path__):
        if "Mutation" in import_module(f"ocf.primitives.{each.name}").__all__:
            yield each.name


NAMES: Final = tuple(sorted(_names()))
"""The names of the kinds: the modules below `ocf.primitives` that declare a mutation."""


def place_of(kind: str) -> str:
    """Return the place of the page of a kind in the site.

    Args:
        kind: The name of the module below `ocf.primitives`.
    """
    return f"reference/kinds/{kind}.md"


def page(kind: str, api: str) -> str:
    """Return the page of a kind, in Markdown.

    Args:
        kind: The name of the module below `ocf.primitives`.
        api: The instruction for mkdocstrings that documents its names.
    """
    module = import_module(f"ocf.primitives.{kind}")
    name, category, reports, suspended = _row(kind)
    parts = [
        f"# {name.strip('`').rpartition(' ')[2]}",
        _INTRODUCTION.format(name=name, kind=kind),
        *(inspect.getdoc(module) or "").split("\n\n")[1:],
        _table([("category", category), ("reports", reports), ("when suspended", suspended)], "property", "value"),
        "## Example",
        f"```python\n{example(kind)}```",
        "## Edits",
        _ORDER,
        _table(_edits(module), "edit", "editor and what it edits"),
    ]
    if shortcuts := list(_shortcuts(module)):
        parts += ["The mutator also has short forms:", _table(shortcuts, "method", "meaning")]
    if handlers := list(_handlers(module)):
        parts += ["## Status", _table(handlers, "handler", "what it returns")]
    return "\n\n".join([*parts, "## API", api])


def example(kind: str) -> str:
    """Return the example of a kind, which asserts what it shows.

    Args:
        kind: The name of the module below `ocf.primitives`.
    """
    given = _examples()[kind]
    models = "".join(f"from kubernetes.client import {each}\n\n" for each in given.get("imports", ()))
    path = "".join(f"[{json.dumps(part)}]" for part in given["path"])
    return f"""\
{models}from ocf.primitives import {kind}

BASE = \"\"\"
{given["manifest"]}\"\"\"


def change(m: {kind}.Mutator) -> None:
    {given["edit"]}


mutation = {kind}.Mutation("change", change)
resource = {kind}.Builder(BASE).with_mutation(mutation).build()
assert resource.render(){path} == {json.dumps(given["value"])}
"""


@cache
def _examples() -> Mapping[str, Any]:
    found: Mapping[str, Any] = yaml.safe_load((_DOCS / "site" / "kinds.yaml").read_text(encoding="utf-8"))
    return found


def _row(kind: str) -> list[str]:
    """Return the row of a kind in the table of all kinds, which tests compare with the declarations."""
    rows = dict(_ROW.findall((_DOCS / "reference" / "kinds.md").read_text(encoding="utf-8")))
    cells: list[str] = rows[kind].split(" | ")
    return cells


def _edits(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Yield each category of edits, and how it is declared."""
    source = ast.parse(inspect.getsource(module.Mutator)).body[0]
    declared = {
        target.id.removeprefix("_"): each.value
        for each in ast.walk(source)
        if isinstance(each, ast.Assign)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    for category in module.Mutator.categories:
        yield f"`{category.name}`", _declaration(declared.get(category.name))


def _declaration(value: ast.expr | None) -> str:
    if not isinstance(value, ast.Call):
        return "`ObjectMetaEditor`, `metadata`"
    if ast.unparse(value.func).endswith("ListEdits"):
        return "which entries the list has"
    named = [ast.unparse(each) for each in value.args]
    editors = [f"`{each}`" for each in named if each.endswith("Editor")]
    paths = [f"`{each.strip(chr(39))}`" for each in named if each.startswith("'") and each != "''"]
    return ", ".join([*editors, *paths])


def _shortcuts(module: ModuleType) -> Iterator[tuple[str, str]]:
    for name, method in inspect.getmembers(module.Mutator, inspect.isfunction):
        if not name.startswith("_") and name not in dir(BaseMutator):
            arguments = ", ".join(list(inspect.signature(method).parameters)[1:])
            yield f"`{name}({arguments})`", summary(method)


def _handlers(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Yield the default handlers with what their docstrings say that they return."""
    path = Path(str(module.__file__))
    body = ast.parse((path.with_name("status.py") if path.stem == "__init__" else path).read_text("utf-8")).body
    for each, following in pairwise([*body, None]):
        match each, following:
            case ast.FunctionDef(name=name), _ if name in _HANDLERS:
                text = ast.get_docstring(each) or ""
                yield _HANDLERS[name], plain((text.partition("Returns:\n")[2] or text).partition("\n\n")[0])
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))) if (
                name in _HANDLERS
            ):
                _, _, returned = text.partition(": ")
                yield _HANDLERS[name], plain(returned[:1].upper() + returned[1:])


def _table(rows: Iterator[tuple[str, str]] | list[tuple[str, str]], first: str, second: str) -> str:
    return "\n".join([f"| {first} | {second} |", "| --- | --- |", *(f"| {name} | {text} |" for name, text in rows)])
