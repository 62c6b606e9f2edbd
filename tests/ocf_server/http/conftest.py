"""Fixtures: a served cluster, a plain HTTP client for it, and kubectl."""

import base64
import io
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import yaml
from multidict import CIMultiDict

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
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        kind: str = "application/json",
        **headers: str | Sequence[str],
    ) -> Reply:
        data = body if isinstance(body, str | bytes | io.IOBase) or body is None else json.dumps(body)
        sent = CIMultiDict[str]()
        for name, value in headers.items():
            for each in (value,) if isinstance(value, str) else value:
                sent.add(name.replace("_", "-"), each)
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
    """The embedded API server or a real one; both authorize requests by RBAC.

    Attributes:
        ask: Sends requests.
        path: The path of an empty namespace.
        client_of: Returns a client that authenticates itself as a user, by a certificate.
    """

    ask: Client
    path: str
    client_of: Callable[[str], Client]


def _session(authority: str, certificate: str, key: str) -> aiohttp.ClientSession:
    context = ssl.create_default_context(cafile=authority)
    context.load_cert_chain(certificate, key)
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, ssl=context))


@pytest_asyncio.fixture(params=["embedded", "real"])
async def either(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Either]:
    """Return one API server and then the other, for tests that hold on both."""
    async with AsyncExitStack() as stack:
        if request.param == "embedded":
            cluster = EmbeddedCluster(namespaces=["shop"], authorization=True)
            server = await stack.enter_async_context(serving(cluster, tls=True))
            (tmp_path / "authority").write_bytes(server.authority)
            url, namespace, authority = server.url, "shop", str(tmp_path / "authority")

            def files_of(user: str, *groups: str) -> tuple[str, str]:
                credentials = server.kubeconfig(user, groups)["users"][0]["user"]
                for name in ("certificate", "key"):
                    (tmp_path / name).write_bytes(base64.b64decode(credentials[f"client-{name}-data"]))
                return str(tmp_path / "certificate"), str(tmp_path / "key")
        else:
            plane: ControlPlane = request.getfixturevalue("envtest_plane")
            url, authority = plane.url, str(plane.authority)
            namespace = stack.enter_context(plane.namespace())

            def files_of(user: str, *groups: str) -> tuple[str, str]:
                kubeconfig = yaml.safe_load(plane.kubeconfig_for(user, *groups).read_text())
                credentials = kubeconfig["users"][0]["user"]
                return credentials["client-certificate"], credentials["client-key"]

        sessions: list[aiohttp.ClientSession] = []

        def client_of(user: str, *groups: str) -> Client:
            sessions.append(_session(authority, *files_of(user, *groups)))
            return Client(url, sessions[-1])

        try:
            yield Either(client_of("admin", "system:masters"), f"/api/v1/namespaces/{namespace}", client_of)
        finally:
            for session in sessions:
                await session.close()


@pytest.fixture
def kubectl(envtest_programs: Programs, server: HttpServer, tmp_path: Path) -> Kubectl:
    """Return kubectl for the served cluster."""
    kubeconfig = tmp_path / "kubeconfig"
    write_kubeconfig(server.kubeconfig(), kubeconfig)
    return Kubectl(envtest_programs.path(Program.KUBECTL), kubeconfig, tmp_path)
