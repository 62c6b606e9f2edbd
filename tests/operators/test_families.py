"""How much code each family of operators takes, and that it needs nothing but what pages describe.

What is longer, or reaches below the exported names, asks for something in the framework.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from scripts.generate.comparison import code_lines
from scripts.site.api import MODULES

FOLDER: Final = Path(__file__).parent
PUBLIC: Final = {"ocf", *(name for names in MODULES.values() for name in names)}
LIMITS: Final = {
    "primary": (500, ("model", "servers", "roles", "objects", "operator")),
    "replicator": (200, ("operator",)),
    "reloader": (250, ("operator",)),
    "workers": (450, ("model", "scheduler", "clusters", "groups", "runs", "scalers")),
    "instances": (600, ("model", "servers", "instances", "contents", "operator")),
    "scaler": (500, ("model", "triggers", "metrics_api", "operator")),
    "tenancy": (600, ("model", "namespaces", "contents", "operator")),
}
FILES: Final = [(family, name) for family, (_, names) in LIMITS.items() for name in names]
each_file: Final = pytest.mark.parametrize(("family", "name"), FILES, ids=["-".join(pair) for pair in FILES])


def text_of(family: str, name: str) -> str:
    return (FOLDER / family / f"{name}.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(("family", "limit"), [(family, limit) for family, (limit, _) in LIMITS.items()], ids=LIMITS)
def test_an_operator_is_short(family: str, limit: int) -> None:
    """Code lines, without blank lines, comments and docstrings."""
    assert 0 < sum(code_lines(text_of(family, name), ".py") for name in LIMITS[family][1]) <= limit


@each_file
def test_it_imports_exported_names_only(family: str, name: str) -> None:
    for node in ast.walk(ast.parse(text_of(family, name))):
        module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
        if module.partition(".")[0] in {"ocf", "ocf_server"}:
            assert isinstance(node, ast.ImportFrom)
            assert module in PUBLIC
            exported = {*getattr(import_module(module), "__all__", ())}
            assert [
                one.name for one in node.names if one.name not in exported and f"{module}.{one.name}" not in PUBLIC
            ] == []


@each_file
def test_it_keeps_nothing_in_the_process(family: str, name: str) -> None:
    """What a module holds is a constant: two operators in one process, or two tests, share nothing."""
    tree = ast.parse(text_of(family, name))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Global)]
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            empty = isinstance(statement.value, ast.Dict | ast.List) and not ast.dump(statement.value).count("Constant")
            made = isinstance(statement.value, ast.Call) and ast.unparse(statement.value.func).split("[")[0]
            assert not empty
            assert made not in {"dict", "list", "set", "Counter", "defaultdict", "deque", "OrderedDict", "Projection"}
