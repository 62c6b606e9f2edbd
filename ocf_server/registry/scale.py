"""Scale subresource of workloads.

Owners of `spec.replicas` are converted in both directions: a Scale has the field managers of the field in the parent,
and a write of a Scale becomes a managed fields entry of the parent with the subresource `scale`. Such an entry has no
time, as on a real API server.
"""

from dataclasses import replace
from typing import Any, Final

from ocf.cluster.protocol import PatchType, Subresource
from ocf.errors import ApiError, FieldProblem, ManifestError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.schema.builtin import ApiResource, ScalePaths, StructType, struct
from ocf_server.api.status_errors import bad_request, invalid, no_such_resource, unsupported_patch
from ocf_server.api.write_options import WriteOptions
from ocf_server.codec.decoding import DecodeError, decode
from ocf_server.managedfields.field_manager import (
    APPLY,
    UPDATE,
    Managed,
    ManagerEntry,
    ManagerIdentifier,
    applied,
    read_entries,
    updated,
    write_entries,
)
from ocf_server.managedfields.fieldset import FieldSet, contains, difference, insert
from ocf_server.patch.dispatch import patched
from ocf_server.registry import generic_store
from ocf_server.registry.pending_write import PendingWrite, Phase, Review, WriteOperation
from ocf_server.registry.registry import Registry, place_of
from ocf_server.registry.request_checks import apply_error, metadata_of, require_known, require_same, require_typed
from ocf_server.registry.selectors import selector_text

__all__ = ["apply_scale", "patch_scale", "scale_of", "update_scale"]

_SCALE_VERSION: Final = "autoscaling/v1"
_REPLICAS: Final = ("f:spec", "f:replicas")
_BUILTIN: Final = ScalePaths()
_OWNED: Final[FieldSet] = {"f:spec": {"f:replicas": {}}}
_SHOWN_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def _scale_type() -> StructType:
    return struct("autoscaling.v1.Scale")


def _scale_resource() -> ApiResource:
    return ApiResource(
        group="autoscaling",
        version="v1",
        kind="Scale",
        plural="scales",
        singular="scale",
        namespaced=True,
        subresources=frozenset(),
        verbs=frozenset(),
        type=_scale_type(),
    )


def _segments(path: str) -> tuple[str, ...]:
    return tuple(path.strip(".").split("."))


def _at(manifest: Manifest, path: str) -> Any:
    value: Any = manifest
    for name in _segments(path):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _paths(resource: ApiResource) -> ScalePaths:
    return resource.scale or _BUILTIN


def _owned(resource: ApiResource) -> tuple[tuple[str, ...], FieldSet]:
    """Return the field with the desired number of replicas, as a path and as a field set."""
    segments = tuple(f"f:{name}" for name in _segments(_paths(resource).spec))
    fields: FieldSet = {}
    insert(fields, segments)
    return segments, fields


def scale_of(parent: Manifest, resource: ApiResource) -> Manifest:
    """Return the Scale of a workload.

    Args:
        parent: The workload; it is not changed.

    Raises:
        NotFoundError: If the kind does not have a scale subresource.
    """
    if Subresource.SCALE not in resource.subresources:
        raise no_such_resource()
    metadata, paths = parent["metadata"], _paths(resource)
    replicas = _at(parent, paths.spec)
    status: dict[str, Any] = {"replicas": _at(parent, paths.status) or 0}
    if resource.scale is None:
        selector = parent.get("spec", {}).get("selector")
        # The selector of a ReplicationController is a plain map of labels, without `matchLabels`.
        text = selector_text({"matchLabels": selector} if resource.kind == "ReplicationController" else selector)
    else:
        text = _at(parent, paths.selector) if paths.selector else ""
    if text:
        status["selector"] = text
    return {
        "kind": "Scale",
        "apiVersion": _SCALE_VERSION,
        "metadata": {name: metadata[name] for name in _SHOWN_METADATA if name in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def _to_scale(managed: Managed, resource: ApiResource) -> Managed:
    """Return the field managers of the parent's replicas as field managers of the Scale."""
    segments, _ = _owned(resource)
    return {
        manager if manager.operation == APPLY else manager._replace(api_version=_SCALE_VERSION): ManagerEntry(
            _OWNED, _SCALE_VERSION
        )
        for manager, entry in managed.items()
        if entry.api_version == resource.api_version and contains(entry.fields, segments)
    }


def _to_parent(
    parents: Managed, scales: Managed, resource: ApiResource
) -> list[tuple[ManagerIdentifier, ManagerEntry]]:
    """Return the field managers of the parent after a write of the Scale.

    An apply identifies the same manager in every version, so its entry does not change. An update does not: its
    ownership of the replicas becomes a separate entry. As on a real API server, the list may then contain a manager
    twice; a reader uses the last entry.
    """
    out: list[tuple[ManagerIdentifier, ManagerEntry]] = []
    segments, owned = _owned(resource)
    left = {manager: entry for manager, entry in scales.items() if contains(entry.fields, _REPLICAS)}
    for manager, entry in parents.items():
        unaffected = entry.api_version != resource.api_version or not contains(entry.fields, segments)
        if unaffected or left.pop(manager, None) is not None:
            out.append((manager, entry))
        elif rest := difference(entry.fields, owned):
            out.append((manager, ManagerEntry(rest, entry.api_version, entry.time)))
    for manager in left:
        converted = manager if manager.operation == APPLY else manager._replace(api_version=resource.api_version)
        out.append((converted, ManagerEntry(owned, resource.api_version)))
    return out


def _write(  # noqa: PLR0917 (the facts of one request)
    registry: Registry, resource: ApiResource, live: Manifest, scale: Manifest, managed: Managed, options: WriteOptions
) -> PendingWrite[Manifest]:
    old = scale_of(live, resource)
    review = Review(Phase.MUTATING, WriteOperation.UPDATE, resource, *place_of(live), scale, old, options)
    admitted = (yield review) or scale
    parents = read_entries(live["metadata"].get("managedFields"))
    new = copy_json(live)
    _put(new, _segments(_paths(resource).spec), _replicas(admitted, live, resource))
    new["metadata"]["managedFields"] = write_entries(_to_parent(parents, managed, resource))
    for name in ("resourceVersion", "uid"):
        if scale["metadata"].get(name):
            new["metadata"][name] = scale["metadata"][name]
    yield replace(review, phase=Phase.VALIDATING, object=admitted)
    plain = replace(options, subresource=None)
    # The parent is not reviewed again: webhooks for `deployments/scale` have seen the Scale.
    stored = yield from generic_store.update(registry, resource, live, new, plain, reviewed=True)
    return scale_of(stored, resource)


def _replicas(scale: Manifest, live: Manifest, resource: ApiResource) -> int:
    replicas: int = scale["spec"].get("replicas", 0)
    if replicas < 0 and not resource.custom:  # replicas of a custom resource are validated with the object
        detail = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid("Scale.autoscaling", live["metadata"]["name"], [FieldProblem("spec.replicas", detail)])
    return replicas


def _put(manifest: Manifest, segments: tuple[str, ...], value: Any) -> None:
    for name in segments[:-1]:
        manifest = manifest.setdefault(name, {})
    manifest[segments[-1]] = value


def _addressed(manifest: Manifest) -> tuple[ObjectKey, Manifest]:
    """Split a manifest for the scale subresource into the key of the scaled object and its Scale."""
    if manifest.get("kind") == "Scale":
        raise bad_request(
            "a Scale does not identify the scaled object: set apiVersion and kind of that object, or patch by key"
        )
    try:
        key = ObjectKey.of(manifest)
    except ManifestError as error:
        raise bad_request(str(error)) from error
    return key, {**manifest, "apiVersion": _SCALE_VERSION, "kind": "Scale"}


def _decoded(sent: Manifest, key: ObjectKey) -> Manifest:
    require_same(sent, key)
    try:
        return decode(sent, _scale_type())
    except DecodeError as error:
        raise _unreadable(str(error)) from error


def _unreadable(problem: str) -> ApiError:
    return bad_request(f'Scale in version "v1" cannot be handled as a Scale: {problem}')


def update_scale(registry: Registry, manifest: Manifest, options: WriteOptions) -> PendingWrite[Manifest]:
    """Replace the Scale of a workload.

    Args:
        manifest: apiVersion, kind and name of the scaled object, and `spec.replicas`; a Scale does not identify the
            scaled object. It is not changed.

    Returns:
        The Scale after the write.

    Raises:
        BadRequestError: If the manifest does not identify the scaled object.
    """
    key, sent = _addressed(manifest)
    return (yield from _update(registry, key, sent, options))


def _update(registry: Registry, key: ObjectKey, sent: Manifest, options: WriteOptions) -> PendingWrite[Manifest]:
    resource = registry.resource(key.api_version, key.kind)
    live = registry.find(resource, key)
    old = scale_of(live, resource)
    new = _decoded(sent, key)
    require_known(sent, _scale_resource(), options, rejected=_unreadable)
    managed = _to_scale(read_entries(live["metadata"].get("managedFields")), resource)
    # Replicas without an owner stay untracked: tracking starts only with a create or an apply.
    if managed:
        managed = updated(
            old,
            {**new, "metadata": old["metadata"], "status": old["status"]},
            _scale_type(),
            managed,
            manager=ManagerIdentifier.of(options.field_manager, UPDATE, _SCALE_VERSION, Subresource.SCALE),
            api_version=_SCALE_VERSION,
            ignored={"f:status": {}},
            now="",
        )
    return (yield from _write(registry, resource, live, new, managed, options))


def patch_scale(
    registry: Registry, key: ObjectKey, change: Any, patch_type: PatchType, options: WriteOptions
) -> PendingWrite[Manifest]:
    """Patch the Scale of a workload; other arguments, result and errors are those of `update_scale`."""
    resource = registry.resource(key.api_version, key.kind)
    if patch_type is PatchType.STRATEGIC_MERGE and resource.custom:
        raise unsupported_patch()
    sent = patched(scale_of(registry.find(resource, key), resource), change, patch_type, _scale_type())
    return (yield from _update(registry, key, sent, options))


def apply_scale(registry: Registry, manifest: Manifest, options: WriteOptions) -> PendingWrite[Manifest]:
    """Apply the Scale of a workload; arguments, result and errors are those of `update_scale`, plus conflicts.

    For a custom resource, a real API server fails unless the apply changes nothing; so does this function.
    """
    key, config = _addressed(manifest)
    resource = registry.resource(key.api_version, key.kind)
    live = registry.find(resource, key)
    old = scale_of(live, resource)
    require_typed(config, _scale_resource())
    sent = _decoded(config, key)
    new, managed = applied(
        old,
        config,
        _scale_type(),
        _to_scale(read_entries(live["metadata"].get("managedFields")), resource),
        manager=ManagerIdentifier.of(options.field_manager, APPLY, _SCALE_VERSION, Subresource.SCALE),
        api_version=_SCALE_VERSION,
        force=options.force,
        ignored={"f:status": {}},
        now="",
        empty=decode({"apiVersion": _SCALE_VERSION, "kind": "Scale"}, _scale_type()),
    )
    if resource.custom and new is not None:
        problem = f"request to convert CR to an invalid group/version: {_SCALE_VERSION}"
        what, after = "failed to convert new object", " to proper version"
        raise apply_error(what, metadata_of(config), _scale_resource(), problem, after=after)
    merged = decode(new if new is not None else old, _scale_type())
    merged["metadata"] = sent["metadata"]
    return (yield from _write(registry, resource, live, merged, managed, options))
