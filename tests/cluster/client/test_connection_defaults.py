"""No default of the HTTP library decides what is sent, where to, and which answers are read."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from ocf.cluster import WatchOptions
from ocf.cluster.client import ApiServerCluster, Impersonation, RestConfig
from ocf.cluster.client.connection import Connection, Resolver
from ocf.cluster.client.requests import HttpRequest
from ocf.cluster.client.responses import LineBuffer
from ocf.errors import ApiError, BadRequestError, ServerError
from tests.support import serving_locally

if TYPE_CHECKING:
    from tests.cluster.client.conftest import Server

GET = HttpRequest("GET", "/x")
WATCH = WatchOptions(namespace="shop", resource_version="1")
CONFIG_MAPS = "/api/v1/namespaces/shop/configmaps"


@pytest.fixture
async def connection(config: RestConfig) -> AsyncIterator[Connection]:
    connection = Connection(config, timeout=600, idle_timeout=600)
    yield connection
    await connection.close()


@pytest.fixture
async def other() -> AsyncIterator[tuple[str, list[str]]]:
    """Run another server; yields its address and the requests to it."""
    seen: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        seen.append(f"{request.method} {request.path}")
        return web.json_response({})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    async with serving_locally(app) as address:
        yield address, seen


# The Authorization header alone would not be sent to another host, but the body, the impersonated user and the client
# certificate would: https://github.com/aio-libs/aiohttp/pull/12275, https://github.com/ktorio/ktor/issues/1467
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_another_server_is_an_error_and_nothing_is_sent_there(
    server: Server, other: tuple[str, list[str]], status: int, method: str
) -> None:
    address, seen = other
    server.answer(method, "/x", "moved", status=status, headers={"Location": f"{address}/login?token=s3cr3t"})
    config = RestConfig(host=server.url, bearer_token="t0ken", impersonate=Impersonation("jane"))
    connection = Connection(config, timeout=600, idle_timeout=600)
    body: dict[str, Any] | None = None if method == "GET" else {"data": {}}
    with pytest.raises(BadRequestError) as caught:
        await connection.send(HttpRequest(method, "/x", body=body))
    with pytest.raises(BadRequestError, match="redirected"):
        await connection.stream(HttpRequest(method, "/x", body=body))
    await connection.close()

    problem = f"{method} /x: HTTP {status}, redirected to {address}; an API server does not redirect: check its address"
    assert (str(caught.value), caught.value.code, seen) == (problem, status, [])


@pytest.mark.parametrize(
    ("location", "target"),
    [
        pytest.param("/login", "http://127.0.0.1", id="the same server"),
        pytest.param("//user:s3cr3t@example.com:444/x", "http://example.com:444", id="user and password"),
        pytest.param("https://[::1]:6443/", "https://[::1]:6443", id="IPv6"),
        pytest.param("https://[::1/", "an unknown address", id="not an address"),
        pytest.param(None, "an unknown address", id="none"),
    ],
)
async def test_the_error_of_a_redirect_names_the_server_alone(
    server: Server, connection: Connection, location: str | None, target: str
) -> None:
    server.answer("GET", "/x", "", status=302, headers={"Location": location} if location is not None else None)
    with pytest.raises(ApiError, match="HTTP 302, redirected to ") as caught:
        await connection.send(GET)

    assert f"redirected to {target}" in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


# A write whose answer cannot be read has been made; client-go reads 10 MB of headers.
@pytest.mark.parametrize(
    "warnings",
    [
        pytest.param(["x" * 4096], id="longest warning of kube-apiserver"),
        pytest.param(["\\x00" * 4096], id="longest warning of kube-apiserver, each character escaped"),
        pytest.param(list("x" * 4096), id="most warnings of kube-apiserver"),
        pytest.param(["unknown field"] * 300, id="more than the library accepts by default"),
    ],
)
async def test_an_answer_with_warnings_is_read(server: Server, connection: Connection, warnings: list[str]) -> None:
    async def handler(_: web.Request) -> web.StreamResponse:
        response = web.json_response({"ok": True})
        for text in warnings:
            response.headers.add("Warning", f'299 - "{text}"')
        return response

    server.handle("POST", "/x", handler)

    assert await connection.send(HttpRequest("POST", "/x", body={})) == {"ok": True}


async def test_requests_accept_json_and_gzip_whatever_is_installed(server: Server, connection: Connection) -> None:
    """The library would add br and zstd where a package for them is installed."""
    server.answer("GET", "/x", {})
    await connection.send(GET)

    accepted = {name: value for name, value in server.last.headers.items() if name.startswith("accept")}
    assert accepted == {"accept": "application/json", "accept-encoding": "gzip"}


async def test_no_cookie_is_kept(server: Server, connection: Connection) -> None:
    """As by client-go; a load balancer or a login page sets some."""
    server.answer("GET", "/x", {}, headers={"Set-Cookie": "session=1; Path=/"})
    await connection.send(GET)
    await connection.send(GET)

    assert "cookie" not in server.last.headers


def _compressed(size: int, *, status: int) -> Any:
    async def handler(_: web.Request) -> web.StreamResponse:
        body = gzip.compress(b" " * size)
        return web.Response(status=status, body=body, headers={"Content-Encoding": "gzip"})

    return handler


async def test_the_limit_of_an_answer_is_that_of_its_content_uncompressed(
    server: Server, connection: Connection
) -> None:
    server.handle("GET", "/x", _compressed(2**24, status=200))
    with pytest.raises(ServerError, match="HTTP 200, but the answer has more than 100000 bytes"):
        await connection.send(GET, most_bytes=100_000)


@pytest.mark.parametrize("most_bytes", [None, 100_000])
async def test_the_body_of_an_error_has_a_limit_of_its_own(
    server: Server, connection: Connection, most_bytes: int | None
) -> None:
    server.handle("GET", "/x", _compressed(2**24, status=403))
    with pytest.raises(ServerError, match="HTTP 403, but the answer has more than 4194304 bytes"):
        await connection.send(GET, most_bytes=most_bytes)


async def test_an_event_without_an_end_is_an_error(server: Server, cluster: ApiServerCluster) -> None:
    """It would fill the memory; the limit is that of client-go."""

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b'{"type":' + b" " * 2**20)

    server.handle("GET", CONFIG_MAPS, drip)
    with pytest.raises(ServerError, match=f"GET {CONFIG_MAPS}: an event of the watch has more than 16777216 bytes"):
        await asyncio.wait_for(anext(cluster.watch("v1", "ConfigMap", WATCH)), 600)


@given(pieces=st.lists(st.binary(max_size=6) | st.sampled_from([b"\n", b"{}\n", b"a\nb"]), max_size=12))
def test_pending_is_the_length_of_the_last_line(pieces: list[bytes]) -> None:
    lines = LineBuffer()
    for piece in pieces:
        lines.feed(piece)

    assert lines.pending == len(b"".join(pieces).rpartition(b"\n")[2])


class _Names:
    """Resolves one name to some addresses, in order."""

    def __init__(self, *hosts: str) -> None:
        self.hosts = hosts
        self.asked = 0

    def getaddrinfo(self, host: str, port: int, *_: object, **__: object) -> list[Any]:
        assert host == "api.example.com"
        self.asked += 1
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 0, "", (each, port, 0, 0))
            if ":" in each
            else (socket.AF_INET, socket.SOCK_STREAM, 0, "", (each, port))
            for each in self.hosts
        ]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> _Names:
    names = _Names("127.0.0.1")
    monkeypatch.setattr("socket.getaddrinfo", names.getaddrinfo)
    return names


@pytest.mark.parametrize(
    "hosts",
    [
        pytest.param(("127.0.0.9", "127.0.0.1"), id="the first address refuses connections"),
        pytest.param(("::1", "127.0.0.1"), id="IPv6 first, the server has IPv4"),
    ],
)
async def test_all_addresses_of_a_name_are_tried(server: Server, names: _Names, hosts: tuple[str, ...]) -> None:
    names.hosts = hosts
    server.answer("GET", "/x", {"ok": True})
    connection = Connection(RestConfig(host=_named(server)), timeout=600, idle_timeout=600)
    assert await connection.send(GET) == {"ok": True}
    await connection.close()


async def test_a_changed_address_is_found_within_ten_seconds(
    server: Server, names: _Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a Service, or of a load balancer, that was replaced."""
    now = 0.0
    monkeypatch.setattr("aiohttp.connector.monotonic", lambda: now)
    names.hosts = ("127.0.0.9",)
    server.answer("GET", "/x", {"ok": True})
    connection = Connection(RestConfig(host=_named(server)), timeout=600, idle_timeout=600)
    with pytest.raises(ServerError, match="no answer"):
        await connection.send(GET)
    names.hosts = ("127.0.0.1",)
    now = 9.0
    with pytest.raises(ServerError, match="no answer"):
        await connection.send(GET)
    now = 11.0
    assert await connection.send(GET) == {"ok": True}
    await connection.close()

    assert names.asked == 2


async def test_functions_that_block_all_threads_of_asyncio_keep_no_name_from_being_resolved(
    server: Server, names: _Names
) -> None:
    """As handlers that wait for another service; requests share no threads with them."""
    released = threading.Event()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    blocking = asyncio.create_task(asyncio.to_thread(released.wait))
    server.answer("GET", "/x", {"ok": True})
    connection = Connection(RestConfig(host=_named(server)), timeout=60, idle_timeout=60)
    try:
        assert await connection.send(GET) == {"ok": True}
    finally:
        released.set()
        await blocking
        await connection.close()

    assert names.asked == 1


async def test_a_link_local_address_keeps_its_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    address = (socket.AF_INET6, socket.SOCK_STREAM, 0, "", ("fe80::1", 443, 0, 1))
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [address])
    resolver = Resolver()
    (found,) = await resolver.resolve("api.example.com", 443)
    await resolver.close()

    assert found["host"].startswith("fe80::1%")
    assert (found["hostname"], found["port"]) == ("api.example.com", 443)


async def test_a_lookup_that_hangs_times_out_and_delays_no_close(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: released.wait())
    connection = Connection(RestConfig(host="http://api.example.com"), timeout=0.05, idle_timeout=1)
    try:
        with pytest.raises(ServerError, match="GET /x: no answer: time is up"):
            await connection.send(GET)
        await connection.close()
        assert not released.is_set()
    finally:
        released.set()


async def test_an_unknown_name_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr("socket.getaddrinfo", unknown)
    connection = Connection(RestConfig(host="http://api.example.com"), timeout=600, idle_timeout=600)
    with pytest.raises(ServerError, match=r"GET /x: no answer: .*api\.example\.com.*Name or service not known"):
        await connection.send(GET)
    await connection.close()


def _named(server: Server) -> str:
    return server.url.replace("127.0.0.1", "api.example.com")
