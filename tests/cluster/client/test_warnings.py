"""Warnings of an API server are logged, each text once."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from aiohttp import web

from ocf.cluster.client import ApiServerCluster, RestConfig, connection
from ocf.cluster.client.connection import Connection
from ocf.cluster.client.requests import HttpRequest
from ocf.cluster.client.responses import read_warnings
from ocf.errors import ForbiddenError
from ocf.objects import Manifest
from ocf.testing.envtest import ControlPlane
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig

if TYPE_CHECKING:
    from tests.cluster.client.conftest import Server

LOGGER: Final = "ocf.cluster.client.connection"


@pytest.mark.parametrize(
    ("headers", "texts"),
    [
        pytest.param([], [], id="none"),
        pytest.param(['299 - "a"', '299 - "b"'], ["a", "b"], id="one in each header"),
        pytest.param(['299 - "a", 299 - "b, c", 299 agent "d"'], ["a", "b, c", "d"], id="several in one header"),
        pytest.param([r'299 - "say \"x\" and \\"'], ['say "x" and \\'], id="quotes and backslashes"),
        pytest.param(['299 - "a" "Wed, 21 Oct 2015 07:28:00 GMT"'], ["a"], id="with a date"),
        pytest.param(['110 proxy "response is stale"'], [], id="of a proxy"),
        pytest.param(['299 - ""', "299", '299 - "open', "nonsense"], [], id="no warning"),
        pytest.param(['299 - "a\x1b[31mb\x85"'], ["a[31mb"], id="control characters"),
    ],
)
def test_the_texts_of_headers(headers: list[str], texts: list[str]) -> None:
    assert [*read_warnings(headers)] == texts


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record for record in caplog.records if record.name == LOGGER]
    assert all(record.levelno == logging.WARNING for record in found)
    return [record.getMessage() for record in found]


@pytest.fixture
async def sending(config: RestConfig) -> AsyncIterator[Connection]:
    opened = Connection(config, timeout=600, idle_timeout=600)
    yield opened
    await opened.close()


def warn_in(server: Server, status: int, *texts: str) -> None:
    async def handle(request: web.Request) -> web.Response:
        del request
        answer = web.json_response({"kind": "Status", "message": "no", "reason": "Forbidden"}, status=status)
        for text in texts:
            answer.headers.add("Warning", f'299 - "{text}"')
        return answer

    server.handle("GET", "/x", handle)


async def test_each_text_is_logged_once(server: Server, sending: Connection, caplog: pytest.LogCaptureFixture) -> None:
    for texts in (["old"], ["old", "odd"], ["odd"]):
        warn_in(server, 200, *texts)
        await sending.send(HttpRequest("GET", "/x"))
    assert warned(caplog) == ["the API server warns: old (GET /x)", "the API server warns: odd (GET /x)"]


async def test_a_refusal_has_warnings_too(
    server: Server, sending: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    warn_in(server, 403, "think twice")
    with pytest.raises(ForbiddenError):
        await sending.send(HttpRequest("GET", "/x"))
    assert warned(caplog) == ["the API server warns: think twice (GET /x)"]


async def test_the_oldest_texts_are_forgotten(
    server: Server, sending: Connection, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts with names of objects are many, and a process lives for months."""
    monkeypatch.setattr(connection, "_MAX_WARNINGS", 2)
    for text in "abca":
        warn_in(server, 200, text)
        await sending.send(HttpRequest("GET", "/x"))
    assert [text.split()[4] for text in warned(caplog)] == ["a", "b", "c", "a"]


@pytest.fixture(params=["embedded", "real"])
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[ApiServerCluster, str]]:
    if request.param == "embedded":
        async with serving(EmbeddedCluster(namespaces=["shop"])) as server:
            write_kubeconfig(server.kubeconfig(), tmp_path / "kubeconfig")
            async with await ApiServerCluster.connect(tmp_path / "kubeconfig") as found:
                yield found, "shop"
        return
    plane: ControlPlane = request.getfixturevalue("envtest_plane")
    with plane.namespace() as namespace:
        async with await plane.cluster() as found:
            yield found, namespace


async def test_a_misspelt_field_is_logged(
    cluster: tuple[ApiServerCluster, str], caplog: pytest.LogCaptureFixture
) -> None:
    """The API server drops the field, and says so only in a header.

    Asked for in https://github.com/kubernetes-sigs/controller-runtime/issues/1150; one text was logged 360 times in 40
    minutes in https://github.com/prometheus/prometheus/pull/17829.
    """
    client, namespace = cluster
    misspelt: dict[str, Any] = {"imutable": True}
    for name in "ab":
        metadata = {"name": name, "namespace": namespace}
        manifest: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **misspelt}
        await client.create(manifest, field_manager="test")
    path = f"POST /api/v1/namespaces/{namespace}/configmaps"
    assert warned(caplog) == [f'the API server warns: unknown field "imutable" ({path})']
