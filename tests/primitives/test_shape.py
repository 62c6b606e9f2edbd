"""The shape of a kind is the same everywhere, and a kind costs a declaration and its status functions."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from ocf.primitives import BaseMutator, PodMutator
from scripts.site import kinds

TYPED: Final = [name for name in kinds.NAMES if name != "unstructured"]
# Lines of code of a workload, without imports, docstrings, comments and the list of public names.
LARGEST: Final = 60


def module(kind: str) -> ModuleType:
    return importlib.import_module(f"ocf.primitives.{kind}")


@pytest.mark.parametrize("kind", [module(name) for name in TYPED], ids=lambda kind: kind.__name__)
def test_a_kind_has_a_builder_a_mutation_a_mutator_and_a_resource(kind: ModuleType) -> None:
    assert {"Builder", "Mutation", "Mutator", "Resource"} <= set(kind.__all__)
    assert issubclass(kind.Mutator, BaseMutator)
    assert kind.Mutator.categories[0].name == "edit_object_metadata"


def lines_of_code(path: Path) -> int:
    """Return the number of lines that declare something or do something."""
    found: set[int] = set()

    def visit(statements: list[ast.stmt]) -> None:
        for statement in statements:
            if isinstance(statement, ast.ClassDef | ast.FunctionDef):
                first = min([statement.lineno, *(each.lineno for each in statement.decorator_list)])
                found.update(range(first, statement.body[0].lineno))
                visit(statement.body)
            elif not _is_overhead(statement):
                found.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))

    visit(ast.parse(path.read_text(encoding="utf-8")).body)
    return len(found)


def _is_overhead(statement: ast.stmt) -> bool:
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case _:
            return False


@pytest.mark.parametrize("kind", [name for name in TYPED if issubclass(module(name).Mutator, PodMutator)])
def test_a_kind_with_pods_costs_at_most_60_lines(kind: str) -> None:
    assert lines_of_code(Path(module(kind).__file__ or "")) <= LARGEST


SOURCE: Final = '''"""A."""
import a

__all__ = [
    "b",
]

# c
B = [
    1,
]
"""D."""


@e
def f(
    g,
):
    """H."""
    return g
'''


def test_lines_are_counted_without_imports_docstrings_and_comments(tmp_path: Path) -> None:
    path = tmp_path / "kind.py"
    path.write_text(SOURCE, encoding="utf-8")
    assert lines_of_code(path) == 3 + 4 + 1
