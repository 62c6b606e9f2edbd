"""Spans of requests, by the conventions for HTTP clients.

The template of a URL is read from its path as the API server does
(https://github.com/kubernetes/kubernetes, `staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`), so it
has no names of objects and namespaces, and few different values.
"""

from typing import Final, NamedTuple
from urllib.parse import unquote, urlencode, urlsplit

from ocf.cluster.client.requests import HttpRequest
from ocf.concepts.tracing import SpanAttributes, SpanKind, SpanStart, k8s_attributes
from ocf.errors import NotFoundError

__all__ = ["PathParts", "path_parts", "request_span", "response_attributes"]

_PORTS: Final = {"http": 80, "https": 443}
# Parts of a Namespace, and not resources in it.
_OF_NAMESPACES: Final = frozenset({"status", "finalize"})


class PathParts(NamedTuple):
    """What the path of a request names.

    Args:
        template: The path with placeholders for the namespace and the name.
        group: The API group.
        plural: The resource; empty if the path is not about objects.
        namespace: The namespace.
        name: The name of the object.
    """

    template: str
    group: str = ""
    plural: str = ""
    namespace: str = ""
    name: str = ""


def path_parts(path: str) -> PathParts:
    """Read the path of a request.

    Args:
        path: The path, escaped.

    Example:
        >>> path_parts("/apis/apps/v1/namespaces/shop/deployments/web/scale").template
        '/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale'
        >>> path_parts("/api/v1/namespaces/shop").template
        '/api/v1/namespaces/{name}'
        >>> path_parts("/version").template
        '/version'
    """
    segments = path.strip("/").split("/")
    start = {"api": 2, "apis": 3}.get(segments[0], len(segments))
    head, rest = segments[:start], segments[start:]
    if not rest:
        return PathParts(path)
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in _OF_NAMESPACES:  # noqa: PLR2004 (before a resource)
        head, namespace, rest = [*head, "namespaces", "{namespace}"], unquote(rest[1]), rest[2:]
    plural, *about = rest
    placed = ["{name}", *about[1:]] if about else []
    group = segments[1] if segments[0] == "apis" else ""
    template = "/" + "/".join([*head, plural, *placed])
    return PathParts(template, group, plural, namespace, unquote(about[0]) if about else "")


def request_span(host: str, request: HttpRequest) -> SpanStart:
    """Return the span of a request.

    Args:
        host: URL of the server.
        request: The request; its body is not part of the span.
    """
    server, parts = urlsplit(host), path_parts(request.path)
    port = server.port or _PORTS.get(server.scheme, 0)
    # Without the user and the password that the URL may contain.
    place = f"[{server.hostname}]" if server.hostname and ":" in server.hostname else server.hostname
    query = f"?{urlencode(request.query)}" if request.query else ""
    return SpanStart(
        name=f"{request.method} {parts.template}",
        kind=SpanKind.CLIENT,
        attributes={
            "http.request.method": request.method,
            "server.address": server.hostname,
            "server.port": port,
            "url.full": f"{server.scheme}://{place}:{port}{server.path}{request.path}{query}",
            "url.template": parts.template,
            **k8s_attributes(parts.group, parts.plural, parts.namespace, parts.name),
        },
        # That an object does not exist yet is an answer like any other.
        expected=(NotFoundError,) if request.method == "GET" else (),
    )


def response_attributes(code: int) -> SpanAttributes:
    """Return the attributes of the response to a request.

    Args:
        code: The HTTP status.
    """
    return {"http.response.status_code": code}
