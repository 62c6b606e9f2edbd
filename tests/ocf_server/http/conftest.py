"""Fixtures: a served cluster, a plain HTTP client for it, and kubectl."""

import io
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import yaml

from ocf.testing.envtest import ControlPlane
from ocf.testing.envtest.binaries import Program, Programs
from ocf_server import CustomKind, EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from ocf_server.http.server import HttpServer
from tests.kubectl import Kubectl


@dataclass(frozen=True)
class Reply:
    """A response."""

    status: int
    headers: Mapping[str, str]
    text: str
    warnings: tuple[str, ...] = ()

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass
class Client:
    """Sends requests; a dict as body is sent as JSON."""

    url: str
    session: aiohttp.ClientSession

    async def __call__(
        self, method: str, path: str, body: Any = None, *, kind: str = "application/json", **headers: str
    ) -> Reply:
        data = body if isinstance(body, str | bytes | io.IOBase) or body is None else json.dumps(body)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            sent["Content-Type"] = kind
        async with self.session.request(method, self.url + path, data=data, headers=sent) as response:
            text = (await response.read()).decode()
            return Reply(response.status, response.headers, text, tuple(response.headers.getall("Warning", ())))


@pytest.fixture
def cluster() -> EmbeddedCluster:
    return EmbeddedCluster(
        kinds=[CustomKind("example.com", "v1", "Shop")],
        namespaces=["shop"],
        now=lambda: datetime(2026, 1, 1, 12, tzinfo=UTC),
    )


@pytest_asyncio.fixture
async def server(cluster: EmbeddedCluster) -> AsyncIterator[HttpServer]:
    async with serving(cluster) as running:
        yield running


@pytest_asyncio.fixture
async def ask(server: HttpServer) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession() as session:
        yield Client(server.url, session)


@dataclass(frozen=True)
class Either:
    """The embedded API server or a real one.

    Attributes:
        ask: Sends requests.
        path: The path of an empty namespace.
    """

    ask: Client
    path: str


@pytest_asyncio.fixture(params=["embedded", "real"])
async def either(request: pytest.FixtureRequest) -> AsyncIterator[Either]:
    """Return one API server and then the other, for tests that hold on both."""
    if request.param == "embedded":
        connector = aiohttp.TCPConnector(limit=0)
        async with (
            serving(EmbeddedCluster(namespaces=["shop"])) as server,
            aiohttp.ClientSession(connector=connector) as session,
        ):
            yield Either(Client(server.url, session), "/api/v1/namespaces/shop")
        return
    plane: ControlPlane = request.getfixturevalue("envtest_plane")
    user = yaml.safe_load(plane.kubeconfig.read_text())["users"][0]["user"]
    context = ssl.create_default_context(cafile=str(plane.authority))
    context.load_cert_chain(user["client-certificate"], user["client-key"])
    connector = aiohttp.TCPConnector(limit=0, ssl=context)
    with plane.namespace() as namespace:
        async with aiohttp.ClientSession(connector=connector) as session:
            yield Either(Client(plane.url, session), f"/api/v1/namespaces/{namespace}")


@pytest.fixture
def kubectl(envtest_programs: Programs, server: HttpServer, tmp_path: Path) -> Kubectl:
    """Return kubectl for the served cluster."""
    kubeconfig = tmp_path / "kubeconfig"
    write_kubeconfig(server.kubeconfig(), kubeconfig)
    return Kubectl(envtest_programs.path(Program.KUBECTL), kubeconfig, tmp_path)
