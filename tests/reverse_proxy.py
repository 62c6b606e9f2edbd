"""A reverse proxy in front of an API server, which delays, holds or answers single requests in place of the server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import aiohttp
from aiohttp import web

from ocf.cluster.client import RestConfig
from ocf.cluster.client.credentials import credentials_for
from ocf.cluster.client.tls import TlsContexts
from tests.support import serving_locally

__all__ = ["Meddle", "ReverseProxy", "failure", "reverse_proxy"]

Meddle: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse | None]]
"""Called with each request before it is passed on; an answer is sent in place of that of the API server."""
_HOP_BY_HOP = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding", "content-encoding"})


def failure(code: int, reason: str, message: str = "injected") -> web.Response:
    """Return the answer of an API server that has failed or refused."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    return web.json_response({**status, "message": message, "reason": reason, "code": code}, status=code)


@dataclass
class ReverseProxy:
    """A proxy that runs.

    Args:
        config: How a client connects to the proxy.
    """

    config: RestConfig
    meddle: Meddle | None = None
    seen: list[tuple[str, str]] = field(default_factory=list)
    """Method and path of each request, in the order of their arrival."""
    going_on: set[asyncio.Task[Any]] = field(default_factory=set)

    def cut(self) -> None:
        """Break the connections on which an answer goes on, such as those of watches."""
        for task in self.going_on:
            task.cancel()


@asynccontextmanager
async def reverse_proxy(target: RestConfig) -> AsyncIterator[ReverseProxy]:
    """Run a proxy in front of an API server; its clients act with the credentials of `target`."""
    credential = await credentials_for(target, time.time).current()
    tls = TlsContexts(target.tls, time.time).current(credential.pair) if target.host.startswith("https") else False
    proxy = ReverseProxy(target)

    async def pass_on(request: web.Request) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        proxy.going_on.add(task)
        try:
            return await answer_to(request)
        finally:
            proxy.going_on.discard(task)

    async def answer_to(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        proxy.seen.append((request.method, request.path))
        if proxy.meddle is not None and (answer := await proxy.meddle(request)) is not None:
            return answer
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        if credential.authorization:
            headers["Authorization"] = credential.authorization
        url = f"{target.host.rstrip('/')}{request.raw_path}"
        async with session.request(request.method, url, data=body or None, headers=headers, ssl=tls) as found:
            kept = {name: value for name, value in found.headers.items() if name.lower() not in _HOP_BY_HOP}
            sent = web.StreamResponse(status=found.status, headers=kept)
            try:
                await sent.prepare(request)
                async for part in found.content.iter_any():
                    await sent.write(part)
                await sent.write_eof()
            finally:
                # A TLS shutdown would wait for the server, for longer than the event loop may run.
                if found.connection is not None and found.connection.transport is not None:
                    found.connection.transport.abort()
            return sent

    app = web.Application(client_max_size=2**24)
    app.router.add_route("*", "/{path:.*}", pass_on)
    unlimited = aiohttp.ClientTimeout()
    async with (
        aiohttp.ClientSession(timeout=unlimited, connector=aiohttp.TCPConnector(limit=0)) as session,
        serving_locally(app) as address,
    ):
        proxy.config = RestConfig(host=address)
        yield proxy
    await asyncio.sleep(0)  # lets the loop close the aborted connections
