"""Handlers of gets and lists."""

from collections.abc import Callable, Iterable
from typing import Any

from ocf.cluster.protocol import ListOptions
from ocf.errors import StatusCause, api_error
from ocf.objects import Manifest
from ocf_server.api.resource_versions import version_problem
from ocf_server.api.status_errors import bad_request, expired
from ocf_server.http.backend import Backend
from ocf_server.http.media import Encoding, Form, require_form
from ocf_server.http.request import ListQuery, RequestContext, object_response
from ocf_server.http.responses import ObjectEncoder, Pieces, Response, encode, metadata_of, serializer_of, without_kind
from ocf_server.http.tables import in_row_order, table, table_row
from ocf_server.registry.continue_tokens import write_token

__all__ = ["handle_get", "handle_list", "list_body", "list_options"]


async def handle_get(backend: Backend, context: RequestContext) -> Response:
    """Return the response to a get of an object or of a subresource."""
    part = None if context.subresource and context.subresource.shows_object else context.subresource
    _require_known_version(backend, context.query.get("resourceVersion", ""))
    return object_response(context, await backend.wrapped.get(context.key, subresource=part))


async def handle_list(backend: Backend, context: RequestContext) -> Response:
    """Return the response to a list, in pieces."""
    require_form(context.media, context.kind, listed=True)
    options = ListQuery.read(context.query)
    _require_known_version(backend, options.resource_version)
    serializer = serializer_of(context.media)
    found, encoder = await backend.list(context.kind, serializer, list_options(backend, context, options))
    metadata: dict[str, Any] = {"resourceVersion": found.resource_version}
    if found.continue_token:
        metadata["continue"] = found.continue_token
    if found.remaining_item_count is not None:
        metadata["remainingItemCount"] = found.remaining_item_count
    if found.shard_selector:
        metadata["shardInfo"] = {"selector": found.shard_selector}
    if context.media.encoding is Encoding.YAML:
        return Response(list_body(context, map(encoder.shown, found.items), metadata), media=context.media)
    stored = in_row_order(context.kind, found.items) if context.media.form is Form.TABLE else found.items
    items = map(_item_encoder(context, encoder), stored)
    return Response(Pieces(await serializer.list(list_body(context, (), metadata), items)), media=context.media)


def _item_encoder(context: RequestContext, encoder: ObjectEncoder) -> Callable[[Manifest], bytes]:
    """Return the function that encodes an item of a list in the representation that the client asked for."""
    if context.media.form is Form.TABLE:
        options = context.table_options()
        return lambda item: encode(table_row(context.kind, encoder.shown(item), options))
    if context.media.form is Form.METADATA_LIST:
        return lambda item: encoder.serializer.metadata(metadata_of(encoder.shown(item), context.media))
    return encoder.item


def list_options(backend: Backend, context: RequestContext, options: ListQuery) -> ListOptions:
    """Return the options of the cluster for a list.

    Raises:
        ApiError: If the list cannot be answered at the version that the options demand (410).
    """
    return ListOptions(
        namespace=context.path.namespace,
        label_selector=options.label_selector,
        field_selector=options.field_selector,
        shard_selector=options.shard_selector,
        limit=options.limit,
        continue_token=options.continue_token or _exact(backend, options),
    )


def _exact(backend: Backend, options: ListQuery) -> str:
    """Return the token of the first page of a list at a certain version; empty where any newer version will do."""
    if not options.is_exact:
        return ""
    version = int(options.resource_version)
    # The store keeps a limited log of changes, as etcd does between compactions.
    if version < backend.oldest:
        raise expired("The resourceVersion for the provided list is too old.")
    return write_token(version, ("", ""))


def _require_known_version(backend: Backend, text: str) -> None:
    if problem := version_problem(text):
        raise bad_request(f"invalid resource version: {problem}")
    if text and int(text) > backend.version:
        # A real server first waits for three seconds (blockTimeout of the cacher) for its cache to catch up; here
        # nothing lags.
        cause = StatusCause("ResourceVersionTooLarge", "Too large resource version")
        message = f"Timeout: Too large resource version: {text}, current: {backend.version}"
        raise api_error(message, code=504, reason="Timeout", causes=[cause], retry_after=1)


def list_body(context: RequestContext, found: Iterable[Manifest], metadata: Manifest) -> Manifest:
    """Return a list in the representation that the client asked for.

    Args:
        found: The objects; empty for a list whose items are encoded later.
    """
    if context.media.form is Form.TABLE:
        return table(context.kind, found, metadata, context.table_options())
    if context.media.form is Form.METADATA_LIST:
        head = {"kind": context.media.form.value, "apiVersion": context.media.meta_version}
        return {**head, "metadata": metadata, "items": [metadata_of(item, context.media) for item in found]}
    # Go's decoder clears the type of built-in items; those of custom kinds are unstructured and keep it.
    items = list(found) if context.kind.custom else [without_kind(item) for item in found]
    return {
        "kind": context.kind.list_kind,
        "apiVersion": context.kind.api_version,
        "metadata": metadata,
        "items": items,
    }
