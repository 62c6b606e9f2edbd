"""Spans of requests to the webhook server, by the conventions for HTTP servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ocf.concepts.tracing import SpanAttributes, SpanKind, SpanStart

if TYPE_CHECKING:
    from aiohttp import web

    from ocf.objects import Manifest

__all__ = ["webhook_outcome", "webhook_span"]

_OK: Final = 200


def webhook_span(name: str, request: web.Request) -> SpanStart:
    """Return the span of a request; the span of the API server that sent it is its parent."""
    from aiohttp import web

    return SpanStart(
        name=f"{request.method} {request.path}",
        kind=SpanKind.SERVER,
        attributes={
            "http.request.method": request.method,
            "http.route": request.path,
            "url.path": request.path,
            "url.scheme": request.scheme,
            "ocf.webhook": name,
        },
        headers=request.headers,
        # By the conventions, only a 5xx is a failure of the server.
        expected=(web.HTTPClientError,),
    )


def webhook_outcome(answer: Manifest) -> SpanAttributes:
    """Return what a webhook responded; the message, which may quote an object, is left out."""
    response = answer.get("response") or {}
    return {
        "http.response.status_code": _OK,
        "ocf.webhook.allowed": response.get("allowed"),
        "ocf.webhook.code": (response.get("status") or {}).get("code"),
        "ocf.webhook.result": (response.get("result") or {}).get("status"),
    }
