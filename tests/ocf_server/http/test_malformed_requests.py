"""Requests that no HTTP client sends: a status of 400 and one line in the log, and no traceback."""

import asyncio
import logging
from urllib.parse import urlsplit

import pytest

from ocf_server.http.server import HttpServer
from tests.ocf_server.http.conftest import Client

HEAD = b"HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
MAPS = "/api/v1/namespaces/shop/configmaps"


async def reply_to(server: HttpServer, request: bytes) -> bytes:
    """Send bytes; return the bytes of the response."""
    place = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        writer.write(request)
        return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize(
    ("request_bytes", "problem"),
    [
        pytest.param(
            b"GET / " + HEAD + b"Content-Length: abc\r\n\r\n", "Invalid character in Content-Length", id="a length"
        ),
        pytest.param(b"GET /\xff " + HEAD + b"\r\n", "Invalid char in url path", id="a path"),
        pytest.param(b"GET / " + HEAD + b"Bad Header: x\r\n\r\n", "Invalid header token", id="a header"),
    ],
)
async def test_the_log_has_one_line(
    request_bytes: bytes, problem: str, server: HttpServer, caplog: pytest.LogCaptureFixture
) -> None:
    assert (await reply_to(server, request_bytes)).startswith(b"HTTP/1.0 400 Bad Request\r\n")
    [record] = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert (record.getMessage(), record.exc_info) == (f"Error handling request from 127.0.0.1: {problem}", None)


async def test_a_long_selector_is_accepted(ask: Client) -> None:
    names = ",".join(f"team-{number}" for number in range(5_000))
    reply = await ask("GET", f"{MAPS}?labelSelector=team%20in%20({names})")
    assert (reply.status, reply.json["items"]) == (200, [])
