"""JobSet's own suite passes with the controller of `examples/jobset` as with the original, on a real server and ours.

These are its specs that wait for nothing but the controller; `make jobset` runs all 64 on both. Specs about restarts
are left out here: they play the garbage collector, which the embedded server of the tests has.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from ocf.objects import Manifest
from tests.clients import jobset
from tests.clients.support import Server, leave_out

QUICK: Final = "InOrder; (resume|suspend)|not ready|AnyOrder|DependsOn|suspended|VolumeClaim|DNS|invalid|parallelism"
AT_LEAST: Final = 15
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
