"""Forwarding of requests to aggregated API servers.

Upgrades of connections (exec, websockets) are not forwarded.
"""

import asyncio
from typing import Final

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from ocf.http.connections import client_ended
from ocf.objects import Manifest
from ocf.objects.conditions import is_condition_true
from ocf_server.api.users import User
from ocf_server.api.webhook_call_errors import call_problem
from ocf_server.http.aggregation import Aggregation, user_headers
from ocf_server.registry.api_services import UnavailableError

__all__ = ["forward"]

_OF_CONNECTION: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_NOT_FORWARDED: Final = _OF_CONNECTION | {"authorization", "host", "content-length"}
_NOT_RETURNED: Final = _OF_CONNECTION | {"content-length"}
_REMOTE: Final = "x-remote-"
_UNAVAILABLE: Final = 503


async def forward(
    aggregation: Aggregation, manifest: Manifest, request: web.Request, body: bytes, user: User
) -> web.StreamResponse:
    """Forward a request to the server of an APIService, and its response to the client.

    Args:
        user: Its user; the server gets it in the headers `X-Remote-User`, `X-Remote-Group` and so on.

    Returns:
        The response, which has been sent; 503 if the server cannot be reached.
    """
    try:
        target = aggregation.target(manifest)
    except UnavailableError:
        return _unavailable("service unavailable")
    # By the last check and not by trying: a real aggregator sends nothing to a server that it could not reach.
    if not is_condition_true(manifest["status"].get("conditions"), "Available"):
        return _unavailable("service unavailable")
    headers = _headers(request, user)
    try:
        answer = await aggregation.session().request(
            request.method,
            f"{target.url}{request.rel_url.raw_path_qs}",
            headers=headers,
            data=body or None,
            ssl=target.context,
            server_hostname=target.server_name,
            allow_redirects=False,
        )
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return _unavailable(f"error trying to reach service: {call_problem(error)}")
    async with answer:
        response = web.StreamResponse(status=answer.status, reason=answer.reason)
        for name, value in answer.headers.items():
            if name.lower() not in _NOT_RETURNED:
                # Added, not set: a header may occur several times.
                response.headers.add(name, value)
        await response.prepare(request)
        ended = asyncio.ensure_future(client_ended(request).wait())
        if "Content-Length" not in answer.headers:
            # It may be a watch, which has no other end.
            ended.add_done_callback(lambda _: answer.close())
        try:
            async for piece in answer.content.iter_any():
                await response.write(piece)
        except aiohttp.ClientConnectionError:
            if not ended.done():
                raise
        finally:
            ended.cancel()
        await response.write_eof()
        return response


def _headers(request: web.Request, user: User) -> "CIMultiDict[str]":
    headers: CIMultiDict[str] = CIMultiDict()
    for name, value in request.headers.items():
        # A client may not say who it is: these headers are those of the server.
        if name.lower() not in _NOT_FORWARDED and not name.lower().startswith(_REMOTE):
            headers.add(name, value)
    for name, value in user_headers(user):
        headers.add(name, value)
    headers["X-Forwarded-Host"] = request.host
    headers["X-Forwarded-Proto"] = request.scheme
    headers["X-Forwarded-Uri"] = request.rel_url.raw_path
    if request.remote:
        headers["X-Forwarded-For"] = request.remote
    return headers


def _unavailable(text: str) -> web.Response:
    headers = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}
    return web.Response(status=_UNAVAILABLE, body=f"{text}\n".encode(), headers=headers)
