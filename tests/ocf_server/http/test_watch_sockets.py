"""Watches over a WebSocket, as fabric8's client for Java opens all of its watches.

The framing and the answers are those of a real API server (1.36.3). Clients send an Origin; a server that compares it
with Host refused those that write it otherwise (https://github.com/fabric8io/kubernetes-client/issues/1667).
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from ocf.objects import Manifest
from ocf_server import EmbeddedCluster
from ocf_server.http import serving
from ocf_server.http.server import HttpServer

PATH = "/api/v1/namespaces/shop/configmaps"
PROTOBUF = "application/vnd.kubernetes.protobuf"
NORMAL = 1000


def config_map(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}}


@asynccontextmanager
async def socket(server: HttpServer, query: str, **headers: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{server.url}{PATH}?watch=1&{query}", headers={"Origin": server.url, **headers}) as found,
    ):
        yield found


async def test_each_event_is_a_message_as_it_happens(server: HttpServer, cluster: EmbeddedCluster) -> None:
    await cluster.create(config_map("a"), field_manager="test")
    async with socket(server, "resourceVersion=0") as watch:
        first = json.loads(await watch.receive_str())
        assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "a")
        await watch.send_str("what a client sends is ignored")
        await cluster.create(config_map("b"), field_manager="test")
        assert json.loads(await watch.receive_str())["object"]["metadata"]["name"] == "b"


async def test_a_message_in_protobuf_has_no_length_before_it(server: HttpServer, cluster: EmbeddedCluster) -> None:
    await cluster.create(config_map("a"), field_manager="test")
    async with socket(server, "resourceVersion=0", Accept=PROTOBUF) as watch:
        assert (await watch.receive_bytes()).startswith(b"\n\x05ADDED\x12")


async def test_a_watch_ends_with_its_time(server: HttpServer) -> None:
    async with socket(server, "timeoutSeconds=-1") as watch:
        message = await watch.receive()
        assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, NORMAL)


async def test_a_watch_ends_with_its_client(server: HttpServer, cluster: EmbeddedCluster) -> None:
    waiting = cluster._registry.store._waiting
    async with socket(server, "resourceVersion=0"), asyncio.timeout(600):
        while not waiting:  # noqa: ASYNC110 (no event to wait for)
            await asyncio.sleep(0.01)
    async with asyncio.timeout(600):
        while waiting:  # noqa: ASYNC110 (no event to wait for)
            await asyncio.sleep(0.01)


async def test_a_watch_ends_with_its_server() -> None:
    async with serving(EmbeddedCluster(namespaces=["shop"])) as server:
        opened = socket(server, "resourceVersion=0")
        watch = await opened.__aenter__()
    assert (await watch.receive()).type is aiohttp.WSMsgType.CLOSE
    await opened.__aexit__(None, None, None)


@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [
        pytest.param("resourceVersion=x", {}, 500, id="a watch that cannot start"),
        pytest.param("", {"Origin": "https://example.com"}, 403, id="a page of another site"),
        pytest.param("", {"Host": "example.com"}, 403, id="a rebound name"),
        pytest.param("", {"Sec-WebSocket-Version": "3"}, 400, id="another version of the protocol"),
    ],
)
async def test_what_is_refused_has_a_normal_response(
    query: str, headers: dict[str, str], status: int, server: HttpServer
) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with socket(server, query, **headers):
            pass
    assert refused.value.status == status
