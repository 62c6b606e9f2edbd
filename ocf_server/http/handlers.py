"""Handlers of the verbs: each turns the options and the body of a request into one call of the cluster.

No I/O is done here. A handler returns a response, or raises an `ApiError` to reject the request.
"""

from dataclasses import replace
from typing import Any, Final

from ocf.errors import api_error
from ocf_server.api.status_errors import bad_request, method_not_allowed, no_such_resource, not_found
from ocf_server.api.write_options import WriteOptions
from ocf_server.http.backend import Backend
from ocf_server.http.deletes import handle_delete, handle_delete_collection
from ocf_server.http.reads import handle_get, handle_list, list_body
from ocf_server.http.request import ListQuery, RequestContext, WriteQuery, object_response
from ocf_server.http.request_body import duplicates
from ocf_server.http.resource_catalog import COMPONENT_STATUS
from ocf_server.http.responses import Response
from ocf_server.http.writes import handle_create, handle_patch, handle_update, read_sent
from ocf_server.registry.access_reviews import answer

__all__ = ["handle"]


async def handle(backend: Backend, context: RequestContext) -> Response:
    """Handle a request of any verb except watch.

    Returns:
        The response.
    """
    _require_valid_path(context)
    # Before the verbs: reviews have none but create, and wrong methods get other texts.
    if (context.kind.group, context.kind.kind) == COMPONENT_STATUS:
        return _component_statuses(context)
    if not context.kind.is_stored:
        bound = await _bind(backend, context) if context.kind.kind == "Binding" else None
        return bound or _answer_access_review(backend, context)
    verb = _verb(context)
    if verb not in (context.kind.verbs if context.subresource is None else _subresource_verbs(context)):
        raise method_not_allowed()
    return await _HANDLERS[verb](backend, context)


def _require_valid_path(context: RequestContext) -> None:
    path, kind = context.path, context.kind
    if path.subresource and kind.subresource(path.subresource) is None:
        raise no_such_resource()
    if path.namespace and not kind.namespaced:
        raise no_such_resource()
    if kind.namespaced and not path.namespace and path.name:
        raise no_such_resource()


def _subresource_verbs(context: RequestContext) -> tuple[str, ...]:
    part = context.kind.subresource(context.path.subresource)
    return part.verbs if part else ()


def _verb(context: RequestContext) -> str:
    found = _VERBS.get((context.method, bool(context.path.name)))
    # Lists and watches exist over all namespaces, creates do not.
    if found is None or (found in _IN_NAMESPACE and context.kind.namespaced and not context.path.namespace):
        raise method_not_allowed()
    if found == "create" and context.path.name and context.subresource is None:
        raise method_not_allowed()
    return found


async def _bind(backend: Backend, context: RequestContext) -> Response | None:
    """Return the response to a Binding that is created in a namespace; None for any other request."""
    if context.method != "POST" or context.path.name or not context.path.namespace:
        return None
    pods = backend.catalog().find("", "v1", "pods")
    name = str(read_sent(context)["metadata"].get("name") or "")
    if not name:
        raise bad_request("Name parameter required.")
    path = replace(context.path, plural="pods", name=name, subresource="binding")
    return await handle_create(backend, replace(context, path=path, kind=pods or context.kind))


def _component_statuses(context: RequestContext) -> Response:
    """Return the state of the storage, which is the only component that this server has."""
    if context.method not in ("GET", "HEAD"):
        raise method_not_allowed()
    found: dict[str, Any] = {
        "apiVersion": context.kind.api_version,
        "kind": context.kind.kind,
        "metadata": {"name": "etcd-0"},
        "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}],
    }
    if not context.path.name:
        if ListQuery.read(context.query).watch:
            # Otherwise a client would read a list as events, and connect again at once.
            text = 'watch is not supported on resources of kind "componentstatuses"'
            raise api_error(text, code=405, reason="MethodNotAllowed", subject={"kind": "componentstatuses"})
        return Response(list_body(context, [found], {}), media=context.media)
    if context.path.name != found["metadata"]["name"]:
        raise not_found("componentstatus", context.path.name)
    return object_response(context, found)


def _answer_access_review(backend: Backend, context: RequestContext) -> Response:
    if context.path.name or (context.kind.namespaced and not context.path.namespace):
        raise no_such_resource()
    if context.method != "POST":
        raise method_not_allowed()
    query = WriteQuery.read(context.query, "CreateOptions")
    found = tuple(duplicates(context.body))
    options = WriteOptions(validation=query.validation, duplicates=found, warn=context.warn, user=context.user)
    resource = backend.registry.resource(context.kind.api_version, context.kind.kind)
    return Response(answer(backend.registry, resource, read_sent(context), options), code=201, media=context.media)


_IN_NAMESPACE: Final = ("create", "deletecollection")
_VERBS: Final = {
    ("GET", True): "get",
    ("HEAD", True): "get",
    ("GET", False): "list",
    ("POST", False): "create",
    # Of a subresource, such as an eviction; on an object itself it is rejected below.
    ("POST", True): "create",
    ("PUT", True): "update",
    ("PATCH", True): "patch",
    ("DELETE", True): "delete",
    ("DELETE", False): "deletecollection",
}
_HANDLERS: Final = {
    "get": handle_get,
    "list": handle_list,
    "create": handle_create,
    "update": handle_update,
    "patch": handle_patch,
    "delete": handle_delete,
    "deletecollection": handle_delete_collection,
}
