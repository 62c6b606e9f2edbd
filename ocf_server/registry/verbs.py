"""Write verbs of an object and its status: create, update, patch, apply.

Each verb computes the new object and its managed fields from the request; `generic_store` does the rest.
"""

from typing import Any, Final

from ocf.cluster.protocol import DeleteOptions, PatchType
from ocf.errors import ApiError, FieldProblem, api_error
from ocf.objects import Manifest, ObjectKey
from ocf.objects.json_equality import equal_json
from ocf.objects.manifest import split_api_version
from ocf.schema.builtin import ApiResource
from ocf_server.api.status_errors import (
    bad_request,
    go_json,
    go_shape,
    go_text,
    invalid,
    not_found,
    stale,
    unsupported_patch,
)
from ocf_server.api.write_options import WriteOptions
from ocf_server.codec.decoding import DecodeError
from ocf_server.managedfields.field_manager import (
    APPLY,
    UPDATE,
    ConversionError,
    Managed,
    ManagerIdentifier,
    applied,
    read_entries,
    updated,
    write_entries,
)
from ocf_server.managedfields.typed import ElementError
from ocf_server.patch.dispatch import patched
from ocf_server.registry import generic_store
from ocf_server.registry.access_reviews import answer, is_review
from ocf_server.registry.conversion import convert
from ocf_server.registry.pending_write import PendingWrite
from ocf_server.registry.registry import Registry, place_of, without_managed_fields
from ocf_server.registry.request_checks import (
    apply_error,
    decode,
    metadata_of,
    precondition_failed,
    require_known,
    require_same,
    require_subresource,
    require_typed,
    require_verb,
)
from ocf_server.registry.strategy import allows_create_on_update, ignored_fields

__all__ = ["apply", "create", "delete", "patch", "restore", "update"]

_DUPLICATE_OWNERS: Final = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject "
    "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
)


def _body(manifest: Manifest, resource: ApiResource, options: WriteOptions, live: Manifest | None = None) -> Manifest:
    """Return the object of a request; parts that are those of the live object are not decoded again."""

    def unreadable(problem: str) -> ApiError:
        kind = resource.kind
        return bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {problem}')

    try:
        new = decode(manifest, resource, live=live)
    except DecodeError as error:
        raise unreadable(str(error)) from error
    require_known(manifest, resource, options, rejected=unreadable)
    _drop_duplicate_owners(new, options)
    return new


def _drop_duplicate_owners(manifest: Manifest, options: WriteOptions) -> None:
    """Remove duplicate owner references and warn of them."""
    owners = manifest["metadata"].get("ownerReferences") or []
    kept: list[Any] = []
    duplicates: list[str] = []
    for owner in owners:
        if any(equal_json(owner, other) for other in kept):
            duplicates.append(owner["uid"])
        else:
            kept.append(owner)
    if duplicates:
        manifest["metadata"]["ownerReferences"] = kept
        options.warn(f"{_DUPLICATE_OWNERS}{go_text(duplicates)}")


def _round_trip(registry: Registry, manifest: Manifest, resource: ApiResource) -> Manifest:
    """Convert a manifest of a built-in kind to its storage version and back."""
    return manifest if resource.home is None or resource.custom else registry.round_trip(manifest, resource)


def _set_managed(manifest: Manifest, managed: Managed) -> Manifest:
    manifest["metadata"].pop("managedFields", None)
    if managed:
        manifest["metadata"]["managedFields"] = write_entries(managed.items())
    return manifest


def _managed_of_request(live: Manifest | None, sent: Manifest) -> Managed:
    """Return the managers before a write; a client can send managed fields, or an empty list to remove them."""
    entries = metadata_of(sent).get("managedFields")
    if entries in ([], [{}]):
        return {}
    try:
        managed = read_entries(entries)
    except ValueError:
        managed = {}
    return managed or read_entries(live["metadata"].get("managedFields") if live else None)


def _tracked(  # noqa: PLR0917 (the facts of one request)
    registry: Registry, resource: ApiResource, before: Manifest, new: Manifest, managed: Managed, options: WriteOptions
) -> Managed:
    """Return the field managers after a create, an update or a patch."""
    try:
        return updated(
            before,
            without_managed_fields(new),
            resource.type,
            managed,
            manager=ManagerIdentifier.of(
                options.field_manager, UPDATE, resource.api_version, options.subresource or ""
            ),
            api_version=resource.api_version,
            ignored=ignored_fields(resource, options.subresource),
            now=registry.timestamp(),
            in_version=registry.in_version(resource),
        )
    except (ConversionError, ElementError):
        # A real API server then removes all managed fields: a list item without its key cannot be owned, and a field
        # that the version of another manager does not declare cannot be compared.
        return {}


def create(
    registry: Registry, manifest: Manifest, options: WriteOptions, *, named: bool = False
) -> PendingWrite[Manifest]:
    """Create an object.

    Args:
        manifest: The object; it is not changed.
        named: Whether the request is an update, which names the object.

    Returns:
        The object as stored, or a review with its answer; it must not be changed.
    """
    resource = registry.resource(str(manifest.get("apiVersion")), str(manifest.get("kind")))
    require_verb(resource, "create")
    if is_review(resource):
        return answer(registry, resource, manifest, options)
    new = _body(manifest, resource, options)
    if named and (uid := new["metadata"].get("uid")):
        problem = f"UID in precondition: {uid}, UID in object meta: "
        raise precondition_failed(resource, _key(new, resource), problem, dry_run=options.dry_run)
    registry.require_creatable(resource, new["metadata"].get("namespace", ""), new["metadata"].get("name", ""))
    new = _round_trip(registry, new, resource)
    managed = _tracked(registry, resource, registry.empty(resource), new, _managed_of_request(None, manifest), options)
    stored = yield from generic_store.create(registry, resource, _set_managed(new, managed), options, named=named)
    return stored


def restore(registry: Registry, manifest: Manifest) -> Manifest:
    """Store an object as a server has returned it, without validation and admission.

    Args:
        manifest: The object; it is not changed.

    Returns:
        The object as stored; it must not be changed.
    """
    resource = registry.resource(str(manifest.get("apiVersion")), str(manifest.get("kind")))
    new = _body(manifest, resource, WriteOptions())
    metadata = new["metadata"]
    if not metadata.get("name"):
        raise bad_request(f"{resource.kind} without a name cannot be restored: metadata.name is missing")
    if not resource.namespaced:
        metadata.pop("namespace", None)
    metadata["uid"] = metadata.get("uid") or registry.new_uid()
    metadata["creationTimestamp"] = metadata.get("creationTimestamp") or registry.timestamp()
    return registry.write(resource, place_of(new), new)


def update(registry: Registry, manifest: Manifest, options: WriteOptions) -> PendingWrite[Manifest]:
    """Replace an object, or its status.

    Args:
        manifest: The object; it is not changed.
        options: Options of the request; the subresource is None or the status.

    Returns:
        The object as stored; it must not be changed.
    """
    resource = registry.resource(str(manifest.get("apiVersion")), str(manifest.get("kind")))
    require_verb(resource, "update")
    key = _key(manifest, resource)
    require_subresource(resource, key.name, options.subresource)
    live = registry.read(resource, (key.namespace, key.name))
    if live is None:
        if options.subresource is None and allows_create_on_update(resource):
            return (yield from create(registry, manifest, options, named=True))
        # A request is decoded before the object is looked for.
        _body(manifest, resource, options)
        raise not_found(resource.group_resource, key.name)
    new = _body(manifest, resource, options, live)
    uid = new["metadata"].get("uid")
    if uid and uid != live["metadata"]["uid"]:
        problem = f"UID in precondition: {uid}, UID in object meta: {live['metadata']['uid']}"
        raise precondition_failed(resource, key, problem, dry_run=options.dry_run)
    return (yield from _replace(registry, resource, live, new, manifest, options))


def delete(
    registry: Registry, key: ObjectKey, wanted: DeleteOptions, options: WriteOptions
) -> PendingWrite[Manifest | None]:
    """Delete an object; result and errors are those of `generic_store.delete`."""
    resource = registry.resource(key.api_version, key.kind)
    return generic_store.delete(
        registry,
        resource,
        registry.find(resource, key),
        options,
        preconditions=wanted.preconditions,
        propagation=wanted.propagation,
        grace_period_seconds=wanted.grace_period_seconds,
    )


def _key(manifest: Manifest, resource: ApiResource) -> ObjectKey:
    metadata = metadata_of(manifest)
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise bad_request("the name of the object was undeterminable: name must be provided")
    namespace = str(metadata.get("namespace") or "") if resource.namespaced else ""
    if resource.namespaced and not namespace:
        raise bad_request(f'{resource.kind} "{name}" is namespaced: metadata.namespace must be provided')
    return ObjectKey(resource.api_version, resource.kind, name, namespace)


def _replace(  # noqa: PLR0917 (the facts of one request)
    registry: Registry, resource: ApiResource, live: Manifest, new: Manifest, sent: Manifest, options: WriteOptions
) -> PendingWrite[Manifest]:
    """Replace the live object by a new state, for an update or a patch."""
    new = _round_trip(registry, new, resource)
    managed = _managed_of_request(live, {} if options.subresource else sent)
    if managed:
        # An object whose managed fields a client removed stays untracked until the next apply.
        managed = _tracked(registry, resource, without_managed_fields(live), new, managed, options)
    new = _set_managed(new, managed)
    stored = yield from generic_store.update(registry, resource, live, new, options)
    return stored


def patch(
    registry: Registry, key: ObjectKey, change: Any, patch_type: PatchType, options: WriteOptions
) -> PendingWrite[Manifest]:
    """Patch an object, or its status.

    Args:
        change: The patch; it is not changed.
        options: Options of the request; the subresource is None or the status.

    Returns:
        The object as stored; it must not be changed.
    """
    resource = registry.resource(key.api_version, key.kind)
    require_verb(resource, "patch")
    require_subresource(resource, key.name, options.subresource)
    live = registry.find(resource, key)
    if patch_type is PatchType.STRATEGIC_MERGE and resource.custom:
        raise unsupported_patch()
    sent = patched(live, change, patch_type, resource.type)
    sent = _of_kind(registry, sent, resource, change, patch_type)
    require_known(
        sent,
        resource,
        options,
        rejected=lambda text: _invalid_patch(change, sent, patch_type, text),
        by_name=True,
    )
    try:
        new = decode(sent, resource)
    except DecodeError as error:
        raise _undecodable_patch(change, sent, patch_type, error) from error
    require_same(new, key)
    _drop_duplicate_owners(new, options)
    return (yield from _replace(registry, resource, live, new, sent, options))


def _of_kind(registry: Registry, sent: Manifest, resource: ApiResource, change: Any, patch_type: PatchType) -> Manifest:
    """Return the result of a patch in the version of the object; raise ApiError if the patch changes the kind.

    A strategic merge patch cannot change kind and version: the API server ignores both in its result.
    """
    api_version, kind = _version_and_kind(sent, resource, change, patch_type)
    if (api_version, kind) == (resource.api_version, resource.kind):
        return {**sent, "kind": kind}
    if resource.custom:
        wanted = (("kind", kind, resource.kind), ("apiVersion", api_version, resource.api_version))
        problems = [
            FieldProblem(field, f"Invalid value: {go_json(found)}: must be {right}")
            for field, found, right in wanted
            if found != right
        ]
        group = split_api_version(api_version)[0]
        raise invalid(f"{kind}.{group}" if group else kind, str(metadata_of(sent).get("name", "")), problems)
    if patch_type is PatchType.STRATEGIC_MERGE:
        return {**sent, "apiVersion": resource.api_version, "kind": resource.kind}
    other = next((each for each in registry.versions(resource) if each.api_version == api_version), None)
    if other is not None and other.kind == kind:
        try:
            return convert(decode(sent, other), other, resource)
        except DecodeError as error:
            raise _undecodable_patch(change, sent, patch_type, error) from error
    raise _invalid_patch(change, sent, patch_type, _kind_problem(registry, api_version, kind, resource))


def _version_and_kind(sent: Manifest, resource: ApiResource, change: Any, patch_type: PatchType) -> tuple[str, str]:
    """Return version and kind of the result of a patch; raise ApiError if the patch removed them or set no texts."""
    for field in ("apiVersion", "kind"):
        if not isinstance(sent.get(field), str | None):
            raise _invalid_patch(change, sent, patch_type, _type_problem(field, sent[field], patch_type))
    api_version, kind = sent.get("apiVersion") or "", sent.get("kind") or ""
    if patch_type is PatchType.STRATEGIC_MERGE or (api_version and kind):
        return api_version, kind
    if resource.custom and not kind:
        raise _invalid_patch(change, sent, patch_type, f"Object 'Kind' is missing in '{go_json(sent)}'")
    if resource.custom and "apiVersion" in sent:
        problem = ".apiVersion accessor error: <nil> is of the type <nil>, expected string"
        raise _invalid_patch(change, sent, patch_type, problem)
    if resource.custom:
        missing = "Object 'apiVersion' is missing in 'object has no apiVersion field'"
        raise api_error(f"Internal error occurred: {missing}", code=500, reason="InternalError")
    if not api_version:
        name = metadata_of(sent).get("name")
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    return api_version, resource.kind


def _type_problem(field: str, value: Any, patch_type: PatchType) -> str:
    if patch_type is PatchType.STRATEGIC_MERGE:
        return _conversion_problem(value, "string")
    problem = f"json: cannot unmarshal {go_shape(value)} into Go struct field .{field} of type string"
    return f"couldn't get version/kind; json parse error: {problem}"


def _conversion_problem(value: Any, wanted: str) -> str:
    """Return the text of k8s.io/apimachinery/pkg/runtime/converter.go, which the API server uses without JSON."""
    kind = {dict: "map", list: "slice", str: "string", bool: "bool", int: "int64"}.get(type(value), "float64")
    for shape, start in (("map", "map["), ("slice", "[]"), ("struct", "v1.")):
        if wanted.startswith(start):
            return f"cannot restore {shape} from{':' if shape == 'struct' else ''} {kind}"
    # Go could make a text of an integer, and an integer of a fraction.
    if (kind, wanted) in (("int64", "string"), ("float64", "int32"), ("float64", "int64")):
        return f"cannot convert {kind} to {wanted}"
    return f"unrecognized type: {wanted}"


def _kind_problem(registry: Registry, api_version: str, kind: str, resource: ApiResource) -> str:
    try:
        known = not registry.stored_as(api_version, kind).custom
    except ApiError:
        known = False
    if not known:
        return f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
    internal = resource.group.partition(".")[0] or "core"
    version = split_api_version(api_version)[1]
    return f"converting ({version}.{kind}) to ({internal}.{resource.kind}): unknown conversion"


def _invalid_patch(change: Any, sent: Manifest, patch_type: PatchType, text: str) -> ApiError:
    shown = go_text(change) if patch_type is PatchType.STRATEGIC_MERGE else go_json(sent)
    return invalid("", "", [FieldProblem("patch", f"Invalid value: {go_json(shown)}: {text}")])


def _undecodable_patch(change: Any, sent: Manifest, patch_type: PatchType, error: DecodeError) -> ApiError:
    """Return the error for a patch whose result does not match the type of the kind."""
    text = str(error)
    if patch_type is PatchType.STRATEGIC_MERGE:
        text = _unstructured_problem(error)
    return _invalid_patch(change, sent, patch_type, text)


def _unstructured_problem(error: DecodeError) -> str:
    """Return the text for a value that was decoded from JSON before its type was known."""
    if error.unstructured or not error.wanted:
        return error.unstructured or str(error)
    return _conversion_problem(error.value, error.wanted)


def apply(registry: Registry, manifest: Manifest, options: WriteOptions) -> PendingWrite[Manifest]:
    """Apply an object, or its status.

    Args:
        manifest: The applied manifest; it is not changed.
        options: Options of the request; the subresource is None or the status.

    Returns:
        The object as stored; it must not be changed.
    """
    resource = registry.resource(str(manifest.get("apiVersion")), str(manifest.get("kind")))
    require_verb(resource, "patch")
    key = _key(manifest, resource)
    require_subresource(resource, key.name, options.subresource)
    live = registry.read(resource, (key.namespace, key.name))
    if live is None and options.subresource is not None:
        raise not_found(resource.group_resource, key.name)
    if live is None:
        registry.require_creatable(resource, key.namespace, key.name)
    require_typed(manifest, resource)
    new, managed, same = _applied(registry, resource, live, manifest, options)
    if same and live is not None and not registry.has_admission() and registry.stores_as_sent(resource):
        return live
    base = live or registry.empty(resource)
    decoded = _converted(base if new is None else new, resource, live)
    final = _set_managed(_round_trip(registry, decoded, resource), managed)
    if live is None:
        uid = final["metadata"].get("uid")
        if uid:
            problem = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise stale(resource.group_resource, key.name, problem)
        return (yield from generic_store.create(registry, resource, final, options, named=True))
    return (yield from generic_store.update(registry, resource, live, final, options))


def _applied(
    registry: Registry, resource: ApiResource, live: Manifest | None, manifest: Manifest, options: WriteOptions
) -> tuple[Manifest | None, Managed, bool]:
    """Return the merged object (None if it equals the live one), its managers, and whether nothing changes."""
    base = live or registry.empty(resource)
    before = read_entries(base.get("metadata", {}).get("managedFields"))
    try:
        new, managed = applied(
            without_managed_fields(base) if live else base,
            manifest,
            resource.type,
            before,
            manager=ManagerIdentifier.of(options.field_manager, APPLY, resource.api_version, options.subresource or ""),
            api_version=resource.api_version,
            force=options.force,
            ignored=ignored_fields(resource, options.subresource),
            now=registry.timestamp(),
            empty=registry.empty(resource),
            in_version=registry.in_version(resource),
        )
    except ConversionError as error:
        raise api_error(str(error), code=500) from error
    except ElementError as error:
        raise apply_error("failed to create typed live object", metadata_of(manifest), resource, str(error)) from error
    return new, managed, new is None and managed == before


def _converted(manifest: Manifest, resource: ApiResource, live: Manifest | None) -> Manifest:
    try:
        return decode(manifest, resource, drop_nulls=False, live=live)
    except DecodeError as error:
        what, problem = "failed to convert new object", str(error)
        if not resource.custom:
            kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
            problem = f"unable to convert unstructured object to {kind}: {_unstructured_problem(error)}"
        raise apply_error(what, metadata_of(manifest), resource, problem, after=" to proper version") from error
