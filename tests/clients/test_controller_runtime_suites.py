"""Suites of controller-runtime run unchanged on the embedded API server, which envtest starts, and on a real one.

Both pass the same specs. `ocf envtest-assets` writes the programs that envtest starts in place of the real ones.
"""

from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.testing.envtest.binaries import Programs
from tests.clients.support import go_program, run_suite

SUITES: Final = {"client": 296, "cluster": 15, "controller": 32}
"""The number of specs of each suite that run; the others are pending in controller-runtime."""


async def results(suite: str, assets: Path, folder: Path) -> dict[str, str]:
    """Run a suite in an empty folder with the files that it reads; return the state of each spec that ran."""
    program = go_program(f"{suite}.test-suite")
    (folder / "testdata").mkdir()
    for found in (program.parent / "crds", *(program.parent / "testdata").iterdir()):
        (folder / "testdata" / found.name).symlink_to(found)
    return await run_suite(program, assets, folder)


def failed(found: dict[str, str]) -> dict[str, str]:
    return {name: state for name, state in found.items() if state != "passed"}


@pytest.mark.parametrize("suite", SUITES)
async def test_on_the_embedded_server(suite: str, tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["envtest-assets", str(tmp_path / "assets")]).exit_code == 0
    found = await results(suite, tmp_path / "assets", tmp_path)
    assert (len(found), failed(found)) == (SUITES[suite], {})


@pytest.mark.parametrize("suite", SUITES)
async def test_on_a_real_server(suite: str, envtest_programs: Programs, tmp_path: Path) -> None:
    found = await results(suite, envtest_programs.folder, tmp_path)
    assert (len(found), failed(found)) == (SUITES[suite], {})
