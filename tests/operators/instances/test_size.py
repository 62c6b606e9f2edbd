"""How much code an operator of instances and what is in them takes, and how it is made."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import pytest

from scripts.generate.comparison import code_lines

MODULES: Final = ("model.py", "servers.py", "instances.py", "contents.py", "operator.py")


def text_of(module: str) -> str:
    return (Path(__file__).parent / module).read_text(encoding="utf-8")


def test_the_operators_have_at_most_600_lines_of_code() -> None:
    assert 0 < sum(code_lines(text_of(name), ".py") for name in MODULES) <= 600


@pytest.mark.parametrize("module", MODULES)
def test_they_import_only_public_names(module: str) -> None:
    """A name is public if its package exports it: `ocf.primitives.external`, not `ocf.component.external.calls`."""
    imported = [node for node in ast.walk(ast.parse(text_of(module))) if isinstance(node, ast.ImportFrom)]
    found = {node.module for node in imported if (node.module or "").partition(".")[0] in {"ocf", "ocf_server"}}
    allowed = {"ocf", "ocf.cluster", "ocf.component", "ocf.concepts", "ocf.errors", "ocf.objects", "ocf.primitives"}
    allowed |= {"ocf.primitives.external", "ocf.runtime.crds", "ocf.runtime.operator"}
    assert found <= allowed
    assert not [one.name for node in imported for one in node.names if one.name.startswith("_")]
