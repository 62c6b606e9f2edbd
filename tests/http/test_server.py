"""Clients that let a server wait: real sockets, and a clock that the tests set forward."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sized
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from typing import Final, TypeAlias

import pytest
import trustme
from aiohttp import web

from ocf.errors import ConfigError
from ocf.http.connections import Connections
from ocf.http.limits import Limits
from ocf.http.server import ListeningServer, serving_app
from tests.support import Forward, settable_time, until

HOST: Final = "127.0.0.1"
MOST: Final = 8
LIMITS: Final = Limits(connections=MOST)
PROBE: Final = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
KEPT: Final = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
BIG: Final = 16 * 2**20


@pytest.fixture
async def forward(monkeypatch: pytest.MonkeyPatch) -> Forward:
    return settable_time(monkeypatch)


class App:
    """An application whose handlers wait for the test."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.working = 0
        self.cancelled = 0
        self.app = web.Application()
        self.app.router.add_get("/healthz", self.healthz)
        self.app.router.add_get("/slow", self.slow)
        self.app.router.add_get("/big", self.big)
        self.app.router.add_post("/", self.body)

    async def healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def slow(self, _: web.Request) -> web.Response:
        self.working += 1
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return web.Response(text="done")

    async def big(self, _: web.Request) -> web.Response:
        return web.Response(body=bytes(BIG))

    async def body(self, request: web.Request) -> web.Response:
        self.working += 1
        return web.Response(text=str(len(await request.read())))


@asynccontextmanager
async def served(
    limits: Limits = LIMITS, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[App, ListeningServer]]:
    app = App()
    serving = serving_app(app.app, limits, name="endpoints", address=(HOST, 0), tls=tls, shutdown_timeout=0.01)
    async with serving as server:
        yield app, server


async def connect(server: ListeningServer, sent: bytes = b"", *, receive_buffer: int = 0) -> socket.socket:
    """Return a connection that the server has accepted, with what was sent on it."""
    loop = asyncio.get_running_loop()
    client = socket.socket()
    client.settimeout(0)
    if receive_buffer:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    await loop.sock_connect(client, (server.host, server.port))
    if sent:
        await loop.sock_sendall(client, sent)
    return client


async def answer(client: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    loop, found = asyncio.get_running_loop(), b""
    try:
        while chunk := await loop.sock_recv(client, 2**16):
            found += chunk
    except ConnectionError:  # it was closed with unread data
        pass
    return found


async def response(client: socket.socket) -> bytes:
    """Read the response to a request of a connection that is kept."""
    found = b""
    while not found.endswith(b"ok"):
        found += await asyncio.get_running_loop().sock_recv(client, 2**16)
    return found


async def probe(server: ListeningServer) -> bytes:
    with closing(await connect(server, PROBE)) as client:
        return await answer(client)


def has_length(found: Sized, length: int) -> bool:
    return len(found) == length


async def turns() -> None:
    """Let the server do all that it can do now."""
    for _ in range(10):
        await asyncio.sleep(0)


async def is_open(client: socket.socket) -> bool:
    """Return whether the server has kept a connection."""
    await turns()
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(HOST).configure_cert(context)
    return context


Hold: TypeAlias = Callable[[ListeningServer], Awaitable[socket.socket]]


async def one_byte_at_a_time(server: ListeningServer) -> socket.socket:
    client = await connect(server)
    for byte in PROBE[:20]:
        await asyncio.get_running_loop().sock_sendall(client, bytes([byte]))
        await asyncio.sleep(0)
    return client


async def kept_alive(server: ListeningServer) -> socket.socket:
    client = await connect(server, KEPT)
    await response(client)
    return client


async def half_of_a_second_request(server: ListeningServer) -> socket.socket:
    client = await kept_alive(server)
    await asyncio.get_running_loop().sock_sendall(client, KEPT[:20])
    return client


async def unread(server: ListeningServer) -> socket.socket:
    client = await connect(server, KEPT.replace(b"/healthz", b"/big"), receive_buffer=4096)
    found = b""
    while b"\0" not in found:
        found = await asyncio.get_running_loop().sock_recv(client, 100)
    return client


HOLDS: Final[dict[str, Hold]] = {
    "nothing is sent": connect,
    "half a header": lambda server: connect(server, PROBE[:20]),
    "one byte at a time": one_byte_at_a_time,
    "a response, then no further request": kept_alive,
    "a response, then half a request": half_of_a_second_request,
    "a body that does not arrive": lambda server: connect(
        server, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"
    ),
    "the body of a request that has none": lambda server: connect(
        server, b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
    ),
    "the body of a path that is not there": lambda server: connect(
        server, b"POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
    ),
    "a response that is not read": unread,
}


@pytest.mark.parametrize("hold", HOLDS.values(), ids=HOLDS)
async def test_probes_are_answered_while_clients_hold_connections(hold: Hold) -> None:
    """Keep-alive connections of probes took all places: https://github.com/hiero-ledger/hiero-block-node/issues/3168."""
    async with served() as (_, server):
        held = [await hold(server) for _ in range(3 * MOST)]
        assert (await probe(server)).startswith(b"HTTP/1.1 200")
        assert server.connections <= MOST
    for client in held:
        client.close()


async def test_probes_are_answered_while_tls_handshakes_are_not_completed(
    forward: Forward, authority: trustme.CA, tls: ssl.SSLContext
) -> None:
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with served(tls=tls) as (_, server):
        held = [await connect(server, sent) for sent in (b"", b"\x16\x03\x01") * MOST]
        reader, writer = await asyncio.open_connection(server.host, server.port, ssl=trusting, server_hostname=HOST)
        writer.write(PROBE)
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()
        await writer.wait_closed()
        forward(40)
        for client in held:
            await answer(client)
            client.close()
        assert server.connections == 0


async def test_the_connection_that_has_waited_longest_is_closed_first() -> None:
    async with served() as (_, server):
        held = [await connect(server) for _ in range(2)]
        held += [await kept_alive(server)]
        held += [await connect(server) for _ in range(MOST - 3)]
        assert (await probe(server)).startswith(b"HTTP/1.1 200")
        assert [await is_open(client) for client in held] == [False] + [True] * (MOST - 1)
        more = await connect(server), await connect(server)
        assert await answer(held[1]) == b""
        assert [await is_open(client) for client in (*held[2:], *more)] == [True] * MOST
    for client in (*held, *more):
        client.close()


async def test_requests_that_are_processed_are_never_closed_for_new_ones(
    forward: Forward, caplog: pytest.LogCaptureFixture
) -> None:
    slow = PROBE.replace(b"/healthz", b"/slow")
    async with served() as (app, server):
        working = [await connect(server, slow) for _ in range(MOST - 1)]
        await until(lambda: app.working == MOST - 1)
        for _ in range(MOST):
            assert (await probe(server)).startswith(b"HTTP/1.1 200")
        working.append(await connect(server, slow))
        await until(lambda: app.working == MOST)
        forward(1000)
        assert await probe(server) == b""
        assert [record.getMessage() for record in caplog.records] == [
            f"endpoints: connections at a limit: 1 refused, as all {MOST} are processing requests"
        ]
        app.release.set()
        assert [(await answer(client)).endswith(b"done") for client in working] == [True] * MOST
        assert (await probe(server)).startswith(b"HTTP/1.1 200")
    for client in working:
        client.close()


@pytest.mark.parametrize(
    ("name", "seconds", "line"),
    [
        pytest.param("nothing is sent", 32, "without complete headers after 32 s", id="no request"),
        pytest.param("half a header", 32, "without complete headers after 32 s", id="half a header"),
        pytest.param("one byte at a time", 32, "without complete headers after 32 s", id="one byte at a time"),
        pytest.param("a response, then half a request", 32, "without complete headers after 32 s", id="half a second"),
        pytest.param("a response, then no further request", 90, "", id="no further request, which is usual"),
        pytest.param("a body that does not arrive", 60, "without a complete body after 60 s", id="half a body"),
        pytest.param("a response that is not read", 60, "that did not read a response for 60 s", id="not read"),
    ],
)
async def test_a_client_that_lets_the_server_wait_too_long_loses_its_connection(
    forward: Forward, name: str, seconds: float, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The clock goes on from the headers, and not from the last byte: xorbitsai/inference pull request 5213."""
    async with served() as (app, server):
        client = await HOLDS[name](server)
        await until(lambda: app.working or "body" not in line)
        await turns()
        forward(seconds - 1)
        await turns()
        assert server.connections == 1
        # Connections are checked every five seconds; what the system takes of a response meanwhile counts as read.
        forward(7 + (seconds if "read" in line else 0))
        await until(lambda: not server.connections)
        client.close()
    lines = [record.getMessage() for record in caplog.records]
    assert lines == ([f"endpoints: connections at a limit: 1 {line}"] if line else [])


async def test_there_is_one_line_a_minute(forward: Forward, caplog: pytest.LogCaptureFixture) -> None:
    def lines() -> list[str]:
        return [record.getMessage().removeprefix("endpoints: connections at a limit: ") for record in caplog.records]

    reason = f"waiting longest of {MOST}, for new ones"
    async with served() as (_, server):
        held = [await connect(server) for _ in range(MOST + 20)]
        assert await answer(held[19]) == b""
        assert lines() == [f"1 {reason}"]
        forward(60)
        held.append(await connect(server))
        await until(lambda: len(lines()) == 2)
        assert sum(int(part.split()[0]) for part in lines()[1].split("; ")) >= 19
        assert f"19 {reason}" in lines()[1] or f"20 {reason}" in lines()[1]
    for client in held:
        client.close()


async def test_requests_that_are_not_http_are_answered_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with served() as (_, server):
        for sent in (
            b"\x16\x03\x01\x02\x00\r\n\r\n",
            b"GET / x\r\n\r\n",
            b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n",
        ):
            with closing(await connect(server, sent)) as client:
                assert b" 400 " in await answer(client)
    assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []


async def test_a_request_ends_when_its_client_is_gone() -> None:
    async with served() as (app, server):
        client = await connect(server, PROBE.replace(b"/healthz", b"/slow"))
        await until(lambda: app.working)
        client.close()
        await until(lambda: app.cancelled)


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Errors of the next attempts to accept a connection."""
    numbers: list[int] = []
    real = socket.socket.accept

    def accept(listening: socket.socket) -> tuple[socket.socket, object]:
        if numbers:
            number = numbers.pop()
            raise OSError(number, f"error {number}")
        return real(listening)

    monkeypatch.setattr(socket.socket, "accept", accept)
    return numbers


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EPERM])
async def test_where_no_file_is_left_the_server_tries_again(
    forward: Forward, number: int, failures: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    """There is no traceback for each of them.

    https://github.com/python/cpython/issues/151615, https://github.com/academy-agents/academy/issues/386.
    """
    async with served() as (_, server):
        failures.extend([number] * 3)
        client = await connect(server, PROBE)
        for left in (2, 1, 0):
            await until(partial(has_length, failures, left))
            assert f"{HOST}:{server.port}: error {number}" in server.problem()
            assert server.problem(lasting=60) == ""
            forward(1)
        assert (await answer(client)).startswith(b"HTTP/1.1 200")
        assert server.problem() == ""
        assert len(caplog.records) == 1
        client.close()


async def test_an_idle_connection_is_closed_for_a_new_one_where_no_file_is_left(failures: list[int]) -> None:
    async with served() as (_, server):
        idle = await kept_alive(server)
        failures.append(errno.EMFILE)
        assert (await probe(server)).startswith(b"HTTP/1.1 200")
        assert await answer(idle) == b""
        assert server.problem() == ""
        idle.close()


async def test_a_problem_that_lasts_is_known(forward: Forward, failures: list[int]) -> None:
    async with served() as (_, server):
        failures.extend([errno.EMFILE] * 100)
        client = await connect(server)
        await until(server.problem)
        forward(60)
        assert "error 24" in server.problem(lasting=60)
        client.close()


# A connection whose handshake ends in the moment in which its task is cancelled stays open in asyncio:
# https://github.com/python/asyncio/issues/487, https://github.com/python/cpython/issues/73929
@pytest.mark.parametrize("iterations", range(6))
@pytest.mark.parametrize("flights", range(3))
async def test_a_connection_ends_with_the_server_however_far_its_handshake_is(
    tls: ssl.SSLContext, authority: trustme.CA, flights: int, iterations: int
) -> None:
    """The client has sent nothing, its hello, or the end of the handshake, some iterations of the event loop before."""
    loop = asyncio.get_running_loop()
    client, accepted = socket.socketpair()
    client.settimeout(0)
    connections = Connections("endpoints", LIMITS, tls)

    async def healthz(_: web.BaseRequest) -> web.Response:
        return web.Response(text="ok")

    server, handlers = web.Server(healthz), list[web.RequestHandler]()

    def made() -> web.RequestHandler:
        handlers.append(server())
        return handlers[-1]

    connections.make_handler = made
    connections.open(accepted)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    handshake = trusting.wrap_bio(received, sent, server_hostname=HOST)
    for flight in range(flights):
        if flight:
            received.write(await loop.sock_recv(client, 2**16))
        with suppress(ssl.SSLWantReadError):
            handshake.do_handshake()
        client.send(sent.read())
    for _ in range(iterations):
        await asyncio.sleep(0)
    await connections.close()
    assert (len(connections), accepted.fileno()) == (0, -1)
    assert [one.transport for one in handlers] in ([], [None])
    with closing(client):
        await answer(client)


async def test_connections_end_with_the_server(tls: ssl.SSLContext) -> None:
    for context in (None, tls):
        async with served(tls=context) as (_, server):
            client = await connect(server, PROBE[:20])
            await is_open(client)
        assert await answer(client) == b""
        client.close()


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(PROBE, id="after a response"),
        pytest.param(b"no HTTP\r\n\r\n", id="after a request that is not HTTP"),
    ],
)
async def test_a_tls_client_that_does_not_confirm_the_end_keeps_no_connection_open(
    tls: ssl.SSLContext, authority: trustme.CA, sent: bytes
) -> None:
    """The server has sent `close_notify`, and ends before the client answers."""
    with closing(socket.socket()) as client:
        async with served(tls=tls) as (_, server):
            client.settimeout(0)
            await asyncio.get_running_loop().sock_connect(client, (server.host, server.port))
            assert (await unconfirmed(client, authority, sent)).startswith(b"HTTP/1.")
            assert await is_open(client)
        assert client.recv(1) == b""


async def unconfirmed(client: socket.socket, authority: trustme.CA, sent: bytes) -> bytes:
    """Send a request in TLS, and return the response, until the server ends the TLS connection."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    loop, incoming, outgoing = asyncio.get_running_loop(), ssl.MemoryBIO(), ssl.MemoryBIO()
    secured = context.wrap_bio(incoming, outgoing, server_hostname=HOST)
    steps: list[Callable[[], object]] = [secured.do_handshake, lambda: secured.write(sent)]
    found = b""
    while True:
        try:
            while steps:
                steps[0]()
                del steps[0]
            await loop.sock_sendall(client, outgoing.read())
            while chunk := secured.read(2**16):
                found += chunk
        except ssl.SSLZeroReturnError:
            return found
        except ssl.SSLWantReadError:
            await loop.sock_sendall(client, outgoing.read())
            incoming.write(await loop.sock_recv(client, 2**16))
        else:
            return found


@pytest.mark.parametrize(
    ("host", "port", "problem"),
    [
        pytest.param("127.0.0.1", 70000, "a port is 0 to 65535", id="no port"),
        pytest.param("192.0.2.1", 0, "Cannot assign requested address", id="an address of another machine"),
        pytest.param("host.invalid", 0, "", id="an unknown name"),
    ],
)
async def test_an_address_that_cannot_be_used_is_named(host: str, port: int, problem: str) -> None:
    with pytest.raises(ConfigError, match=f"endpoints: cannot listen on {host}:{port}: .*{problem}"):
        await serving_app(web.Application(), LIMITS, name="endpoints", address=(host, port)).__aenter__()


async def test_localhost_is_listened_on_by_all_its_addresses() -> None:
    app = App()
    async with serving_app(app.app, LIMITS, name="endpoints", address=("localhost", 0)) as server:
        assert (await probe(server)).startswith(b"HTTP/1.1 200")
