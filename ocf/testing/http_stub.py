"""HTTP server of a system outside of the cluster, for tests in virtual time.

It listens on a Unix socket, whose data is there as soon as it was sent. So no request waits for real time, and virtual
time passes only where the code under test, or a fault of the server, waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from aiohttp import ClientSession, UnixConnector, web
from aiohttp.typedefs import Handler

__all__ = ["HttpRequest", "HttpStub", "serving_http_stub"]

_FOREVER: Final = 10.0**8
_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class HttpRequest(NamedTuple):
    """A request that the server got.

    Attributes:
        path: The path with the query.
    """

    method: str
    host: str
    path: str


@dataclass(frozen=True, slots=True)
class _Fault:
    """What a host does instead of its answer, or after it.

    Args:
        status: The status that it answers with; 0 for its own answer.
        hangs: Whether it never answers.
        loses: How many answers are lost after the request was handled.
    """

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs: bool = False
    loses: int = 0


@dataclass(slots=True)
class HttpStub:
    """A server that stands for any number of hosts, each of which can fail.

    Args:
        session: A client whose requests all reach the server, whatever host their URL names.
        requests: The requests, oldest first.
    """

    session: ClientSession
    requests: list[HttpRequest] = field(default_factory=list)
    _faults: dict[str, _Fault] = field(default_factory=dict)

    def hang(self, host: str) -> None:
        """Leave the requests of a host without an answer."""
        self._faults[host] = _Fault(hangs=True)

    def fail(self, host: str, status: int, *, retry_after: float | None = None) -> None:
        """Answer the requests of a host with an error.

        Args:
            status: The HTTP status.
            retry_after: The header `Retry-After`, in seconds; None for none.
        """
        headers = {} if retry_after is None else {"Retry-After": f"{retry_after:.12g}"}
        self._faults[host] = _Fault(status=status, headers=headers)

    def lose_answers(self, host: str, times: int = 1) -> None:
        """Handle the next requests of a host that change something, and close the connection without an answer.

        Args:
            times: How many.
        """
        self._faults[host] = _Fault(loses=times)

    def heal(self, host: str) -> None:
        """Let a host answer again; requests that hang get no answer any more."""
        self._faults.pop(host, None)

    async def handle(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request, or fail as its host does: a middleware of the application."""
        self.requests.append(HttpRequest(request.method, request.host, request.path_qs))
        fault = self._faults.get(request.host, _Fault())
        if fault.hangs:
            await asyncio.sleep(_FOREVER)
        if fault.status:
            return web.Response(status=fault.status, headers=fault.headers)
        answer = await handler(request)
        if fault.loses and request.method not in _READS:
            left = fault.loses - 1
            self._faults[request.host] = _Fault(loses=left)
            if request.transport is not None:
                request.transport.abort()
        return answer


@asynccontextmanager
async def serving_http_stub(app: web.Application) -> AsyncIterator[HttpStub]:
    """Serve an application of aiohttp to the session of the stub, in virtual time or in real time.

    Args:
        app: The application; its handlers see the host of the URL in `request.host`.

    Example:
        >>> from ocf.testing import run_in_virtual_time
        >>> async def greet(request: web.Request) -> web.Response:
        ...     return web.Response(text=f"this is {request.host}")
        >>> async def statuses() -> list[int]:
        ...     app = web.Application()
        ...     app.router.add_get("/", greet)
        ...     async with serving_http_stub(app) as stub:
        ...         stub.fail("us", 503)
        ...         return [(await stub.session.get(f"http://{host}/")).status for host in ("eu", "us")]
        >>> run_in_virtual_time(statuses())
        [200, 503]
    """
    with TemporaryDirectory(prefix="ocf-http-") as folder:
        path = str(Path(folder) / "server")
        async with ClientSession(connector=UnixConnector(path)) as session:
            stub = HttpStub(session)

            @web.middleware
            async def handle(request: web.Request, handler: Handler) -> web.StreamResponse:
                return await stub.handle(request, handler)

            app.middlewares.insert(0, handle)
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            try:
                await web.UnixSite(runner, path).start()
                yield stub
            finally:
                await session.close()
                await runner.cleanup()
