"""The structure of the packages: no import cycles, and nothing for tests in a process that runs in production."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

TEST_ONLY = ("ocf_server", "ocf.testing")
BY_KIND_ALONE = {
    ("ocf/runtime/admission/conversion_review.py", "seen[1] != resource.kind"): "the group is compared before it",
    ("ocf/runtime/rbac/escalation.py", "entry.key.kind == 'Role'"): "of the RBAC group only",
    ("ocf/runtime/rbac/escalation.py", "entry.key.kind in _BINDINGS"): "of the RBAC group only",
    ("ocf/runtime/rbac/escalation.py", "entry.key.kind in _ROLES"): "of the RBAC group only",
    ("ocf/component/reconcile/external_removal.py", "record.kind not in kept"): "the kind of a client has no group",
    ("ocf_server/controllers/ownership.py", "found.kind not in kinds"): "the group is compared after it",
    ("ocf_server/controllers/runner.py", "controller.kind == kind"): "of built-in groups only",
    ("ocf_server/controllers/runner.py", "manifest['kind'] == 'Pod'"): "of built-in groups only",
}
"""Comparisons of a kind without its group, and why each is right."""


def test_no_import_cycles() -> None:
    """Imports for type checking count: a reader follows them, too."""
    graph = grimp.build_graph("ocf", "ocf_server", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in sorted(graph.modules)}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' <- '.join(error.args[1])}")


@pytest.mark.parametrize("name", ["ocf.runtime.operator", "ocf.controllers.hpa"])
def test_production_loads_neither_the_embedded_server_nor_the_test_kit(name: str) -> None:
    program = f"import {name}, sys; print([found for found in sys.modules if found.startswith({TEST_ONLY})])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    assert done.stdout.strip() == "[]"


def test_kinds_are_compared_with_their_groups() -> None:
    """A kind of another group may have the name of a built-in one, or of the owner's."""
    packages = ("ocf/cluster/cache", "ocf/component", "ocf/runtime", "ocf_server/controllers")
    files = [file for package in packages for file in Path(package).rglob("*.py")]
    found = {(str(file), text) for file in files for text in _comparisons_by_kind(file)}
    assert found == BY_KIND_ALONE.keys()


def _comparisons_by_kind(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        if any(_is_kind(side) for side in sides):
            yield ast.unparse(node)


def _is_kind(node: ast.AST) -> bool:
    match node:
        case (
            ast.Attribute(attr="kind")
            | ast.Subscript(slice=ast.Constant("kind"))
            | ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant("kind"), *_])
        ):
            return True
        case _:
            return False
