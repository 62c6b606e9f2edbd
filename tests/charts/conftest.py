"""The chart, rendered by helm. Tests that run helm have the marker `clients`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ocf.testing.envtest import ControlPlane
from ocf.testing.envtest.binaries import Programs
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from tests.charts.support import Chart
from tests.clients.support import Server
from tests.support import is_in

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder that run helm."""
    for item in items:
        if is_in(item, HERE) and {"chart", "server", "own_plane"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("clients")


@pytest.fixture
def chart(tmp_path: Path) -> Chart:
    """Return the chart, in a namespace of a server that is not there."""
    return Chart(Server(tmp_path / "kubeconfig", "ops"), tmp_path)


@pytest.fixture(params=["embedded", "real"])
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Server]:
    """Return a server without the definitions of the controllers, and an empty namespace."""
    if request.param == "real":
        plane: ControlPlane = request.getfixturevalue("own_plane")
        yield Server(plane.kubeconfig, "default")
        return
    async with serving(EmbeddedCluster()) as found:
        write_kubeconfig(found.kubeconfig(), tmp_path / "kubeconfig")
        yield Server(tmp_path / "kubeconfig", "default")


@pytest.fixture
def own_plane(envtest_programs: Programs) -> Iterator[ControlPlane]:
    """Give a control plane of its own: the chart installs definitions and roles that other tests install, too."""
    with ControlPlane(envtest_programs) as plane:
        yield plane
