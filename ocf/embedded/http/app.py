"""The server's one door: every request comes in here, and leaves as an answer or as a stream.

What is not about objects (discovery, OpenAPI, health, version) is answered from the catalog; the rest is handed to the
handler of its verb. Whatever goes wrong leaves as a `Status`.

Nobody logs in: who can reach the port may do everything, so it is on loopback only. A web page in a browser on the same
machine can reach it, too; requests that carry another host's name, or the origin of a page, are therefore refused.
"""

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from typing import Final

from aiohttp import web

from ocf.embedded.api.status_errors import bad_request, forbidden, method_not_allowed, no_such_resource
from ocf.embedded.http.backend import Backend
from ocf.embedded.http.content_negotiation import negotiate
from ocf.embedded.http.control import CONTROL, Control
from ocf.embedded.http.documents import document_answer, not_served
from ocf.embedded.http.handlers import RequestContext, handle
from ocf.embedded.http.paths import ResourcePath, parse_path
from ocf.embedded.http.request_body import MAX_BYTES
from ocf.embedded.http.responses import Answer, error_answer, write_body
from ocf.embedded.http.status import too_large
from ocf.embedded.http.watch_stream import open_stream
from ocf.errors import ApiError, ConfigError, api_error

__all__ = ["is_loopback_host", "make_app"]

_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")


def make_app(backend: Backend, stopping: asyncio.Event, control: Control | None = None) -> web.Application:
    """Make the application.

    Args:
        backend: The cluster.
        stopping: Set when the server ends; streams end with it.
        control: What requests under `CONTROL` go to; None for nothing.

    Returns:
        An application of aiohttp.
    """
    app = web.Application(client_max_size=MAX_BYTES)
    door = _Door(backend, stopping, control)
    app.router.add_route("*", "/{path:.*}", door.enter)
    return app


def is_loopback_host(host: str) -> bool:
    """Tell whether a `Host` header names this machine as seen from itself.

    Args:
        host: The header.

    Example:
        >>> is_loopback_host("localhost:6443"), is_loopback_host("example.com")
        (True, False)
    """
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    return name.lower() in _LOOPBACK


class _Door:
    """Takes requests."""

    def __init__(self, backend: Backend, stopping: asyncio.Event, control: Control | None) -> None:
        self._backend = backend
        self._stopping = stopping
        self._control = control

    async def enter(self, request: web.Request) -> web.StreamResponse:
        """Answer a request."""
        warnings: list[str] = []
        try:
            _demand_local(request)
            return await self._answered(request, warnings)
        except ApiError as error:
            if error.code == 0:
                # No answer arrives: that is what such an error means, so none is sent.
                if request.transport is not None:
                    request.transport.abort()
                return web.Response()
            return _response(error_answer(error), warnings)
        except RecursionError:
            return _response(error_answer(bad_request("the object is nested too deeply")))
        except (asyncio.CancelledError, ConnectionError, web.HTTPException):
            raise
        except Exception as error:
            # A fault of ours is told as a server tells its own; the log says where it is.
            request.app.logger.exception("%s %s failed", request.method, request.rel_url)
            problem = f"Internal error occurred: {type(error).__name__}: {error}"
            return _response(error_answer(api_error(problem, code=500, reason="InternalError")), warnings)

    async def _answered(self, request: web.Request, warnings: list[str]) -> web.StreamResponse:
        path = request.rel_url.raw_path
        if path.startswith(CONTROL) and self._control is not None:
            return _response(await self._controlled(request, path.removeprefix(CONTROL), self._control))
        target = parse_path(path)
        if isinstance(target, ResourcePath):
            return await self._resource(request, target, warnings)
        accept = request.headers.get("Accept", "")
        answer = document_answer(self._backend.catalog(), path, accept=accept, host=request.host)
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        return _response(answer)

    async def _controlled(self, request: web.Request, path: str, control: Control) -> Answer:
        try:
            return Answer(await control(request.method, path, await _body(request)))
        except ConfigError as error:
            raise bad_request(str(error)) from error

    async def _resource(self, request: web.Request, path: ResourcePath, warnings: list[str]) -> web.StreamResponse:
        kind = self._backend.catalog().find(path.group, path.version, path.plural)
        if kind is None:
            if path.group not in self._backend.catalog().groups():
                return _response(not_served())
            raise no_such_resource()
        query = request.query
        watch = request.method == "GET" and query.get("watch", "") in ("true", "1") and not path.name
        call = RequestContext(
            method=request.method,
            path=path,
            kind=kind,
            query=query,
            body=await _body(request),
            content_type=request.headers.get("Content-Type", ""),
            user_agent=request.headers.get("User-Agent", ""),
            media=negotiate(request.headers.get("Accept", ""), watch=watch),
            now=self._backend.core.now(),
            warn=warnings.append,
        )
        if kind.warning:
            call.warn(kind.warning)
        if watch and "watch" in kind.verbs:
            return await self._stream(request, call)
        return _response(await handle(self._backend, call), warnings)

    async def _stream(self, request: web.Request, call: RequestContext) -> web.StreamResponse:
        found = await open_stream(self._backend, call, self._stopping)
        response = web.StreamResponse(headers={"Content-Type": "application/json", **_EVERY_ANSWER})
        async with aclosing(found) as lines:
            await response.prepare(request)
            async for line in lines:
                await response.write(line)
        await response.write_eof()
        return response


def _demand_local(request: web.Request) -> None:
    if not is_loopback_host(request.host) or "Origin" in request.headers:
        raise forbidden("", "", "this server answers programs on its own machine only, and no web pages")


async def _body(request: web.Request) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise too_large(MAX_BYTES) from error


_EVERY_ANSWER: Final = {"Cache-Control": "no-cache, private"}


def _response(answer: Answer, warnings: Iterable[str] = ()) -> web.Response:
    body, content_type = write_body(answer)
    headers = {"Content-Type": content_type, **_EVERY_ANSWER, **answer.headers}
    response = web.Response(body=body, status=answer.code, headers=headers)
    for warning in warnings:
        quoted = warning.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{quoted}"')
    return response
