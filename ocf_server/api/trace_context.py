"""Trace context of a request, which the server hands on to webhooks.

This is what an API server of Kubernetes 1.36 without a tracing configuration does: it records no spans, and webhooks
get the trace context of the client, if that is a member of `system:masters` or `system:monitoring` (`WithTracing` in
`staging/src/k8s.io/apiserver/pkg/endpoints/filters/traces.go`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final

from ocf.concepts.tracing import trace_headers
from ocf_server.api.users import User

__all__ = ["handed_on", "receive"]

_NAMES: Final = ("traceparent", "tracestate", "baggage")
_TRUSTED: Final = frozenset({"system:masters", "system:monitoring"})
_RECEIVED: Final[ContextVar[Mapping[str, str] | None]] = ContextVar("trace context of the request", default=None)


def receive(headers: Mapping[str, str], user: User) -> None:
    """Keep the trace context of the request that the current task responds to.

    Args:
        headers: The headers of the request, with names in any case.
    """
    trusted = "traceparent" in headers and not _TRUSTED.isdisjoint(user.groups)
    # Empty and not None: within a request, the active span of this process is not handed on.
    _RECEIVED.set({name: headers[name] for name in _NAMES if name in headers} if trusted else {})


def handed_on() -> Mapping[str, str]:
    """Return the headers for a webhook: those of the request; outside of one, those of the active span."""
    received = _RECEIVED.get()
    return trace_headers() if received is None else received
