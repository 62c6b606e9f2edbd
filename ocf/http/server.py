"""HTTP server of an aiohttp application, with limits.

asyncio's own server accepts every connection. Once no file is left for the next one, it logs a traceback for each
attempt, and each attempt schedules more of them (https://github.com/python/cpython/issues/151615), so that the event
loop does nothing else. Therefore connections are accepted here.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from ocf.errors import ConfigError
from ocf.http.connections import Connections
from ocf.http.limits import Limits

__all__ = ["ListeningServer", "serving_app"]

# Connections that the kernel keeps until they are accepted; it lowers this to `net.core.somaxconn`.
_BACKLOG: Final = 1024
# Connections that are accepted in one iteration of the event loop, so that the requests of others go on.
_BATCH: Final = 16
# Seconds until the next attempt after none could be accepted, as in asyncio.
_RETRY_AFTER: Final = 1.0
_LAST_PORT: Final = 65535
_NO_FILES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@dataclass(slots=True)
class ListeningServer:
    """A server that accepts connections.

    Args:
        host: The address that it listens on.
        _connections: The open connections.
        _sockets: The listening sockets.
    """

    host: str
    port: int
    _connections: Connections
    _sockets: Sequence[socket.socket]
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _retry: asyncio.TimerHandle | None = None
    _failed_since: float | None = None
    _failure: str = ""

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self._connections)

    def problem(self, *, lasting: float = 0.0) -> str:
        """Return why no connection can be accepted; empty if they can.

        Args:
            lasting: Only problems that have lasted for this many seconds are returned.
        """
        if self._failed_since is None or self._loop.time() - self._failed_since < lasting:
            return ""
        return f"no connection can be accepted on {self.host}:{self.port}: {self._failure}"

    def start(self) -> None:
        """Accept connections from now on."""
        self._retry = None
        for each in self._sockets:
            self._loop.add_reader(each, self._accept, each)

    def pause(self) -> None:
        """Accept no connections."""
        for each in self._sockets:
            self._loop.remove_reader(each)

    def close(self) -> None:
        """Stop listening; open connections stay open."""
        if self._retry is not None:
            self._retry.cancel()
        self.pause()
        for each in self._sockets:
            each.close()

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_BATCH):
            try:
                accepted = listening.accept()[0]
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._failed(error)
                return
            self._failed_since = None
            self._connections.open(accepted)

    def _failed(self, error: OSError) -> None:
        """Close a connection so that its file can be used for the next one, or wait."""
        reason = error.strerror or str(error)
        if error.errno in _NO_FILES and self._connections.close_longest_waiting(
            f"waiting longest, for new ones: {reason}"
        ):
            return
        if self._failed_since is None:
            self._failed_since, self._failure = self._loop.time(), reason
        self._connections.log.count(f"or more waiting to be accepted: {reason}")
        self.pause()
        self._retry = self._loop.call_later(_RETRY_AFTER, self.start)


@asynccontextmanager
async def serving_app(
    app: web.Application,
    limits: Limits,
    *,
    name: str,
    address: tuple[str, int],
    tls: ssl.SSLContext | None = None,
    shutdown_timeout: float = 1.0,
    logger: logging.Logger | None = None,
) -> AsyncIterator[ListeningServer]:
    """Serve an application for as long as the block runs.

    A request is cancelled when its client is gone. Requests that are not HTTP are answered with 400.

    Args:
        app: The application.
        limits: Limits of the connections.
        name: Name of the server, for the log.
        address: The host and port to listen on; port 0 takes any free port.
        tls: The TLS context; None for plain HTTP.
        shutdown_timeout: How long running requests may go on when the block ends, in seconds.
        logger: Gets the errors of requests; None for a logger that leaves out requests that are not HTTP.

    Yields:
        The server.

    Raises:
        ConfigError: If it cannot listen on the address.
    """
    sockets = await _listening(name, *address)
    connections = Connections(name, limits, tls)
    app.middlewares.append(connections.record)
    runner = web.AppRunner(
        app,
        access_log=None,
        # API servers neither send compressed bodies nor read them.
        auto_decompress=False,
        handle_signals=False,
        handler_cancellation=True,
        keepalive_timeout=limits.idle,
        logger=logger or _request_logger(),
        max_field_size=limits.line_bytes,
        max_line_size=limits.line_bytes,
        shutdown_timeout=shutdown_timeout,
    )
    bound = sockets[0].getsockname()
    server = ListeningServer(str(bound[0]), int(bound[1]), connections, sockets)
    try:
        await runner.setup()
        connections.make_handler = runner.server
        server.start()
        yield server
    finally:
        server.close()
        await runner.cleanup()
        await connections.close()


async def _listening(name: str, host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen on all addresses of a host."""
    if not 0 <= port <= _LAST_PORT:
        raise ConfigError(f"{name}: cannot listen on {host}:{port}: a port is 0 to {_LAST_PORT}")
    found: list[socket.socket] = []
    try:
        loop = asyncio.get_running_loop()
        addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, place in dict.fromkeys((each[0], each[4]) for each in addresses):
            found.append(socket.create_server(place, family=family, backlog=_BACKLOG))
            found[-1].settimeout(0)
    except OSError as error:
        for each in found:
            each.close()
        advice = "choose another port, or 0 for a free one"
        raise ConfigError(f"{name}: cannot listen on {host}:{port}: {_problem(error)}; {advice}") from error
    return found


def _problem(error: OSError) -> str:
    # The text of `create_server` repeats the address; unknown names have no number of the operating system.
    number = None if isinstance(error, socket.gaierror) else error.errno
    return os.strerror(number) if number is not None else error.strerror or str(error)


class _OnlyOurErrors(logging.Filter):
    """Drops records of requests that are not HTTP: a client can send any number, and gets a response."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is logged."""
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError | web.RequestPayloadError)


def _request_logger() -> logging.Logger:
    logger = logging.getLogger(__name__)
    if not logger.filters:
        logger.addFilter(_OnlyOurErrors())
    return logger
