"""A request is sent once and returns an answer or raises an ApiError."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web

from ocf.cluster.client import RestConfig
from ocf.cluster.client.connection import Connection
from ocf.cluster.client.requests import HttpRequest
from ocf.cluster.client.rest_config import ExecConfig
from ocf.errors import BadRequestError, ConfigError, ForbiddenError, ServerError

if TYPE_CHECKING:
    from tests.cluster.client.conftest import Server

GET = HttpRequest("GET", "/x")


@pytest.fixture
async def connection(config: RestConfig) -> AsyncIterator[Connection]:
    connection = Connection(config, timeout=600, idle_timeout=600)
    yield connection
    await connection.close()


async def _hang(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def _hang_in_body(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(status=500 if "refused" in request.path else 200, headers={"Content-Length": "10"})
    await response.prepare(request)
    await response.write(b"{")
    return await _hang(request)


async def _break(request: web.Request) -> web.StreamResponse:
    assert request.transport
    request.transport.abort()
    return web.Response()


async def _break_in_body(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"token": "s3cr3t"')
    return await _break(request)


@pytest.mark.parametrize("times", [{"timeout": 0}, {"timeout": -1}, {"idle_timeout": 0}, {"timeout": float("nan")}])
def test_timeouts_must_be_positive(config: RestConfig, times: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="positive seconds"):
        Connection(config, **{"timeout": 1, "idle_timeout": 1, **times})


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST", "PATCH"])
async def test_no_request_is_sent_twice(server: Server, connection: Connection, method: str) -> None:
    """Also on a reused connection, where the pool would send some methods again."""
    server.answer("GET", "/x", {})
    server.handle(method, "/broken", _break)
    await connection.send(GET)
    with pytest.raises(ServerError, match=f"{method} /broken: no answer: ") as caught:
        await connection.send(HttpRequest(method, "/broken", body=None if method == "GET" else {}))

    assert len(server.asked("/broken")) == 1
    assert caught.value.code == 0
    assert isinstance(caught.value.__cause__, aiohttp.ClientError)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_a_lost_answer_is_not_requested_again(server: Server, connection: Connection, status: int) -> None:
    server.answer("GET", "/x", "busy", status=status, headers={"Retry-After": "0"})
    with pytest.raises(ServerError if status >= 500 else Exception):
        await connection.send(GET)

    assert len(server.seen) == 1


async def test_a_refused_connection_raises_a_server_error() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    connection = Connection(RestConfig(host=f"http://127.0.0.1:{port}"), timeout=600, idle_timeout=600)
    with pytest.raises(ServerError, match=f"GET /x: no answer: .*127.0.0.1:{port}") as caught:
        await connection.send(GET)
    await connection.close()

    assert caught.value.code == 0
    assert isinstance(caught.value.__cause__, aiohttp.ClientConnectorError)


@pytest.mark.parametrize("handler", [_hang, _hang_in_body], ids=["before the answer", "within the answer"])
async def test_a_request_times_out(server: Server, config: RestConfig, handler: Any) -> None:
    server.handle("GET", "/x", handler)
    connection = Connection(config, timeout=0.05, idle_timeout=1)
    with pytest.raises(ServerError, match="GET /x: no answer: time is up") as caught:
        await connection.send(GET)
    await connection.close()

    assert caught.value.code == 0
    assert isinstance(caught.value.__cause__, TimeoutError)


@pytest.mark.parametrize("handler", [_hang, _hang_in_body], ids=["before the answer", "within the error"])
async def test_opening_a_stream_times_out(server: Server, config: RestConfig, handler: Any) -> None:
    """Independently of the idle timeout of the stream."""
    server.handle("GET", "/refused", handler)
    connection = Connection(config, timeout=0.05, idle_timeout=3600)
    with pytest.raises(ServerError, match="GET /refused: no answer: time is up"):
        await asyncio.wait_for(connection.stream(HttpRequest("GET", "/refused")), 600)
    await connection.close()


async def test_a_truncated_answer_raises_a_server_error(server: Server, connection: Connection) -> None:
    server.handle("GET", "/x", _break_in_body)
    with pytest.raises(ServerError, match="GET /x: no answer") as caught:
        await connection.send(GET)

    assert caught.value.code == 0
    assert "s3cr3t" not in str(caught.value)


async def test_an_answer_that_is_not_http_is_not_quoted() -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"s3cr3t s3cr3t\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as listening:
        config = RestConfig(host=f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
        connection = Connection(config, timeout=600, idle_timeout=600)
        with pytest.raises(ServerError) as caught:
            await connection.send(GET)
        await connection.close()

    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("status", [200, 403])
async def test_a_body_that_is_not_json_is_not_quoted(server: Server, connection: Connection, status: int) -> None:
    server.answer("GET", "/x", "<html>s3cr3t</html>", status=status)
    with pytest.raises(ServerError if status == 200 else ForbiddenError) as caught:
        await connection.send(GET)

    assert (caught.value.code, "s3cr3t" in str(caught.value)) == (status, False)


async def test_no_message_contains_the_token(server: Server) -> None:
    config = RestConfig(host=server.url, bearer_token="s3cr3t\n")
    connection = Connection(config, timeout=600, idle_timeout=600)
    with pytest.raises(BadRequestError, match="cannot be sent") as caught:
        await connection.send(GET)
    await connection.close()

    assert ("s3cr3t" in str(caught.value), server.seen) == (False, [])


def _endless() -> dict[str, Any]:
    manifest: dict[str, Any] = {"kind": "ConfigMap"}
    manifest["data"] = [manifest]
    return manifest


def _deep() -> dict[str, Any]:
    manifest: dict[str, Any] = {}
    for _ in range(100_000):
        manifest = {"data": manifest}
    return manifest


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"data": b"x"}, id="bytes"),
        pytest.param({"data": datetime.fromtimestamp(0, UTC)}, id="time"),
        pytest.param({"data": {"a"}}, id="set"),
        pytest.param({("a", "b"): "c"}, id="key that is not a string"),
        pytest.param(_endless(), id="object that contains itself"),
        pytest.param(_deep(), id="too many levels"),
    ],
)
async def test_a_body_that_is_not_json_is_not_sent(server: Server, connection: Connection, body: Any) -> None:
    with pytest.raises(BadRequestError, match="PUT /x: cannot be sent: "):
        await connection.send(HttpRequest("PUT", "/x", body=body))

    assert server.seen == []


async def test_unreadable_credentials_raise_a_server_error(server: Server, tmp_path: Path) -> None:
    config = RestConfig(host=server.url, bearer_token_file=str(tmp_path / "missing"))
    connection = Connection(config, timeout=600, idle_timeout=600)
    with pytest.raises(ServerError, match=r"GET /x: not sent: credentials could not be read: token file .*missing: No"):
        await connection.send(GET)
    await connection.close()

    assert server.seen == []


async def test_reading_credentials_times_out(config: RestConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin may wait for input of a user."""

    async def hang(_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("ocf.cluster.client.credentials.run_plugin", hang)
    plugin = ExecConfig(command="plugin", api_version="client.authentication.k8s.io/v1")
    connection = Connection(replace(config, bearer_token="", exec=plugin), timeout=0.05, idle_timeout=1)
    with pytest.raises(ServerError, match="GET /x: no answer: time is up"):
        await asyncio.wait_for(connection.send(GET), 600)
    await connection.close()


async def test_cancelling_a_request_raises_cancelled_error(server: Server, connection: Connection) -> None:
    """The connection is closed, and the next request works."""
    arrived = asyncio.Event()

    async def hang(request: web.Request) -> web.StreamResponse:
        arrived.set()
        return await _hang(request)

    server.handle("GET", "/slow", hang)
    server.answer("GET", "/x", {"ok": True})
    request = asyncio.create_task(connection.send(HttpRequest("GET", "/slow")))
    await asyncio.wait_for(arrived.wait(), 600)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request

    assert await connection.send(GET) == {"ok": True}


async def test_a_stream_has_no_total_timeout(
    server: Server, config: RestConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open stream has only an idle timeout, so a long watch is not interrupted."""
    times: list[aiohttp.ClientTimeout] = []
    call = aiohttp.ClientSession.request

    async def noting(*args: Any, **kwargs: Any) -> Any:
        times.append(kwargs["timeout"])
        return await call(*args, **kwargs)

    monkeypatch.setattr(aiohttp.ClientSession, "request", noting)
    server.answer("GET", "/x", {})
    connection = Connection(config, timeout=10, idle_timeout=20)
    stream = await connection.stream(GET)
    stream.close()
    await connection.close()

    assert times == [aiohttp.ClientTimeout(total=None, sock_read=20)]


async def test_a_closed_stream_is_released(server: Server, connection: Connection) -> None:
    """An operator watches for months; closed streams must not accumulate."""
    server.answer("GET", "/x", {})
    for _ in range(3):
        (await connection.stream(GET)).close()

    assert connection._streams == set()


async def test_connections_are_reused(server: Server, connection: Connection) -> None:
    """Also after an error answer."""
    peers = set()

    async def note(request: web.Request) -> web.StreamResponse:
        assert request.transport
        peers.add(request.transport.get_extra_info("peername"))
        return web.json_response({}, status=200 if len(server.seen) % 2 else 500)

    server.handle("GET", "/x", note)
    for _ in range(4):
        try:
            await connection.send(GET)
        except ServerError:
            continue

    assert len(peers) == 1


@pytest.mark.parametrize("length", [100, 1_000_000])
async def test_an_answer_that_is_longer_than_allowed_is_an_error(
    server: Server, connection: Connection, length: int
) -> None:
    server.answer("GET", "/x", {"text": "s" * length})
    with pytest.raises(ServerError, match="GET /x: HTTP 200, but the answer has more than 99 bytes"):
        await connection.send(GET, most_bytes=99)


async def test_an_answer_that_is_not_longer_than_allowed_is_read(server: Server, connection: Connection) -> None:
    server.answer("GET", "/x", {"text": "s" * 100_000})
    assert await connection.send(GET, most_bytes=200_000) == {"text": "s" * 100_000}


@pytest.mark.parametrize("suffix", ["", "/"])
async def test_the_address_may_have_a_path(server: Server, suffix: str) -> None:
    """As of a proxy that serves several clusters."""
    server.answer("GET", "/k8s/clusters/a/x", {"ok": True})
    config = RestConfig(host=f"{server.url}/k8s/clusters/a{suffix}")
    connection = Connection(config, timeout=600, idle_timeout=600)
    assert await connection.send(GET) == {"ok": True}
    await connection.close()
