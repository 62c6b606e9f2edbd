"""Open connections of an HTTP server: what each one waits for, and which ones are closed."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final, TypeAlias, cast

from aiohttp import web

from ocf.http.limits import Limits, Waiting, WaitsFor, longest_waiting

__all__ = ["Connection", "Connections", "LimitLog", "client_ended"]

_log: Final = logging.getLogger(__name__)

# Seconds between two lines about connections that were closed, however many there are.
_LOG_PERIOD: Final = 60.0
# Seconds between two checks of how long the open connections have waited.
_SWEEP_PERIOD: Final = 5.0
# Seconds that a TLS client may take to confirm the end of a connection.
_TLS_SHUTDOWN: Final = 5.0
# Iterations of the event loop after which aiohttp has begun with a request that has arrived as a whole.
_UNTIL_BEGUN: Final = 4

_Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class LimitLog:
    """Logs the connections that limits close: the first at once, further ones together, in one line a minute.

    Args:
        name: Name of the server.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._counts: Counter[str] = Counter()
        self._next: asyncio.TimerHandle | None = None

    def count(self, reason: str) -> None:
        """Count a connection.

        Args:
            reason: Describes the connection, after the number of those that it also describes.
        """
        self._counts[reason] += 1
        if self._next is None:
            self._write()

    def close(self) -> None:
        """Log nothing more."""
        if self._next is not None:
            self._next.cancel()

    def _write(self) -> None:
        if not self._counts:
            self._next = None
            return
        counted = "; ".join(f"{number} {reason}" for reason, number in self._counts.items())
        _log.warning("%s: connections at a limit: %s", self._name, counted)
        self._counts.clear()
        self._next = asyncio.get_running_loop().call_later(_LOG_PERIOD, self._write)


def client_ended(request: web.Request) -> asyncio.Event:
    """Return the event that the client of a request sends nothing more; a stream without end ends then."""
    protocol = request.transport.get_protocol() if request.transport is not None else None
    if isinstance(protocol, Connection):
        return protocol.ended
    gone = asyncio.Event()
    gone.set()
    return gone


class Connection(asyncio.Protocol):
    """A connection: passes everything to the protocol of aiohttp, and records what it waits for.

    Args:
        connections: The connections of the server.
        accepted: Its socket.
    """

    def __init__(self, connections: Connections, accepted: socket.socket) -> None:
        self._connections = connections
        self._socket: Final = accepted
        self._is_aborted = False
        self._now: Final = asyncio.get_running_loop().time
        self._between = Waiting(WaitsFor.HEADERS, self._now())
        """What it waits for while no request is processed."""
        self._request: web.Request | None = None
        self._begun = 0.0
        self._unread: Waiting | None = None
        self._unread_bytes = 0
        self._transport: asyncio.Transport | None = None
        self._http: web.RequestHandler | None = None
        self.ended: Final = asyncio.Event()
        """Set when the client sends nothing more; it may still read."""
        self.lost: Final = asyncio.Event()
        """Set when an established connection has ended."""

    def waiting(self) -> Waiting | None:
        """Return what it waits for; None if it waits for no client."""
        if self._unread is not None:
            return self._unread_now(self._unread)
        if self._request is None:
            return self._between
        return None if self._request.content.is_eof() else Waiting(WaitsFor.BODY, self._begun)

    def begin(self, request: web.Request) -> None:
        """Record that the headers of a request have arrived."""
        self._request, self._begun = request, self._now()

    def end(self) -> None:
        """Record that a request has been processed; its response may still have to be read."""
        self._request, self._between = None, Waiting(WaitsFor.REQUEST, self._now())

    @property
    def _buffered(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def abort(self) -> None:
        """Close it at once, or as soon as it is established."""
        self._is_aborted = True
        if self._transport is not None:
            self._transport.abort()
        # Closing a TLS transport of asyncio a second time separates it from its socket, and `abort` does nothing then.
        # aiohttp does that to connections that it ends and whose client does not confirm the end. And cancelling a
        # connection before its handshake has begun leaves its transport open.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    async def until_lost(self) -> None:
        """Wait for the end of the connection, if it was established."""
        if self._transport is not None:
            await self.lost.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, after the TLS handshake."""
        self._transport = cast("asyncio.Transport", transport)
        if self._is_aborted:
            self._transport.abort()
            return
        self._http = self._connections.serve(self)
        self._http.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass data on."""
        if self._http is None:
            return
        if self._request is None and self._between.what is WaitsFor.REQUEST:
            self._between = Waiting(WaitsFor.HEADERS, self._now())
        self._http.data_received(data)

    def eof_received(self) -> bool:
        """Return whether the connection stays open for the response to a request that has arrived."""
        self.ended.set()
        transport = self._transport
        # A TLS connection of asyncio cannot be closed in one direction only.
        if transport is None or not self._connections.half_closed or not transport.can_write_eof():
            return False
        waiting = self.waiting()
        if waiting is None or waiting.what is WaitsFor.READING:
            return True
        if waiting.what is WaitsFor.HEADERS:
            self._close_unless_begun(_UNTIL_BEGUN)
            return True
        return False

    def _close_unless_begun(self, iterations: int) -> None:
        if self._request is not None or self._transport is None:
            return
        if iterations:
            asyncio.get_running_loop().call_soon(self._close_unless_begun, iterations - 1)
        else:
            self._transport.close()

    def pause_writing(self) -> None:
        """Record that the client has much to read."""
        self._unread, self._unread_bytes = Waiting(WaitsFor.READING, self._now()), self._buffered
        if self._http is not None:
            self._http.pause_writing()

    def resume_writing(self) -> None:
        """Record that the client has read most of it."""
        self._unread = None
        if self._http is not None:
            self._http.resume_writing()
        if self.ended.is_set():
            self._close_unless_begun(_UNTIL_BEGUN)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        if self._http is not None:
            self._http.connection_lost(exc)
        self._connections.forget(self, self._http)
        self.lost.set()

    def _unread_now(self, unread: Waiting) -> Waiting:
        if self._buffered < self._unread_bytes:
            unread = self._unread = replace(unread, progress=self._now())
        self._unread_bytes = self._buffered
        return unread


class Connections:
    """The open connections of a server.

    Args:
        name: Name of the server, for the log.
        tls: The TLS context; None for plain HTTP.
    """

    def __init__(self, name: str, limits: Limits, tls: ssl.SSLContext | None) -> None:
        self.half_closed: Final = limits.half_closed
        self.log: Final = LimitLog(name)
        self._limits = limits
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._open: dict[Connection, None] = {}  # a set in the order of their begin
        self._establishing: set[asyncio.Task[None]] = set()
        self._by_handler: dict[asyncio.Protocol, Connection] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self.make_handler: Callable[[], web.RequestHandler] | None = None
        """Returns the HTTP protocol of a connection; set before the first one is opened."""

    def __len__(self) -> int:
        return len(self._open)

    @web.middleware
    async def record(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Record the request while it is processed; a middleware of the application.

        Args:
            handler: Processes it.
        """
        connection = self._by_handler.get(request.protocol)
        if connection is None:  # it was lost before its request was processed
            return await handler(request)
        connection.begin(request)
        try:
            response = await handler(request)
        finally:
            connection.end()
        if connection.ended.is_set():
            response.force_close()
        return response

    def open(self, accepted: socket.socket) -> None:
        """Begin with a connection; where there are as many as allowed, another one is closed for it.

        The one whose client has let the server wait for longest is closed. If all are processing requests, the new
        one is closed.

        Args:
            accepted: The socket.
        """
        most = self._limits.connections
        if len(self._open) >= most and not self.close_longest_waiting(f"waiting longest of {most}, for new ones"):
            accepted.close()
            self.log.count(f"refused, as all {most} are processing requests")
            return
        accepted.settimeout(0)
        connection = Connection(self, accepted)
        task = self._loop.create_task(self._establish(connection, accepted))
        # The loop cancels it, if the process ends without closing the server.
        task.add_done_callback(lambda _: accepted.close() if task.cancelled() else None)
        task.add_done_callback(self._establishing.discard)
        self._establishing.add(task)
        self._open[connection] = None
        if self._sweep is None:
            self._sweep = self._loop.call_later(_SWEEP_PERIOD, self._close_overdue)

    def close_longest_waiting(self, reason: str) -> bool:
        """Close the connection whose client has let the server wait for longest; return whether there was one.

        Args:
            reason: Describes it in the log.
        """
        found = longest_waiting((one, one.waiting()) for one in self._open)
        if found is None:
            return False
        self._close(found)
        self.log.count(reason)
        return True

    def serve(self, connection: Connection) -> web.RequestHandler:
        """Return the HTTP protocol of a connection that has been established."""
        assert self.make_handler is not None  # noqa: S101 (narrows the type)
        handler = self.make_handler()
        self._by_handler[handler] = connection
        return handler

    def forget(self, connection: Connection, handler: asyncio.Protocol | None) -> None:
        """Forget a connection that is closed.

        Args:
            handler: Its HTTP protocol; None if it was not established.
        """
        self._open.pop(connection, None)
        if handler is not None:
            self._by_handler.pop(handler, None)

    async def close(self) -> None:
        """Close all connections at once."""
        self.log.close()
        if self._sweep is not None:
            self._sweep.cancel()
        closed = list(self._open)
        for connection in closed:
            self._close(connection)
        await asyncio.gather(*self._establishing, return_exceptions=True)
        for connection in closed:
            await connection.until_lost()
        await asyncio.sleep(0)  # transports close their sockets in the next iteration

    async def _establish(self, connection: Connection, accepted: socket.socket) -> None:
        times = (None, None) if self._tls is None else (self._limits.headers, _TLS_SHUTDOWN)
        try:
            await self._loop.connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=times[0],
                ssl_shutdown_timeout=times[1],
            )
        except OSError as error:  # of the TLS handshake, too
            _log.debug("a connection could not be established: %s", error)
            self.forget(connection, None)

    def _close(self, connection: Connection) -> None:
        # It no longer counts, although its socket is closed in a later iteration of the event loop. A handshake ends by
        # itself, because the socket is at its end.
        del self._open[connection]
        connection.abort()

    def _close_overdue(self) -> None:
        now = self._loop.time()
        for connection in list(self._open):
            waiting = connection.waiting()
            if waiting is not None and self._limits.is_overdue(waiting, now):
                self._close(connection)
                if waiting.what is not WaitsFor.REQUEST:  # usual for a connection that is kept for later requests
                    self.log.count(self._limits.reason(waiting.what))
        self._sweep = self._loop.call_later(_SWEEP_PERIOD, self._close_overdue) if self._open else None
