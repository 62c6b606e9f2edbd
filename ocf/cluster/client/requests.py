"""HTTP requests of the verbs, as values.

The parameters are those of the API reference
(https://kubernetes.io/docs/reference/kubernetes-api/common-parameters/common-parameters/). A request
contains only what the caller set, so the defaults of the server apply.
"""

from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlencode, urlsplit

from ocf.cluster.client.paths import DiscoveredResource, bad_request, collection_path, home_path, key_of, object_path
from ocf.cluster.impersonation import Impersonation
from ocf.cluster.protocol import DeleteOptions, ListOptions, PatchOptions, PatchType, Subresource, WatchOptions
from ocf.concepts.tracing import SpanAttributes, SpanKind, SpanStart, k8s_attributes
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey

__all__ = [
    "HttpRequest",
    "apply",
    "create",
    "delete",
    "get",
    "listing",
    "patch",
    "path_parts",
    "request_span",
    "response_attributes",
    "update",
    "watching",
]

_JSON: Final = "application/json"
_APPLY: Final = "application/apply-patch+yaml"  # JSON is YAML
_DRY_RUN: Final = "All"


class HttpRequest(NamedTuple):
    """One HTTP request.

    Args:
        path: Path on the server, escaped.
        query: Query parameters, not escaped.
        body: The body, sent as JSON; None sends no body.
        user: The user as whom it is sent; None is that of the connection.
        accept: The media types of the answer, in order of preference; empty for JSON.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: Any = None
    content_type: str = _JSON
    user: Impersonation | None = None
    accept: str = ""

    def __str__(self) -> str:
        """Return method and path for messages; query and body may contain confidential data."""
        return f"{self.method} {self.path}"


def get(resource: DiscoveredResource, key: ObjectKey, subresource: Subresource | None) -> HttpRequest:
    """Build the request for an object, or a subresource."""
    return HttpRequest("GET", object_path(resource, key, subresource))


def listing(resource: DiscoveredResource, options: ListOptions) -> HttpRequest:
    """Build the request for one page of a list."""
    return HttpRequest(
        "GET",
        collection_path(resource, options.namespace),
        _query(
            labelSelector=options.label_selector,
            fieldSelector=options.field_selector,
            shardSelector=options.shard_selector,
            limit=str(options.limit) if options.limit else "",
            **{"continue": options.continue_token},
        ),
    )


def watching(resource: DiscoveredResource, options: WatchOptions, *, seconds: float) -> HttpRequest:
    """Build the request for a watch that ends after so many seconds."""
    return HttpRequest(
        "GET",
        collection_path(resource, options.namespace),
        _query(
            watch="true",
            allowWatchBookmarks="true",
            resourceVersion=options.resource_version,
            timeoutSeconds=str(max(1, round(seconds))),
            labelSelector=options.label_selector,
            fieldSelector=options.field_selector,
            shardSelector=options.shard_selector,
        ),
    )


def apply(
    resource: DiscoveredResource,
    manifest: Manifest,
    *,
    field_manager: str,
    force: bool,
    subresource: Subresource | None,
    dry_run: bool,
) -> HttpRequest:
    """Build the request for a server-side apply."""
    return HttpRequest(
        "PATCH",
        object_path(resource, key_of(resource, manifest), subresource),
        _write_query(field_manager, force=force, dry_run=dry_run),
        _with_type_of_part(resource, manifest, subresource),
        _APPLY,
    )


def create(
    resource: DiscoveredResource,
    manifest: Manifest,
    *,
    field_manager: str,
    subresource: Subresource | None,
    dry_run: bool,
    strict: bool,
) -> HttpRequest:
    """Build the request to create an object, which may have a `generateName` in place of a name, or a subresource."""
    if subresource is not None:
        return HttpRequest(
            "POST",
            object_path(resource, key_of(resource, manifest), subresource),
            _write_query(field_manager, dry_run=dry_run),
            _with_type_of_part(resource, manifest, subresource),
        )
    metadata = manifest.get("metadata")
    namespace = metadata.get("namespace") if resource.namespaced and isinstance(metadata, dict) else None
    return HttpRequest(
        "POST",
        home_path(resource, str(namespace or ""), f"new {resource.kind}"),
        # By default the API server drops a field that it does not know, with a warning.
        (*_write_query(field_manager, dry_run=dry_run), *((("fieldValidation", "Strict"),) if strict else ())),
        manifest,
    )


def update(
    resource: DiscoveredResource,
    manifest: Manifest,
    *,
    field_manager: str,
    subresource: Subresource | None,
    dry_run: bool,
) -> HttpRequest:
    """Build the request to replace an object, or a subresource."""
    return HttpRequest(
        "PUT",
        object_path(resource, key_of(resource, manifest), subresource),
        _write_query(field_manager, dry_run=dry_run),
        _with_type_of_part(resource, manifest, subresource),
    )


def patch(resource: DiscoveredResource, key: ObjectKey, body: Any, options: PatchOptions) -> HttpRequest:
    """Build the request to patch an object, or a subresource.

    Raises:
        BadRequestError: If the body has the wrong type for its patch type; the client library would send a JSON patch
            that is not a list as a strategic merge patch.
    """
    wanted, shape = (list, "a list of operations") if options.patch_type is PatchType.JSON else (dict, "an object")
    if not isinstance(body, wanted):
        raise bad_request(f"{key}: a patch of type {options.patch_type} must be {shape}, not {type(body).__name__}")
    return HttpRequest(
        "PATCH",
        object_path(resource, key, options.subresource),
        _write_query(options.field_manager, dry_run=options.dry_run),
        body,
        options.patch_type.value,
    )


def delete(resource: DiscoveredResource, key: ObjectKey, options: DeleteOptions) -> HttpRequest:
    """Build the request to delete an object; the options are in the body, so the server ignores the query."""
    body: Manifest = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if options.preconditions:
        conditions = {"uid": options.preconditions.uid, "resourceVersion": options.preconditions.resource_version}
        body["preconditions"] = {name: value for name, value in conditions.items() if value is not None}
    if options.propagation:
        body["propagationPolicy"] = options.propagation.value
    if options.grace_period_seconds is not None:
        body["gracePeriodSeconds"] = options.grace_period_seconds
    if options.dry_run:
        body["dryRun"] = [_DRY_RUN]
    return HttpRequest("DELETE", object_path(resource, key), body=body)


def _query(**parameters: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in parameters.items() if value)


@lru_cache(maxsize=256)
def _write_query(field_manager: str, *, dry_run: bool, force: bool = False) -> tuple[tuple[str, str], ...]:
    """Return the parameters of a write; those of all writes of one component are equal."""
    return _query(fieldManager=field_manager, force="true" if force else "", dryRun=_DRY_RUN if dry_run else "")


def _with_type_of_part(resource: DiscoveredResource, manifest: Manifest, subresource: Subresource | None) -> Manifest:
    """Return the manifest with the apiVersion and kind that the endpoint expects.

    A Scale does not identify the scaled object, so the manifest has the type of that object; the endpoint expects
    `autoscaling/v1`, `Scale`. Likewise an Eviction and a Binding.
    """
    if subresource is None:
        return manifest
    api_version, kind = resource.subresources[subresource]
    return {**manifest, "apiVersion": api_version, "kind": kind}


# The template of a URL is read from its path as the API server does
# (https://github.com/kubernetes/kubernetes, `staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`), so it
# has no names of objects and namespaces, and few different values.
_PORTS: Final = {"http": 80, "https": 443}
# Parts of a Namespace, and not resources in it.
_OF_NAMESPACES: Final = frozenset({"status", "finalize"})


class _PathParts(NamedTuple):
    """What the path of a request names.

    Args:
        plural: The resource; empty if the path is not about objects.
    """

    template: str
    group: str = ""
    plural: str = ""
    namespace: str = ""
    name: str = ""


def path_parts(path: str) -> _PathParts:
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
        return _PathParts(path)
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in _OF_NAMESPACES:  # noqa: PLR2004 (before a resource)
        head, namespace, rest = [*head, "namespaces", "{namespace}"], unquote(rest[1]), rest[2:]
    plural, *about = rest
    placed = ["{name}", *about[1:]] if about else []
    group = segments[1] if segments[0] == "apis" else ""
    template = "/" + "/".join([*head, plural, *placed])
    return _PathParts(template, group, plural, namespace, unquote(about[0]) if about else "")


def request_span(host: str, request: HttpRequest) -> SpanStart:
    """Return the span of a request.

    Args:
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
    """Return the attributes of the response to a request."""
    return {"http.response.status_code": code}
