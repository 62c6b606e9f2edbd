"""Handlers of the verbs: each turns the options and the body of a request into one call of the cluster.

No I/O is done here. A handler returns a response, or raises an `ApiError` to reject the request.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ocf.cluster.protocol import DeleteOptions, ListOptions, PatchOptions, Subresource
from ocf.embedded.api.status_errors import bad_request, expired, invalid, method_not_allowed, no_such_resource
from ocf.embedded.api.users import ADMINISTRATOR, User
from ocf.embedded.api.write_options import FieldValidation, WriteOptions, default_manager
from ocf.embedded.http.access_reviews import read_review, with_status
from ocf.embedded.http.backend import Backend
from ocf.embedded.http.content_negotiation import Encoding, Form, Media
from ocf.embedded.http.delete_options import DeleteQuery
from ocf.embedded.http.encoding import ObjectEncoder
from ocf.embedded.http.forms import require_form
from ocf.embedded.http.paths import ResourcePath
from ocf.embedded.http.query_options import ListQuery, Query, WriteQuery
from ocf.embedded.http.request_body import duplicates, read_object, read_options, read_patch
from ocf.embedded.http.resource_catalog import ServedResource
from ocf.embedded.http.responses import Pieces, Response, metadata_of, without_kind
from ocf.embedded.http.serializers import encode, serializer_of
from ocf.embedded.http.tables import TableOptions, table, table_row
from ocf.embedded.registry.continue_tokens import write_token
from ocf.errors import FieldProblem, NotFoundError, StatusCause, api_error
from ocf.objects import Manifest, ObjectKey

__all__ = ["RequestContext", "handle", "object_response"]

_SCALE: Final = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
_PARTS: Final[Mapping[Subresource | None, Mapping[str, str]]] = {
    Subresource.SCALE: _SCALE,
    Subresource.EVICTION: {"apiVersion": "policy/v1", "kind": "Eviction"},
    Subresource.BINDING: {"apiVersion": "v1", "kind": "Binding"},
    Subresource.TOKEN: {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"},
}
"""What the endpoints of subresources accept where that is not the object itself."""
_INCLUDED: Final = ("Metadata", "Object", "None")
_RETURNED: Final = frozenset(
    {
        ("", "PersistentVolume"),
        ("", "PersistentVolumeClaim"),
        ("", "Pod"),
        ("", "PodTemplate"),
        ("", "ResourceQuota"),
        ("", "Service"),
        ("", "ServiceAccount"),
        ("resource.k8s.io", "DeviceClass"),
        ("resource.k8s.io", "ResourceClaim"),
        ("resource.k8s.io", "ResourceClaimTemplate"),
        ("resource.k8s.io", "ResourceSlice"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "CSINode"),
        ("storage.k8s.io", "StorageClass"),
        ("storage.k8s.io", "VolumeAttachment"),
        ("storage.k8s.io", "VolumeAttributesClass"),
    }
)
"""Kinds whose delete responds with the object; the delete of all other kinds responds with a Status."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request for a resource.

    Args:
        method: The HTTP method.
        path: The parsed path.
        kind: The resource that the path names.
        query: Query parameters.
        body: Request body.
        content_type: The `Content-Type` header.
        user_agent: The `User-Agent` header.
        media: Media type of the response.
        now: The instant of the request; aware.
        warn: Called with each warning to send with the response.
        user: The user of the request.
    """

    method: str
    path: ResourcePath
    kind: ServedResource
    query: Query
    body: bytes
    content_type: str
    user_agent: str
    media: Media
    now: datetime
    warn: Callable[[str], None]
    user: User = ADMINISTRATOR

    @property
    def key(self) -> ObjectKey:
        """The object that the path names."""
        return ObjectKey(self.kind.api_version, self.kind.kind, self.path.name, self.path.namespace)

    @property
    def subresource(self) -> Subresource | None:
        """The subresource that the path names."""
        return Subresource(self.path.subresource) if self.path.subresource else None

    def table_options(self, *, heading: bool = True) -> TableOptions:
        """Return the options of a table in the response.

        Raises:
            BadRequestError: If the query asks for an object of an unknown form in each row.
        """
        include = self.query.get("includeObject") or _INCLUDED[0]
        if include not in _INCLUDED:
            detail = f"Invalid value: \"{include}\": must be 'Metadata', 'Object', 'None', or empty"
            raise bad_request(f"Unable to convert to Table as requested: includeObject: {detail}")
        return TableOptions(self.now, include, heading, self.media)

    def manager(self, options: WriteQuery) -> str:
        """Return the field manager of a write."""
        return options.field_manager or default_manager(self.user_agent)


async def handle(backend: Backend, context: RequestContext) -> Response:
    """Handle a request of any verb except watch.

    Args:
        backend: The cluster.
        context: The request.

    Returns:
        The response.

    Raises:
        ApiError: If the request is rejected.
    """
    _require_valid_path(context)
    if not context.kind.is_stored:
        return _answer_access_review(backend, context)
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
    if found is None or (found == "create" and context.kind.namespaced and not context.path.namespace):
        raise method_not_allowed()
    if found == "create" and context.path.name and context.subresource is None:
        raise method_not_allowed()
    return found


def _answer_access_review(backend: Backend, context: RequestContext) -> Response:
    if context.path.name:
        raise no_such_resource()
    if context.method != "POST":
        raise method_not_allowed()
    query = WriteQuery.read(context.query, "CreateOptions")
    found = tuple(duplicates(context.body))
    options = WriteOptions(validation=query.validation, duplicates=found, warn=context.warn)
    review = read_review(context.kind, _object(context), options)
    answer = with_status(context.kind.kind, review, backend.registry, context.user)
    return Response(answer, code=201, media=context.media)


def object_response(context: RequestContext, manifest: Manifest, code: int = 200) -> Response:
    """Return the response with one object, in the representation that the client asked for.

    Args:
        context: The request.
        manifest: The object.
        code: HTTP status.
    """
    body = manifest
    require_form(context.media, context.kind, listed=False)
    if context.media.form is Form.TABLE and "metadata" in manifest and context.subresource is not Subresource.SCALE:
        version = {"resourceVersion": manifest["metadata"].get("resourceVersion", "")}
        body = table(context.kind, [manifest], version, context.table_options())
    elif context.media.form is Form.METADATA:
        body = metadata_of(manifest, context.media)
    return Response(body, code=code, media=context.media)


async def _get(backend: Backend, context: RequestContext) -> Response:
    part = None if context.subresource and context.subresource.shows_object else context.subresource
    _require_known_version(backend, context.query.get("resourceVersion", ""))
    return object_response(context, await backend.wrapped.get(context.key, subresource=part))


async def _list(backend: Backend, context: RequestContext) -> Response:
    require_form(context.media, context.kind, listed=True)
    options = ListQuery.read(context.query)
    _require_known_version(backend, options.resource_version)
    serializer = serializer_of(context.media)
    found, encoder = await backend.list(context.kind, serializer, _list_options(backend, context, options))
    metadata: dict[str, Any] = {"resourceVersion": found.resource_version}
    if found.continue_token:
        metadata["continue"] = found.continue_token
    if found.remaining_item_count is not None:
        metadata["remainingItemCount"] = found.remaining_item_count
    if context.media.encoding is Encoding.YAML:
        return Response(_list_body(context, map(encoder.shown, found.items), metadata), media=context.media)
    items = map(_item_encoder(context, encoder), found.items)
    return Response(Pieces(await serializer.list(_list_body(context, (), metadata), items)), media=context.media)


def _item_encoder(context: RequestContext, encoder: ObjectEncoder) -> Callable[[Manifest], bytes]:
    """Return the function that encodes an item of a list in the representation that the client asked for."""
    if context.media.form is Form.TABLE:
        options = context.table_options()
        return lambda item: encode(table_row(context.kind, encoder.shown(item), options))
    if context.media.form is Form.METADATA_LIST:
        return lambda item: encoder.serializer.metadata(metadata_of(encoder.shown(item), context.media))
    return encoder.item


def _list_options(backend: Backend, context: RequestContext, options: ListQuery) -> ListOptions:
    return ListOptions(
        namespace=context.path.namespace,
        label_selector=options.label_selector,
        field_selector=options.field_selector,
        limit=options.limit,
        continue_token=options.continue_token or _exact(backend, options),
    )


def _exact(backend: Backend, options: ListQuery) -> str:
    """Return the token of the first page of a list at a certain version; empty where any newer version will do."""
    if not options.is_exact:
        return ""
    version = int(options.resource_version)
    if version < backend.oldest:
        raise expired("The resourceVersion for the provided list is too old.")
    return write_token(version, ("", ""))


def _require_known_version(backend: Backend, text: str) -> None:
    if text and not text.isdecimal():
        problem = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise bad_request(f'invalid resource version: resourceVersion: Invalid value: "{text}": {problem}')
    if text and int(text) > backend.version:
        cause = StatusCause("ResourceVersionTooLarge", "Too large resource version")
        message = f"Timeout: Too large resource version: {text}, current: {backend.version}"
        raise api_error(message, code=504, reason="Timeout", causes=[cause], retry_after=1)


def _list_body(context: RequestContext, found: Iterable[Manifest], metadata: Manifest) -> Manifest:
    if context.media.form is Form.TABLE:
        return table(context.kind, found, metadata, context.table_options())
    if context.media.form is Form.METADATA_LIST:
        head = {"kind": context.media.form.value, "apiVersion": context.media.meta_version}
        return {**head, "metadata": metadata, "items": [metadata_of(item, context.media) for item in found]}
    items = list(found) if context.kind.custom else [without_kind(item) for item in found]
    return {
        "kind": context.kind.list_kind,
        "apiVersion": context.kind.api_version,
        "metadata": metadata,
        "items": items,
    }


def _object(context: RequestContext) -> Manifest:
    """Read the object in the body; fields that follow from the path are optional and are set."""
    kind = context.kind
    sent = read_object(context.body, context.content_type, kind.kind)
    if context.subresource is Subresource.EVICTION and sent.get("apiVersion") == "policy/v1beta1":
        sent["apiVersion"] = "policy/v1"
    expected = _PARTS.get(context.subresource, {"apiVersion": kind.api_version, "kind": kind.kind})
    for name, wanted in expected.items():
        if sent.setdefault(name, wanted) != wanted:
            raise _foreign(sent, context)
    metadata = sent.get("metadata")
    sent["metadata"] = metadata = dict(metadata) if isinstance(metadata, dict) else {}
    namespace = metadata.get("namespace") or ""
    if kind.namespaced and namespace not in ("", context.path.namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if context.path.namespace:
        metadata["namespace"] = context.path.namespace
    return sent


def _foreign(sent: Manifest, context: RequestContext) -> Exception:
    kind, wanted, version = sent.get("kind"), context.kind, str(sent.get("apiVersion"))
    seen = version.rpartition("/")[2]
    if wanted.custom and kind == wanted.kind:
        return bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({wanted.api_version})"
        )
    part = wanted.subresource(context.path.subresource)
    group, name = (part.group or wanted.group, part.kind or wanted.kind) if part else (wanted.group, wanted.kind)
    problem = f"converting ({seen}.{kind}) to ({group.partition('.')[0] or 'core'}.{name}): unknown conversion"
    return bad_request(f'{kind} in version "{seen}" cannot be handled as a {name}: {problem}')


async def _create(backend: Backend, context: RequestContext) -> Response:
    options = WriteQuery.read(context.query, "CreateOptions")
    sent, part = _object(context), context.subresource
    if part is not None:
        _require_same_name(context, sent)
        sent = {**sent, "apiVersion": context.kind.api_version, "kind": context.kind.kind}
    manager = context.manager(options)
    with _checking(backend, context, options):
        stored = await backend.wrapped.create(sent, field_manager=manager, subresource=part, dry_run=options.dry_run)
    return object_response(context, stored, 201)


def _require_same_name(context: RequestContext, sent: Manifest) -> None:
    metadata = sent["metadata"]
    if context.subresource is Subresource.TOKEN:
        name = metadata["name"] = metadata.get("name") or context.path.name
        if name != context.path.name:
            detail = f'Invalid value: "{name}": must match the service account name if specified'
            problem = FieldProblem("metadata.name", detail)
            raise invalid("TokenRequest.authentication.k8s.io", context.path.name, [problem])
    elif metadata.get("name") != context.path.name:
        raise bad_request(f"name in URL does not match name in {sent['kind']} object")


def _checking(backend: Backend, context: RequestContext, options: WriteQuery) -> AbstractContextManager[None]:
    """Apply the request's field validation to a write."""
    found = () if options.validation is FieldValidation.IGNORE else duplicates(context.body)
    return backend.checking(options.validation, context.warn, found)


def _named(context: RequestContext, sent: Manifest) -> Manifest:
    """Return an object whose name is that of the path."""
    name = sent["metadata"].get("name")
    if name in (None, ""):
        raise bad_request(
            f"the name of the object ({context.path.name} based on URL) was undeterminable: name must be provided"
        )
    # Decoding rejects a name that is not a string.
    if isinstance(name, str) and name != context.path.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({context.path.name})")
    return sent


async def _update(backend: Backend, context: RequestContext) -> Response:
    options = WriteQuery.read(context.query, "UpdateOptions")
    sent = _named(context, _object(context))
    if context.subresource is Subresource.SCALE:
        sent = {**sent, "apiVersion": context.kind.api_version, "kind": context.kind.kind}
    known = backend.stored(context.kind, context.path.namespace, context.path.name)
    manager, part = context.manager(options), context.subresource
    with _checking(backend, context, options):
        stored = await backend.wrapped.update(sent, field_manager=manager, subresource=part, dry_run=options.dry_run)
    return object_response(context, stored, 200 if known else 201)


async def _patch(backend: Backend, context: RequestContext) -> Response:
    patch_type, patch = read_patch(context.body, context.content_type)
    options = WriteQuery.read(context.query, "PatchOptions")
    if patch_type is None:
        return await _apply(backend, context, options, patch)
    if options.force is not None:
        problem = FieldProblem("force", "Forbidden: may not be specified for non-apply patch")
        raise invalid("PatchOptions.meta.k8s.io", "", [problem])
    with _checking(backend, context, options):
        stored = await backend.wrapped.patch(
            context.key,
            patch,
            PatchOptions(
                patch_type=patch_type,
                field_manager=context.manager(options),
                subresource=context.subresource,
                dry_run=options.dry_run,
            ),
        )
    return object_response(context, stored)


async def _apply(backend: Backend, context: RequestContext, options: WriteQuery, sent: Any) -> Response:
    if not isinstance(sent, dict):
        raise bad_request("error decoding YAML: an object is expected")
    if not options.field_manager:
        problem = FieldProblem("fieldManager", "Required value: is required for apply patch")
        raise invalid("PatchOptions.meta.k8s.io", "", [problem])
    stored = backend.stored(context.kind, context.path.namespace, context.path.name)
    with _checking(backend, context, options):
        applied = await backend.wrapped.apply(
            _applied(context, sent),
            field_manager=options.field_manager,
            force=bool(options.force),
            subresource=context.subresource,
            dry_run=options.dry_run,
        )
    return object_response(context, applied, 201 if stored is None else 200)


def _applied(context: RequestContext, sent: Manifest) -> Manifest:
    is_scale = context.subresource is Subresource.SCALE
    expected = _SCALE if is_scale else {"apiVersion": context.kind.api_version, "kind": context.kind.kind}
    found = {name: value if isinstance(value := sent.get(name), str) else "" for name in expected}
    if found != expected:
        group, _, version = found["apiVersion"].rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={found['kind']}")
    metadata = sent.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    metadata.setdefault("name", context.path.name)
    namespace = metadata.get("namespace") or ""
    _named(context, {"metadata": metadata})
    if context.path.namespace:
        if namespace not in ("", context.path.namespace):
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = context.path.namespace
    named = {**sent, "metadata": metadata}
    return {**named, "apiVersion": context.kind.api_version, "kind": context.kind.kind} if is_scale else named


async def _delete(backend: Backend, context: RequestContext) -> Response:
    options = DeleteQuery.read(context.query, read_options(context.body, context.content_type))
    before = backend.stored(context.kind, context.path.namespace, context.path.name)
    await backend.wrapped.delete(context.key, _delete_options(options))
    after = backend.stored(context.kind, context.path.namespace, context.path.name)
    if before is not None and (
        (after is not None and not options.dry_run) or (context.kind.group, context.kind.kind) in _RETURNED
    ):
        return object_response(context, after or before)
    uid = (before or {"metadata": {}})["metadata"].get("uid", "")
    details = {"name": context.path.name, "group": context.kind.group, "kind": context.kind.plural, "uid": uid}
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    named = {key: value for key, value in details.items() if value}
    return Response({**body, "details": named}, media=Media(context.media.encoding))


def _delete_options(options: DeleteQuery) -> DeleteOptions:
    return DeleteOptions(
        preconditions=options.preconditions,
        propagation=options.propagation,
        grace_period_seconds=options.grace_period_seconds,
        dry_run=options.dry_run,
    )


async def _delete_collection(backend: Backend, context: RequestContext) -> Response:
    options = DeleteQuery.read(context.query, read_options(context.body, context.content_type))
    query = _list_options(backend, context, ListQuery.read(context.query))
    found = await backend.wrapped.list(context.kind.api_version, context.kind.kind, query)
    for item in found.items:
        try:
            await backend.wrapped.delete(ObjectKey.of(item), _delete_options(options))
        except NotFoundError:
            continue
    return Response(_list_body(context, found.items, {"resourceVersion": str(backend.version)}), media=context.media)


_VERBS: Final = {
    ("GET", True): "get",
    ("HEAD", True): "get",
    ("GET", False): "list",
    ("POST", False): "create",
    ("POST", True): "create",
    ("PUT", True): "update",
    ("PATCH", True): "patch",
    ("DELETE", True): "delete",
    ("DELETE", False): "deletecollection",
}
_HANDLERS: Final = {
    "get": _get,
    "list": _list,
    "create": _create,
    "update": _update,
    "patch": _patch,
    "delete": _delete,
    "deletecollection": _delete_collection,
}
