"""More clients than a process may open files, that hold connections to its probes, metrics and webhooks."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import pytest

from ocf.cluster.client import ApiServerCluster
from ocf.errors import InvalidError
from ocf.objects import ObjectKey
from ocf.testing.envtest.fixtures import Envtest
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from tests.runtime.operator.limited_process import DEFINITION, FILES
from tests.support import eventually

CLIENTS: Final = 1100
HEAD: Final = {"apiVersion": "held.example.com/v1", "kind": "Shop"}
HELD: Final = {
    "nothing is sent": b"",
    "half a header": b"GET /healthz HTTP/1.1\r\nHost: x",
    "half a TLS handshake": b"\x16\x03\x01\x02\x00\x01",
    "a body that does not arrive": b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
}


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process hold the clients' ends of all connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@dataclass(frozen=True, slots=True)
class Server:
    """An API server that knows the kind of the shops.

    Args:
        cluster: A connection of its administrator.
        kubeconfig: The administrator's.
        namespace: Where the shops are.
    """

    cluster: ApiServerCluster
    kubeconfig: Path
    namespace: str

    async def create(self, name: str, motto: str) -> ObjectKey:
        metadata = {"name": name, "namespace": self.namespace}
        manifest = {**HEAD, "metadata": metadata, "spec": {"motto": motto}}
        return ObjectKey.of(await self.cluster.create(manifest, field_manager="t"))


@asynccontextmanager
async def connected(kubeconfig: Path, namespace: str) -> AsyncIterator[Server]:
    async with await ApiServerCluster.connect(kubeconfig) as cluster:
        await cluster.apply(DEFINITION, field_manager="t")
        try:
            yield Server(cluster, kubeconfig, namespace)
        finally:
            await cluster.delete(ObjectKey.of(DEFINITION))


@pytest.fixture(params=["embedded", "real"])
async def server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Server]:
    if request.param == "real":
        envtest: Envtest = request.getfixturevalue("envtest")
        async with connected(envtest.kubeconfig, envtest.namespace) as found:
            yield found
        return
    async with serving(EmbeddedCluster()) as served:
        write_kubeconfig(served.kubeconfig(), tmp_path / "kubeconfig")
        async with connected(tmp_path / "kubeconfig", "default") as found:
            yield found


@asynccontextmanager
async def process(server: Server) -> AsyncIterator[tuple[asyncio.subprocess.Process, dict[str, str]]]:
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-m", "tests.runtime.operator.limited_process", str(server.kubeconfig), server.namespace)
    child = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    assert child.stdout is not None
    try:
        yield child, json.loads(await child.stdout.readline())
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


async def hold(url: str, stack: ExitStack) -> None:
    """Open connections that are not used, and never close them."""
    loop, place = asyncio.get_running_loop(), urlsplit(url)
    for sent in islice(cycle(HELD.values()), CLIENTS):
        client = stack.enter_context(socket.socket())
        client.settimeout(0)
        await loop.sock_connect(client, (place.hostname, place.port))
        await loop.sock_sendall(client, sent)


@pytest.mark.promise("idle-connections", runs="1100 clients on each port of a process with 1024 files, on both servers")
async def test_an_operator_works_on_while_clients_hold_more_connections_than_it_may_open_files(
    server: Server, many_files: None
) -> None:
    """Probes are answered, and the log does not grow without end.

    https://github.com/hiero-ledger/hiero-block-node/issues/3168, https://github.com/academy-agents/academy/issues/386.
    """
    del many_files
    assert CLIENTS > FILES
    async with process(server) as (child, urls):
        with ExitStack() as stack:
            for number in (1, 2):
                await hold(urls["endpoints"], stack)
                await hold(urls["webhooks"], stack)
                await works(server, urls["endpoints"], f"shop-{number}")
            log = (await child.communicate(b""))[1].decode()
    lines = log.splitlines()
    assert child.returncode == 0
    assert sorted(line.split(":")[2] for line in lines) == ["endpoints", "webhooks"], log
    assert all("connections at a limit" in line for line in lines)


async def works(server: Server, endpoints: str, name: str) -> None:
    """Check that probes and webhooks are answered, and that a new owner is reconciled."""
    async with aiohttp.ClientSession(endpoints) as session:
        for page in ("/healthz", "/readyz", "/metrics"):
            async with session.get(page) as response:
                assert response.status == 200
    with pytest.raises(InvalidError, match="must be inviting"):
        await server.create(name, "closed")
    key = await server.create(name, "come in")

    async def status() -> Any:
        return (await server.cluster.get(key)).get("status", {}).get("seen")

    assert await eventually(status) == "come in"
