"""The structure of the packages: no import cycles, and nothing for tests in a process that runs in production."""

import subprocess
import sys
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

TEST_ONLY = ("ocf_server", "ocf.testing")


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
