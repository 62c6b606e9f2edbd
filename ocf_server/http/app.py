"""aiohttp application of the server.

Requests that are not about objects (discovery, OpenAPI, health, version) are answered from the catalog; all others go
to the handler of their verb. Every error is sent as a `Status`.

Without authorization every client that can reach the port may do everything, so the server listens on loopback only.
A web page in a browser on the same machine can also reach it; therefore requests with the name of another host, or with
the `Origin` of another page, are rejected. Clients send the address of the server as `Origin` of a WebSocket.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Final

from aiohttp import web

from ocf.errors import ApiError, ConfigError, api_error
from ocf.http.connections import client_ended
from ocf.objects import ObjectKey
from ocf_server.api.status_errors import bad_request, forbidden, method_not_allowed, no_such_resource
from ocf_server.api.trace_context import receive
from ocf_server.api.users import User
from ocf_server.http.authentication import Target, admitted_user
from ocf_server.http.backend import Backend
from ocf_server.http.control import CONTROL, Control
from ocf_server.http.documents import document_response, not_served
from ocf_server.http.handlers import handle
from ocf_server.http.media import media_of_errors, negotiate, offer_of
from ocf_server.http.request import Query, RequestContext, ResourcePath, VersionPath, is_set, parse_path
from ocf_server.http.request_body import MAX_BYTES
from ocf_server.http.resource_catalog import OF_RUNNING_PODS, ServedResource, is_builtin
from ocf_server.http.responses import (
    Pieces,
    Response,
    error_response,
    serializer_of,
    warning_headers,
    write_body,
)
from ocf_server.http.status import too_large
from ocf_server.http.watch_stream import OpenWatches, open_stream, watch_of_path
from ocf_server.registry.api_services import API_SERVICE

if TYPE_CHECKING:
    from ocf_server.http.aggregation import Aggregation
    from ocf_server.http.local_api_services import LocalApiServices

__all__ = ["is_loopback_host", "make_app"]

_NOT_FOUND: Final = 404
_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")


def make_app(backend: Backend, stopping: asyncio.Event, control: Control | None = None) -> web.Application:
    """Return the application.

    Args:
        stopping: Set when the server stops; watches end then.
        control: Handles requests under the path `CONTROL`; None if the server has none.
    """
    app = web.Application(client_max_size=MAX_BYTES)
    handler = _RequestHandler(backend, stopping, control)
    app.cleanup_ctx.append(handler.running)
    app.router.add_route("*", "/{path:.*}", handler.handle)
    return app


def is_loopback_host(host: str) -> bool:
    """Return whether a `Host` header names a loopback address.

    Example:
        >>> is_loopback_host("localhost:6443"), is_loopback_host("example.com")
        (True, False)
    """
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    return name.lower() in _LOOPBACK


class _RequestHandler:
    """Handles all requests of the application."""

    def __init__(self, backend: Backend, stopping: asyncio.Event, control: Control | None) -> None:
        self._backend = backend
        self._stopping = stopping
        self._control = control
        self._aggregation: Aggregation | None = None
        self._local_services: LocalApiServices | None = None
        self._watches = OpenWatches()

    async def running(self, _app: web.Application) -> AsyncIterator[None]:
        """Close what the handler has opened, when the application ends."""
        yield
        if self._aggregation is not None:
            await self._aggregation.close()

    def _update_local_services(self) -> None:
        """Register the versions of this server, for a request for APIServices."""
        if self._local_services is None:
            # Imported here, because most clients do not ask for them.
            from ocf_server.http.local_api_services import LocalApiServices

            self._local_services = LocalApiServices(self._backend)
        self._local_services.update()
        self._aggregated()

    def _aggregated(self) -> "Aggregation | None":
        """Return the aggregated servers; None as long as there was no APIService."""
        if self._aggregation is None:
            if not self._backend.registry.store.changed_at(API_SERVICE):
                return None
            # Imported here, because most clusters have none.
            from ocf_server.http.aggregation import Aggregation

            self._aggregation = Aggregation(self._backend)
        self._aggregation.observe()
        return self._aggregation

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Respond to a request."""
        warnings: list[str] = []
        try:
            _require_local_client(request)
            return await self._dispatch(request, warnings)
        except ApiError as error:
            if error.code == 0:
                # An error without a code means that the client gets no response.
                if request.transport is not None:
                    request.transport.abort()
                return web.Response()
            return _response(error_response(error, media_of_errors(request.headers.get("Accept", ""))), warnings)
        except RecursionError:
            # A body within the limits of depth may still exceed Python's recursion in a function that walks it.
            return _response(error_response(bad_request("the object is nested too deeply")))
        except (asyncio.CancelledError, ConnectionError, web.HTTPException):
            raise
        except Exception:
            # A bug of this server: respond like an API server does; the log has the traceback.
            request.app.logger.exception("%s %s failed", request.method, request.rel_url)
            problem = "Internal error occurred: the log of the server has the details"
            return _response(error_response(api_error(problem, code=500, reason="InternalError")), warnings)
        finally:
            self._aggregated()

    async def _dispatch(self, request: web.Request, warnings: list[str]) -> web.StreamResponse:
        path = request.rel_url.raw_path
        if path.startswith(CONTROL) and self._control is not None:
            return _response(await self._handle_control(request, path.removeprefix(CONTROL), self._control))
        target = parse_path(path)
        user = admitted_user(self._backend.registry, request, target)
        with self._backend.requested_by(user, warnings.append):
            return await self._answer(request, target, user, warnings)

    async def _answer(
        self, request: web.Request, target: Target, user: User, warnings: list[str]
    ) -> web.StreamResponse:
        path = request.rel_url.raw_path
        # Before this server's own kinds: an APIService with a service takes the whole version over, as in
        # kube-aggregator.
        if isinstance(target, ResourcePath | VersionPath) and (aggregation := self._aggregated()) is not None:
            service = aggregation.find(target.group, target.version)
            if service is not None:
                from ocf_server.http.proxy import forward

                return await forward(aggregation, service, request, await _body(request), user)
        if isinstance(target, ResourcePath):
            return await self._handle_resource(request, target, user, warnings)
        accept = request.headers.get("Accept", "")
        document = document_response(self._backend.catalog(), path, request.query, accept=accept, host=request.host)
        if request.method not in ("GET", "HEAD") and document.code != _NOT_FOUND:
            raise method_not_allowed()
        return _response(document)

    async def _handle_control(self, request: web.Request, path: str, control: Control) -> Response:
        try:
            return Response(await control(request.method, path, await _body(request)))
        except ConfigError as error:
            raise bad_request(str(error)) from error

    async def _handle_resource(
        self, request: web.Request, path: ResourcePath, user: User, warnings: list[str]
    ) -> web.StreamResponse:
        kind = self._backend.catalog().find(path.group, path.version, path.plural)
        if kind is None:
            # The routers of built-in groups know all paths below their own; for others the error is plain text.
            if is_builtin(path.group):
                raise no_such_resource()
            return _response(not_served())
        if kind.custom and not _is_path_of(kind, path, request.method):
            return _response(not_served())
        if (kind.group, kind.kind) == API_SERVICE:
            self._update_local_services()
        query: Query = request.query
        if path.subresource in OF_RUNNING_PODS and not kind.group:
            return _response(await self._handle_pod_action(request, path, kind))
        watch = request.method == "GET" and is_set(query, "watch") and not path.name
        if path.watch:
            watch = True
            path, query = watch_of_path(request.method, path, query, kind)
        offer = offer_of(kind, name=path.name, subresource=path.subresource, watch=watch)
        context = RequestContext(
            method=request.method,
            path=path,
            kind=kind,
            query=query,
            body=await _body(request),
            content_type=request.headers.get("Content-Type", ""),
            user_agent=request.headers.get("User-Agent", ""),
            media=negotiate(request.headers.get("Accept", ""), offer),
            now=self._backend.registry.now(),
            warn=warnings.append,
            user=user,
        )
        receive(request.headers, user)
        if kind.warning:
            context.warn(kind.warning)
        if watch and "watch" in kind.verbs:
            return await self._handle_watch(request, context, warnings)
        response = await handle(self._backend, context)
        if isinstance(response.body, Pieces) and len(response.body.pieces) > 1:
            return await _send(request, response.body, response.media.content_type, warnings)
        return _response(response, warnings)

    async def _handle_pod_action(self, request: web.Request, path: ResourcePath, kind: ServedResource) -> Response:
        from ocf_server.http import pod_logs

        if kind.subresource(path.subresource) is None:
            raise no_such_resource()
        if path.subresource == "proxy":
            raise await pod_logs.proxy_problem(self._backend.wrapped, kind.kind, path.name, path.namespace)
        key = ObjectKey("v1", "Pod", path.name, path.namespace)
        if path.subresource in pod_logs.ACTIONS:
            await self._backend.wrapped.get(key)
            advice = "use a cluster with nodes for it"
            raise pod_logs.not_run(f"{path.subresource} of pod {path.name} is not supported", advice)
        if request.method != "GET":
            raise method_not_allowed()
        options = pod_logs.LogOptions.read(request.query, path.name, self._backend.registry.now())
        return pod_logs.log_of(await self._backend.wrapped.get(key), options)

    async def _handle_watch(
        self, request: web.Request, context: RequestContext, warnings: Iterable[str]
    ) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._handle_socket(request, context)
        found = await open_stream(self._backend, context, (self._stopping, client_ended(request)))
        content_type = serializer_of(context.media).stream_type
        response = web.StreamResponse(headers={"Content-Type": content_type, **_COMMON_HEADERS})
        _add_warnings(response, warnings)
        # A client that is gone needs no end of the stream; as an error, it would be logged with a traceback.
        with suppress(ConnectionError):
            with self._watches.counted():
                async with aclosing(found) as lines:
                    await response.prepare(request)
                    async for line in lines:
                        for part in _parts(line):
                            await response.write(part)
            await response.write_eof()
        return response

    async def _handle_socket(self, request: web.Request, context: RequestContext) -> web.WebSocketResponse:
        """Send the events of a watch as messages of a WebSocket, as clients in Java and in browsers ask for it."""
        closed = asyncio.Event()
        found = await open_stream(self._backend, context, (self._stopping, closed))
        serializer = serializer_of(context.media)
        socket = web.WebSocketResponse(timeout=_CLOSING)
        with suppress(ConnectionError), self._watches.counted():
            async with aclosing(found) as lines:
                await socket.prepare(request)
                receiving = asyncio.ensure_future(_until_closed(socket, closed))
                try:
                    async for line in lines:
                        if serializer.name == "json":
                            await socket.send_str(line.decode())
                        else:
                            # A message needs no length before it.
                            await socket.send_bytes(line[_LENGTH:])
                finally:
                    receiving.cancel()
                    await asyncio.gather(receiving, return_exceptions=True)
            await socket.close()
        return socket


async def _until_closed(socket: web.WebSocketResponse, closed: asyncio.Event) -> None:
    """Set an event when the client has closed a WebSocket; what it sends is ignored."""
    try:
        async for _ in socket:
            pass
    finally:
        closed.set()


_LENGTH: Final = 4
_CLOSING: Final = 1.0  # seconds until a client that does not answer is disconnected


def _is_path_of(kind: ServedResource, path: ResourcePath, method: str) -> bool:
    """Return whether a custom kind has a path: only lists and watches go over all namespaces."""
    if not kind.namespaced:
        return not path.namespace
    return bool(path.namespace) or (method in ("GET", "HEAD") and not path.name)


_PART: Final = 2**16


def _parts(line: bytes) -> Iterator[memoryview]:
    """Yield a line in parts: what a client has not received is copied, so a slow one costs a part and not the line."""
    view = memoryview(line)
    return (view[start : start + _PART] for start in range(0, len(line), _PART))


def _require_local_client(request: web.Request) -> None:
    origin = request.headers.get("Origin")
    # A page of another site cannot leave out Origin in a write, and with a rebound DNS name it sends that as Host.
    if is_loopback_host(request.host) and origin in (None, f"{request.scheme}://{request.host}"):
        return
    seen = f'Host "{request.host}"' if origin is None else f'Origin "{origin}"'
    problem = "requests need a loopback Host header and no Origin header of another page"
    raise forbidden("", "", f"{problem}, but this one has {seen}")


async def _body(request: web.Request) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise too_large(MAX_BYTES) from error
    except web.RequestPayloadError as error:
        problem = "it is not encoded as its headers say"
        raise bad_request(f"the body of the request cannot be read: {problem}") from error


_COMMON_HEADERS: Final = {"Cache-Control": "no-cache, private"}


def _response(response: Response, warnings: Iterable[str] = ()) -> web.Response:
    body, content_type = write_body(response)
    headers = {"Content-Type": content_type, **_COMMON_HEADERS, **response.headers}
    sent = web.Response(body=body, status=response.code, headers=headers)
    _add_warnings(sent, warnings)
    return sent


async def _send(request: web.Request, pieces: Pieces, content_type: str, warnings: Iterable[str]) -> web.StreamResponse:
    """Send a response piece by piece; each waits until the client has received most of those before."""
    sent = web.StreamResponse(headers={"Content-Type": content_type, **_COMMON_HEADERS})
    _add_warnings(sent, warnings)
    sent.content_length = sum(map(len, pieces.pieces))
    await sent.prepare(request)
    for piece in pieces.pieces:
        await sent.write(piece)
        # A write waits only where the client is slow.
        await asyncio.sleep(0)
    await sent.write_eof()
    return sent


def _add_warnings(sent: web.StreamResponse, warnings: Iterable[str]) -> None:
    for header in warning_headers(warnings):
        sent.headers.add("Warning", header)
