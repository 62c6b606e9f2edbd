"""Each of the three operators passes the same checks, on the embedded server and on a real one."""

from pathlib import Path

import pytest

from ocf.cluster.client import ApiServerCluster
from ocf.testing import fake_workload_controllers
from ocf.testing.envtest.controllers import ControllerName
from ocf.testing.envtest.fixtures import Envtest, RunControllers
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from tests.examples.comparison.checks import CHECKS, Site
from tests.examples.comparison.programs import PROGRAMS, Program, running

# Those of other projects need what `make clients` installs or builds; kopf is there with all extras.
MARKED = [
    pytest.param(program, id=program.name, marks=() if program.arguments else pytest.mark.clients)
    for program in PROGRAMS
]


async def passes(program: Program, kubeconfig: Path, namespace: str) -> None:
    group = program.load_definition()["spec"]["group"]
    async with (
        await ApiServerCluster.connect(str(kubeconfig)) as cluster,
        fake_workload_controllers(cluster),
        running(program, kubeconfig),
    ):
        site = Site(cluster, group, namespace)
        for name, check in CHECKS.items():
            try:
                await check(site)
            except BaseException as error:
                error.add_note(f"in the check: {name}")
                raise


@pytest.mark.parametrize("program", MARKED)
async def test_on_the_embedded_server(program: Program, tmp_path: Path) -> None:
    cluster = EmbeddedCluster(namespaces=["web"])
    await cluster.create(program.load_definition(), field_manager="test")
    async with serving(cluster) as server:
        write_kubeconfig(server.kubeconfig(), tmp_path / "kubeconfig")
        await passes(program, tmp_path / "kubeconfig", "web")


@pytest.mark.parametrize("program", MARKED)
async def test_on_a_real_server(program: Program, envtest: Envtest, envtest_controllers: RunControllers) -> None:
    envtest.plane.install_crds(program.load_definition())
    with envtest_controllers(ControllerName.GARBAGE_COLLECTOR):
        await passes(program, envtest.kubeconfig, envtest.namespace)
