"""The servers that clients are run against. Every test here has the marker `clients`."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from ocf.objects import Manifest
from ocf.testing.envtest.fixtures import Envtest
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from tests.clients.support import Server
from tests.support import is_in

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder."""
    for item in items:
        if is_in(item, HERE):
            item.add_marker("clients")


@pytest.fixture
def definitions() -> list[Manifest]:
    """Return the definitions that a server has from the start; a module may override it."""
    return []


@pytest_asyncio.fixture(params=["http", "https"])
async def embedded(
    request: pytest.FixtureRequest, definitions: list[Manifest], tmp_path: Path
) -> AsyncIterator[Server]:
    cluster = EmbeddedCluster(namespaces=["shop"])
    for definition in definitions:
        await cluster.create(definition, field_manager="test")
    cluster.compact()  # a real API server has no events of version 1 either
    async with serving(cluster, tls=request.param == "https") as server:
        write_kubeconfig(server.kubeconfig(), tmp_path / "kubeconfig")
        yield Server(tmp_path / "kubeconfig", "shop")


@pytest.fixture
def real(envtest: Envtest, definitions: list[Manifest]) -> Server:
    envtest.plane.install_crds(*definitions)
    return Server(envtest.kubeconfig, envtest.namespace)
