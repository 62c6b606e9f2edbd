"""JobSet's own suite passes with the controller of `examples/jobset` as with the original, on a real server and ours.

These are its specs that wait for nothing but the controller; `make jobset` runs all 64 on both. Specs about restarts
are left out here: they play the garbage collector, which the embedded server of the tests has.

The suite of its webhooks runs unchanged, also on the programs that `ocf envtest-assets` writes for envtest.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.objects import Manifest
from ocf.testing.envtest.binaries import Programs
from tests.clients import jobset
from tests.clients.support import Server, leave_out, run_suite

QUICK: Final = "InOrder; (resume|suspend)|not ready|AnyOrder|DependsOn|suspended|VolumeClaim|DNS|invalid|parallelism"
AT_LEAST: Final = 15
WEBHOOK_SPECS: Final = 35
CONTROLLERS: Final = [pytest.param(jobset.OURS, id="ours"), pytest.param(jobset.ORIGINAL, id="original")]


@pytest.fixture
def definitions() -> list[Manifest]:
    if not jobset.is_built():
        leave_out()
    return [jobset.definition()]


async def failures(controller: Sequence[str], server: Server, folder: Path) -> dict[str, str]:
    specs = await jobset.names(server.kubeconfig, QUICK)
    assert len(specs) >= AT_LEAST
    async with jobset.running(controller, server.kubeconfig, folder / "log"):
        found = await jobset.run_specs(server.kubeconfig, specs)
    return {name: result for name, result in found.items() if result != jobset.PASSED}


async def test_on_a_real_server(real: Server, tmp_path: Path) -> None:
    assert await failures(jobset.OURS, real, tmp_path) == {}


@pytest.mark.parametrize("embedded", ["http"], indirect=True)
@pytest.mark.parametrize("controller", CONTROLLERS)
async def test_on_the_embedded_server(controller: Sequence[str], embedded: Server, tmp_path: Path) -> None:
    assert await failures(controller, embedded, tmp_path) == {}


async def webhook_failures(assets: Path, folder: Path) -> dict[str, str]:
    if not jobset.is_built():
        leave_out()
    program, place = jobset.webhook_suite(folder)
    found = await run_suite(program, assets, place)
    assert len(found) == WEBHOOK_SPECS
    return {name: state for name, state in found.items() if state != jobset.PASSED}


async def test_webhooks_on_a_real_server(envtest_programs: Programs, tmp_path: Path) -> None:
    assert await webhook_failures(envtest_programs.folder, tmp_path) == {}


async def test_webhooks_on_the_embedded_server(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["envtest-assets", str(tmp_path / "assets")]).exit_code == 0
    assert await webhook_failures(tmp_path / "assets", tmp_path) == {}
