"""The server with TLS: clients trust the authority of its kubeconfig, and no other."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest
import pytest_asyncio

from ocf.cluster.client import ApiServerCluster
from ocf.errors import ConfigError
from ocf.objects import ObjectKey
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from ocf_server.http.server import HttpServer
from tests.kubectl import Kubectl

DEFAULT = ObjectKey("v1", "Namespace", "default")


@pytest_asyncio.fixture
async def server() -> AsyncIterator[HttpServer]:
    """Return a server with TLS, also for the fixture kubectl."""
    async with serving(EmbeddedCluster(), tls=True) as running:
        yield running


async def test_our_client_reads(server: HttpServer, tmp_path: Path) -> None:
    write_kubeconfig(server.kubeconfig(), tmp_path / "kubeconfig")
    async with await ApiServerCluster.connect(str(tmp_path / "kubeconfig")) as cluster:
        assert (await cluster.get(DEFAULT))["metadata"]["name"] == "default"


async def test_kubectl_reads_and_watches(kubectl: Kubectl) -> None:
    assert (await kubectl("get", "namespace", "default", "-o", "name")).out == "namespace/default\n"
    async with kubectl.printing("get", "namespaces", "--watch", "-o", "name") as next_line:
        assert (await next_line()).startswith("namespace/")


async def test_a_client_without_the_authority_refuses_the_certificate(server: HttpServer) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(f"{server.url}/version")


async def test_two_servers_have_two_authorities(server: HttpServer) -> None:
    async with serving(EmbeddedCluster(), tls=True) as other:
        assert other.authority != server.authority


@pytest.mark.parametrize("tls", [False, True])
async def test_the_kubeconfig_says_how_the_server_is_trusted(tls: bool) -> None:
    async with serving(EmbeddedCluster(), tls=tls) as server:
        cluster = server.kubeconfig()["clusters"][0]["cluster"]
    assert urlsplit(cluster["server"]).scheme == ("https" if tls else "http")
    assert ("certificate-authority-data" in cluster, "insecure-skip-tls-verify" in cluster) == (tls, not tls)


async def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trustme", None)
    with pytest.raises(ConfigError, match=r"needs trustme: install it with pip install 'ocf\[testing\]'"):
        async with serving(EmbeddedCluster(), tls=True):
            pass
