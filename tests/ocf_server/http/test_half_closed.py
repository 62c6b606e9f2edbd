"""Clients that close their side of a connection after the request, as `nc -N` does, get its response.

https://github.com/aio-libs/aiohttp/issues/3659, https://github.com/MDA2AV/ioxide/issues/164
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import pytest

from ocf.cluster.protocol import DEFAULT_LIST_OPTIONS, ListOptions, ObjectList
from ocf.http.connections import Connection
from ocf.testing import RecordingCluster
from ocf_server.http import serving
from ocf_server.http.server import HttpServer
from tests.support import settable_time

if TYPE_CHECKING:
    from ocf_server import EmbeddedCluster

MAPS: Final = "/api/v1/namespaces/shop/configmaps"
HOST: Final = "Host: 127.0.0.1\r\n"
BODY: Final = '{"metadata": {"name": "settings"}}'


async def exchange(server: HttpServer, *sent: str, after: asyncio.Event | None = None) -> bytes:
    """Send bytes and close this side; after an event, if any; return all bytes of the server."""
    place = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        for part in sent:
            writer.write(part.encode())
            await writer.drain()
        if after is not None:
            await after.wait()
        writer.write_eof()
        return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


def noticed_end(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Return an event that is set once a server has noticed that a client has closed its side."""
    ended = asyncio.Event()
    received = Connection.eof_received

    def noticed(connection: Connection) -> bool:
        ended.set()
        return received(connection)

    monkeypatch.setattr(Connection, "eof_received", noticed)
    return ended


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param([f"GET {MAPS} HTTP/1.1\r\n{HOST}\r\n"], 200, id="a list"),
        pytest.param([f"GET {MAPS} HTTP/1.0\r\n{HOST}\r\n"], 200, id="a list of HTTP 1.0"),
        pytest.param([f"GET {MAPS} HTTP/1.1\r\nConnection: keep-alive\r\n{HOST}\r\n"], 200, id="a list, kept alive"),
        pytest.param([f"GET {MAPS}/none HTTP/1.1\r\n{HOST}\r\n"], 404, id="what does not exist"),
        pytest.param(
            [f"POST {MAPS} HTTP/1.1\r\n{HOST}Content-Length: {len(BODY)}\r\n\r\n", BODY], 201, id="a create in parts"
        ),
    ],
)
async def test_a_request_is_answered(server: HttpServer, sent: list[str], status: int) -> None:
    answer = await exchange(server, *sent)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split(b" ")[1] == str(status).encode()
    assert json.loads(body)["kind"]


async def test_a_request_that_is_processed_is_answered(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = asyncio.Event(), noticed_end(monkeypatch)

    class Slow(RecordingCluster):
        async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
            begun.set()
            await ended.wait()
            return await super().list(api_version, kind, options)

    async with serving(cluster, wrap=Slow) as server:
        assert b" 200 OK" in await exchange(server, f"GET {MAPS} HTTP/1.1\r\n{HOST}\r\n", after=begun)


async def test_a_long_list_is_sent_as_a_whole(server: HttpServer, cluster: EmbeddedCluster) -> None:
    for number in range(8):
        metadata = {"name": f"big-{number}", "namespace": "shop"}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "x" * 900_000}}
        await cluster.create(manifest, field_manager="user")
    answer = await exchange(server, f"GET {MAPS} HTTP/1.1\r\n{HOST}\r\n")
    assert len(json.loads(answer.partition(b"\r\n\r\n")[2])["items"]) == 8


async def test_a_watch_ends(server: HttpServer) -> None:
    """A real API server ends it in the same way: with its headers and the end of the chunks."""
    answer = await exchange(server, f"GET {MAPS}?watch=1 HTTP/1.1\r\n{HOST}\r\n")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\n0\r\n\r\n")


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param("", id="nothing"),
        pytest.param("GET /api", id="half of the headers"),
        pytest.param(f"POST {MAPS} HTTP/1.1\r\n{HOST}Content-Length: 34\r\n\r\n{{", id="half of a body"),
    ],
)
async def test_half_of_a_request_ends_the_connection(
    server: HttpServer, sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the latest when the time for its body is over."""
    ended = noticed_end(monkeypatch)
    forward = settable_time(monkeypatch)
    answer = asyncio.create_task(exchange(server, sent))
    await ended.wait()
    while not answer.done():
        forward(1.0)
        await asyncio.sleep(0)
    assert b" 20" not in answer.result()
