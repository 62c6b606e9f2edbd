"""Handlers of creates, updates, patches and server-side applies."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from ocf.cluster.protocol import PatchOptions, Subresource
from ocf.errors import BadRequestError, FieldProblem
from ocf.objects import Manifest
from ocf_server.api.status_errors import bad_request, go_shape, invalid
from ocf_server.api.write_options import FieldValidation
from ocf_server.http.backend import Backend
from ocf_server.http.request import RequestContext, WriteQuery, object_response
from ocf_server.http.request_body import duplicates, is_apply, read_object, read_patch
from ocf_server.http.resource_catalog import ServedResource
from ocf_server.http.responses import Response
from ocf_server.registry.request_checks import metadata_of, require_typed

__all__ = ["handle_create", "handle_patch", "handle_update", "read_sent"]

_SCALE: Final = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
_PARTS: Final[Mapping[Subresource | None, Mapping[str, str]]] = {
    Subresource.SCALE: _SCALE,
    Subresource.EVICTION: {"apiVersion": "policy/v1", "kind": "Eviction"},
    Subresource.BINDING: {"apiVersion": "v1", "kind": "Binding"},
    Subresource.TOKEN: {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"},
}
"""What the endpoints of subresources accept where that is not the object itself."""


def read_sent(context: RequestContext) -> Manifest:
    """Return the object in the body of a request; fields that follow from the path are optional and are set.

    Raises:
        BadRequestError: If the body is not an object of the kind and the namespace in the path.
    """
    kind = context.kind
    expected = _PARTS.get(context.subresource, {"apiVersion": kind.api_version, "kind": kind.kind})
    version = expected["apiVersion"].rpartition("/")[2]
    sent = read_object(context.body, context.content_type, expected["kind"], version)
    if context.subresource is Subresource.EVICTION and sent.get("apiVersion") == "policy/v1beta1":
        sent["apiVersion"] = "policy/v1"
    for name, wanted in expected.items():
        if sent.setdefault(name, wanted) != wanted:
            raise _foreign(sent, context)
    _require_metadata(sent.get("metadata"), expected["kind"], kind)
    sent["metadata"] = metadata = dict(metadata_of(sent))
    namespace = metadata.get("namespace") or ""
    if kind.namespaced and namespace not in ("", context.path.namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if context.path.namespace:
        metadata["namespace"] = context.path.namespace
    return sent


def _require_metadata(metadata: Any, name: str, kind: ServedResource) -> None:
    """Raise BadRequestError if metadata are not an object, or have a name or a namespace that is not a text."""
    problem = ""
    if not isinstance(metadata, dict | None):
        target = "Go value" if kind.custom else f"Go struct field {name}.metadata"
        problem = f"{go_shape(metadata)} into {target} of type v1.ObjectMeta"
    for field, value in metadata.items() if isinstance(metadata, dict) else ():
        if field in ("name", "namespace") and not isinstance(value, str | None):
            target = f"ObjectMeta.{field}" if kind.custom else f"ObjectMeta.metadata.{field}"
            problem = problem or f"{go_shape(value)} into Go struct field {target} of type string"
    if problem:
        head = f'{name} in version "{kind.version}" cannot be handled as a {name}'
        raise bad_request(f"{head}: json: cannot unmarshal {problem}")


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


async def handle_create(backend: Backend, context: RequestContext) -> Response:
    """Return the response to a create of an object or of a subresource."""
    options = WriteQuery.read(context.query, "CreateOptions")
    sent, part = read_sent(context), context.subresource
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
    return backend.checking(options.validation, context.warn, found, context.user)


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


async def handle_update(backend: Backend, context: RequestContext) -> Response:
    """Return the response to an update, which creates a missing object if its kind allows that."""
    options = WriteQuery.read(context.query, "UpdateOptions")
    sent = _named(context, read_sent(context))
    if context.subresource is Subresource.SCALE:
        sent = {**sent, "apiVersion": context.kind.api_version, "kind": context.kind.kind}
    known = backend.stored(context.kind, context.path.namespace, context.path.name)
    manager, part = context.manager(options), context.subresource
    with _checking(backend, context, options):
        stored = await backend.wrapped.update(sent, field_manager=manager, subresource=part, dry_run=options.dry_run)
    return object_response(context, stored, 200 if known else 201)


async def handle_patch(backend: Backend, context: RequestContext) -> Response:
    """Return the response to a patch of any type, among them a server-side apply."""
    try:
        patch_type, patch = read_patch(context.body, context.content_type)
    except BadRequestError:
        # A real API server reads the object first.
        if backend.stored(context.kind, context.path.namespace, context.path.name) is None and not is_apply(
            context.content_type
        ):
            await backend.wrapped.get(context.key)
        raise
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
    if not options.field_manager:
        problem = FieldProblem("fieldManager", "Required value: is required for apply patch")
        raise invalid("PatchOptions.meta.k8s.io", "", [problem])
    if sent is None:
        raise bad_request("invalid object type: /, Kind=")
    stored = backend.stored(context.kind, context.path.namespace, context.path.name)
    with _checking(backend, context, options):
        applied = await backend.wrapped.apply(
            _applied(backend, context, sent),
            field_manager=options.field_manager,
            force=bool(options.force),
            subresource=context.subresource,
            dry_run=options.dry_run,
        )
    return object_response(context, applied, 201 if stored is None else 200)


def _applied(backend: Backend, context: RequestContext, sent: Manifest) -> Manifest:
    is_scale = context.subresource is Subresource.SCALE
    expected = _SCALE if is_scale else {"apiVersion": context.kind.api_version, "kind": context.kind.kind}
    found = {name: value if isinstance(value := sent.get(name), str) else "" for name in expected}
    if found != expected:
        group, _, version = found["apiVersion"].rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={found['kind']}")
    metadata = dict(metadata_of(sent))
    if not isinstance(sent.get("metadata"), dict | None) or not all(
        isinstance(metadata.get(field), str | None) for field in ("name", "namespace")
    ):
        # The API server checks all types before the name.
        require_typed(sent, backend.registry.resource(context.kind.api_version, context.kind.kind))
    metadata.setdefault("name", context.path.name)
    namespace = metadata.get("namespace") or ""
    _named(context, {"metadata": metadata})
    if context.path.namespace:
        if namespace not in ("", context.path.namespace):
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = context.path.namespace
    named = {**sent, "metadata": metadata}
    return {**named, "apiVersion": context.kind.api_version, "kind": context.kind.kind} if is_scale else named
