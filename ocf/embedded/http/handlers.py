"""What each verb of the API does: options and body in, one request to the cluster, an answer out.

Nothing here knows of sockets. A handler gets what a request says and raises an `ApiError` where it refuses.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ocf.cluster.protocol import DeleteOptions, ListOptions, ObjectList, PatchOptions, Subresource
from ocf.embedded.api.status_errors import bad_request, invalid, method_not_allowed, no_such_resource
from ocf.embedded.api.write_options import FieldValidation
from ocf.embedded.http.access_reviews import review
from ocf.embedded.http.backend import Backend
from ocf.embedded.http.content_negotiation import Form, Media
from ocf.embedded.http.paths import ResourcePath
from ocf.embedded.http.query_options import DeleteQuery, ListQuery, WriteQuery, manager_of
from ocf.embedded.http.request_body import duplicates, read_object, read_options, read_patch
from ocf.embedded.http.resource_catalog import Served
from ocf.embedded.http.responses import Answer, metadata_of, without_kind
from ocf.embedded.http.tables import TableOptions, table
from ocf.errors import FieldProblem, NotFoundError, StatusCause, api_error
from ocf.objects import Manifest, ObjectKey

__all__ = ["RequestContext", "handle", "presented"]

_SCALE: Final = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
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
"""Kinds whose delete answers with the object, where that of others answers with a Status."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request for a resource.

    Args:
        method: The HTTP method.
        path: What it names.
        kind: The resource of that path.
        query: Its query.
        body: Its body.
        content_type: Its `Content-Type`.
        user_agent: Its `User-Agent`.
        media: In which form the answer is wanted.
        now: The instant of the request; aware.
        warn: Called with what the client is told beside the answer.
    """

    method: str
    path: ResourcePath
    kind: Served
    query: Mapping[str, str]
    body: bytes
    content_type: str
    user_agent: str
    media: Media
    now: datetime
    warn: Callable[[str], None]

    @property
    def key(self) -> ObjectKey:
        """The object that the path names."""
        return ObjectKey(self.kind.api_version, self.kind.kind, self.path.name, self.path.namespace)

    @property
    def subresource(self) -> Subresource | None:
        """The part that the path names."""
        return Subresource(self.path.subresource) if self.path.subresource else None

    def table_options(self, *, heading: bool = True) -> TableOptions:
        """Return how a table is wanted."""
        return TableOptions(self.now, self.query.get("includeObject", "Metadata"), heading)

    def manager(self, options: WriteQuery) -> str:
        """Return who writes."""
        return options.field_manager or manager_of(self.user_agent)


async def handle(backend: Backend, call: RequestContext) -> Answer:
    """Do what a request asks for; a watch is not among it.

    Args:
        backend: The cluster.
        call: The request.

    Returns:
        The answer.

    Raises:
        ApiError: If it is refused.
    """
    _demand_place(call)
    if not call.kind.is_stored:
        return _reviewed(call)
    verb = _verb(call)
    if verb not in (call.kind.verbs if call.subresource is None else _part_verbs(call)):
        raise method_not_allowed()
    return await _HANDLERS[verb](backend, call)


def _demand_place(call: RequestContext) -> None:
    path, kind = call.path, call.kind
    if path.subresource and kind.part(path.subresource) is None:
        raise no_such_resource()
    if path.namespace and not kind.namespaced:
        raise no_such_resource()
    if kind.namespaced and not path.namespace and path.name:
        raise no_such_resource()


def _part_verbs(call: RequestContext) -> tuple[str, ...]:
    part = call.kind.part(call.path.subresource)
    return part.verbs if part else ()


def _verb(call: RequestContext) -> str:
    found = _VERBS.get((call.method, bool(call.path.name)))
    if found is None or (found == "create" and call.kind.namespaced and not call.path.namespace):
        raise method_not_allowed()
    return found


def _reviewed(call: RequestContext) -> Answer:
    if call.method != "POST" or call.path.name:
        raise method_not_allowed()
    question = _object(call)
    return Answer(review(call.kind.kind, question), code=201, media=call.media)


def presented(call: RequestContext, manifest: Manifest, code: int = 200) -> Answer:
    """Write one object in the form that is wanted.

    Args:
        call: The request.
        manifest: The object.
        code: HTTP status.
    """
    body = manifest
    if call.media.form is Form.TABLE and "metadata" in manifest and call.subresource is not Subresource.SCALE:
        version = {"resourceVersion": manifest["metadata"].get("resourceVersion", "")}
        body = table(call.kind, [manifest], version, call.table_options())
    elif call.media.form is Form.METADATA:
        body = metadata_of(manifest)
    return Answer(body, code=code, media=call.media)


async def _get(backend: Backend, call: RequestContext) -> Answer:
    part = None if call.subresource is Subresource.STATUS else call.subresource
    return presented(call, await backend.front.get(call.key, subresource=part))


async def _list(backend: Backend, call: RequestContext) -> Answer:
    options = ListQuery.read(call.query)
    _demand_version(backend, options)
    found = await _listed(backend, call, options)
    metadata: dict[str, Any] = {"resourceVersion": found.resource_version}
    if found.continue_token:
        metadata["continue"] = found.continue_token
    return Answer(_list_body(call, found, metadata), media=call.media)


async def _listed(backend: Backend, call: RequestContext, options: ListQuery) -> ObjectList:
    return await backend.front.list(
        call.kind.api_version,
        call.kind.kind,
        ListOptions(
            namespace=call.path.namespace,
            label_selector=options.label_selector,
            field_selector=options.field_selector,
            limit=options.limit,
            continue_token=options.continue_token,
        ),
    )


def _demand_version(backend: Backend, options: ListQuery) -> None:
    text = options.resource_version
    if text and not text.isdecimal():
        problem = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise bad_request(f'invalid resource version: resourceVersion: Invalid value: "{text}": {problem}')
    if text and int(text) > backend.version:
        cause = StatusCause("ResourceVersionTooLarge", "Too large resource version")
        message = f"Timeout: Too large resource version: {text}, current: {backend.version}"
        raise api_error(message, code=504, reason="Timeout", causes=[cause], retry_after=1)


def _list_body(call: RequestContext, found: ObjectList, metadata: Manifest) -> Manifest:
    if call.media.form is Form.TABLE:
        return table(call.kind, found.items, metadata, call.table_options())
    if call.media.form is Form.METADATA:
        head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
        return {**head, "metadata": metadata, "items": [metadata_of(item) for item in found.items]}
    items = list(found.items) if call.kind.custom else [without_kind(item) for item in found.items]
    return {"kind": call.kind.list_kind, "apiVersion": call.kind.api_version, "metadata": metadata, "items": items}


def _object(call: RequestContext) -> Manifest:
    """Read the object of a body; what the path says, it may leave out."""
    kind = call.kind
    sent = read_object(call.body, call.content_type, kind.kind)
    expected = _SCALE if call.subresource is Subresource.SCALE else {"apiVersion": kind.api_version, "kind": kind.kind}
    for name, wanted in expected.items():
        if sent.setdefault(name, wanted) != wanted:
            raise _foreign(sent, call)
    metadata = sent.get("metadata")
    sent["metadata"] = metadata = dict(metadata) if isinstance(metadata, dict) else {}
    namespace = metadata.get("namespace") or ""
    if kind.namespaced and namespace not in ("", call.path.namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if call.path.namespace:
        metadata["namespace"] = call.path.namespace
    return sent


def _foreign(sent: Manifest, call: RequestContext) -> Exception:
    kind, wanted, version = sent.get("kind"), call.kind, str(sent.get("apiVersion"))
    seen = version.rpartition("/")[2]
    if wanted.custom and kind == wanted.kind:
        return bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({wanted.api_version})"
        )
    part = wanted.part(call.path.subresource)
    group, name = (part.group or wanted.group, part.kind or wanted.kind) if part else (wanted.group, wanted.kind)
    problem = f"converting ({seen}.{kind}) to ({group.partition('.')[0] or 'core'}.{name}): unknown conversion"
    return bad_request(f'{kind} in version "{seen}" cannot be handled as a {name}: {problem}')


async def _create(backend: Backend, call: RequestContext) -> Answer:
    options = WriteQuery.read(call.query, "CreateOptions")
    sent = _object(call)
    with _checking(backend, call, options):
        stored = await backend.front.create(sent, field_manager=call.manager(options), dry_run=options.dry_run)
    return presented(call, stored, 201)


def _checking(backend: Backend, call: RequestContext, options: WriteQuery) -> AbstractContextManager[None]:
    """Treat a write as the request wants it."""
    found = () if options.validation is FieldValidation.IGNORE else duplicates(call.body)
    return backend.checking(options.validation, call.warn, found)


def _named(call: RequestContext, sent: Manifest) -> Manifest:
    name = sent["metadata"].get("name") or ""
    if not name:
        raise bad_request(
            f"the name of the object ({call.path.name} based on URL) was undeterminable: name must be provided"
        )
    if name != call.path.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.path.name})")
    return sent


async def _update(backend: Backend, call: RequestContext) -> Answer:
    options = WriteQuery.read(call.query, "UpdateOptions")
    sent = _named(call, _object(call))
    if call.subresource is Subresource.SCALE:
        sent = {**sent, "apiVersion": call.kind.api_version, "kind": call.kind.kind}
    known = backend.stored(call.kind, call.path.namespace, call.path.name)
    manager, part = call.manager(options), call.subresource
    with _checking(backend, call, options):
        stored = await backend.front.update(sent, field_manager=manager, subresource=part, dry_run=options.dry_run)
    return presented(call, stored, 200 if known else 201)


async def _patch(backend: Backend, call: RequestContext) -> Answer:
    patch_type, patch = read_patch(call.body, call.content_type)
    options = WriteQuery.read(call.query, "PatchOptions")
    if patch_type is None:
        return await _apply(backend, call, options, patch)
    if options.force is not None:
        problem = FieldProblem("force", "Forbidden: may not be specified for non-apply patch")
        raise invalid("PatchOptions.meta.k8s.io", "", [problem])
    with _checking(backend, call, options):
        stored = await backend.front.patch(
            call.key,
            patch,
            PatchOptions(
                patch_type=patch_type,
                field_manager=call.manager(options),
                subresource=call.subresource,
                dry_run=options.dry_run,
            ),
        )
    return presented(call, stored)


async def _apply(backend: Backend, call: RequestContext, options: WriteQuery, sent: Any) -> Answer:
    if not isinstance(sent, dict):
        raise bad_request("error decoding YAML: an object is expected")
    if not options.field_manager:
        problem = FieldProblem("fieldManager", "Required value: is required for apply patch")
        raise invalid("PatchOptions.meta.k8s.io", "", [problem])
    stored = backend.stored(call.kind, call.path.namespace, call.path.name)
    with _checking(backend, call, options):
        applied = await backend.front.apply(
            _applied(call, sent),
            field_manager=options.field_manager,
            force=bool(options.force),
            subresource=call.subresource,
            dry_run=options.dry_run,
        )
    return presented(call, applied, 201 if stored is None else 200)


def _applied(call: RequestContext, sent: Manifest) -> Manifest:
    is_scale = call.subresource is Subresource.SCALE
    expected = _SCALE if is_scale else {"apiVersion": call.kind.api_version, "kind": call.kind.kind}
    found = {name: str(sent.get(name) or "") for name in expected}
    if found != expected:
        group, _, version = found["apiVersion"].rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={found['kind']}")
    metadata = sent.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    name, namespace = metadata.setdefault("name", call.path.name), metadata.get("namespace") or ""
    if name != call.path.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.path.name})")
    if call.path.namespace:
        if namespace not in ("", call.path.namespace):
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = call.path.namespace
    named = {**sent, "metadata": metadata}
    return {**named, "apiVersion": call.kind.api_version, "kind": call.kind.kind} if is_scale else named


async def _delete(backend: Backend, call: RequestContext) -> Answer:
    options = DeleteQuery.read(call.query, read_options(call.body, call.content_type))
    before = backend.stored(call.kind, call.path.namespace, call.path.name)
    await backend.front.delete(
        call.key,
        DeleteOptions(preconditions=options.preconditions, propagation=options.propagation, dry_run=options.dry_run),
    )
    after = backend.stored(call.kind, call.path.namespace, call.path.name)
    if before is not None and (
        (after is not None and not options.dry_run) or (call.kind.group, call.kind.kind) in _RETURNED
    ):
        return presented(call, after or before)
    uid = (before or {"metadata": {}})["metadata"].get("uid", "")
    details = {"name": call.path.name, "group": call.kind.group, "kind": call.kind.plural, "uid": uid}
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return Answer(
        {**body, "details": {key: value for key, value in details.items() if value}}, media=Media(call.media.yaml)
    )


async def _delete_collection(backend: Backend, call: RequestContext) -> Answer:
    options = DeleteQuery.read(call.query, read_options(call.body, call.content_type))
    found = await _listed(backend, call, ListQuery.read(call.query))
    for item in found.items:
        try:
            await backend.front.delete(
                ObjectKey.of(item),
                DeleteOptions(
                    preconditions=options.preconditions, propagation=options.propagation, dry_run=options.dry_run
                ),
            )
        except NotFoundError:
            continue
    return Answer(_list_body(call, found, {"resourceVersion": str(backend.version)}), media=call.media)


_VERBS: Final = {
    ("GET", True): "get",
    ("HEAD", True): "get",
    ("GET", False): "list",
    ("POST", False): "create",
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
