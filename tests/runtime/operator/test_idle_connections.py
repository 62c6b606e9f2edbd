"""More clients than a process may open files, that hold connections to its probes, metrics and webhooks."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import pytest

from ocf.embedded import EmbeddedCluster
from ocf.embedded.http import serving, write_kubeconfig
from ocf.errors import InvalidError
from ocf.objects import Manifest, ObjectKey
from tests.runtime.operator.limited_process import DEFINITION, FILES
from tests.support import eventually

CLIENTS: Final = 1100
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


@asynccontextmanager
async def process(kubeconfig: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, dict[str, str]]]:
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-m", "tests.runtime.operator.limited_process", str(kubeconfig))
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


def shop(name: str, motto: str) -> Manifest:
    head = {"apiVersion": "example.com/v1", "kind": "Shop"}
    return {**head, "metadata": {"name": name, "namespace": "default"}, "spec": {"motto": motto}}


@pytest.mark.promise("idle-connections", runs="1100 clients on either port of a process that may open 1024 files")
async def test_an_operator_works_on_while_clients_hold_more_connections_than_it_may_open_files(
    tmp_path: Path, many_files: None
) -> None:
    """Probes are answered, and the log does not grow without end.

    https://github.com/hiero-ledger/hiero-block-node/issues/3168, https://github.com/academy-agents/academy/issues/386.
    """
    del many_files
    assert CLIENTS > FILES
    embedded, kubeconfig = EmbeddedCluster(), tmp_path / "kubeconfig"
    await embedded.apply(DEFINITION, field_manager="t")
    async with serving(embedded) as server:
        write_kubeconfig(server.kubeconfig(), kubeconfig)
        async with process(kubeconfig) as (child, urls):
            with ExitStack() as stack:
                for number in (1, 2):
                    await hold(urls["endpoints"], stack)
                    await hold(urls["webhooks"], stack)
                    await works(embedded, urls["endpoints"], f"shop-{number}")
                log = (await child.communicate(b""))[1].decode()
    lines = log.splitlines()
    assert child.returncode == 0
    assert sorted(line.split(":")[2] for line in lines) == ["endpoints", "webhooks"], log
    assert all("connections at a limit" in line for line in lines)


async def works(cluster: EmbeddedCluster, endpoints: str, name: str) -> None:
    """Check that probes and webhooks are answered, and that a new owner is reconciled."""
    async with aiohttp.ClientSession(endpoints) as session:
        for page in ("/healthz", "/readyz", "/metrics"):
            async with session.get(page) as response:
                assert response.status == 200
    with pytest.raises(InvalidError, match="must be inviting"):
        await cluster.create(shop(name, "closed"), field_manager="t")
    await cluster.create(shop(name, "come in"), field_manager="t")
    key = ObjectKey.of(shop(name, ""))

    async def status() -> Any:
        return (await cluster.get(key)).get("status", {}).get("seen")

    assert await eventually(status) == "come in"
