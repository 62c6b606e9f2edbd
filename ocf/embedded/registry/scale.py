"""The Scale of a workload: its replicas under an object of another kind.

Who owns `spec.replicas` is translated there and back: a Scale shows the managers of the parent's field, and a write
through it becomes an entry of the parent with the subresource `scale`. Such an entry has no time; that is how a real
server writes it.
"""

from dataclasses import replace
from typing import Any, Final

from ocf.cluster.protocol import PatchType, Subresource
from ocf.embedded.api.status_errors import bad_request, invalid, no_such_resource, unsupported_patch
from ocf.embedded.api.write_options import WriteOptions
from ocf.embedded.codec.decoding import DecodeError, decode
from ocf.embedded.managedfields.field_manager import (
    APPLY,
    UPDATE,
    FieldManager,
    Managed,
    ManagerEntry,
    applied,
    read_entries,
    updated,
    write_entries,
)
from ocf.embedded.managedfields.fieldset import FieldSet, contains, difference, insert
from ocf.embedded.patch.dispatch import patched
from ocf.embedded.registry import generic_store
from ocf.embedded.registry.pending_write import Operation, PendingWrite, Phase, Review
from ocf.embedded.registry.registry import Registry, place_of
from ocf.embedded.registry.request_checks import apply_error, metadata_of, require_known, require_same, require_typed
from ocf.embedded.registry.selectors import selector_text
from ocf.errors import ApiError, FieldProblem, ManifestError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.schema.builtin import ApiResource, ScalePaths, StructType, struct

__all__ = ["addressed", "apply_scale", "patch_scale", "scale_of", "update_scale"]

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


def _way(path: str) -> tuple[str, ...]:
    return tuple(path.strip(".").split("."))


def _at(manifest: Manifest, path: str) -> Any:
    value: Any = manifest
    for name in _way(path):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _paths(resource: ApiResource) -> ScalePaths:
    return resource.scale or _BUILTIN


def _owned(resource: ApiResource) -> tuple[tuple[str, ...], FieldSet]:
    """Return the field that holds the wanted count, as a path and as a set."""
    way = tuple(f"f:{name}" for name in _way(_paths(resource).spec))
    fields: FieldSet = {}
    insert(fields, way)
    return way, fields


def scale_of(parent: Manifest, resource: ApiResource) -> Manifest:
    """Return the Scale of a workload.

    Args:
        parent: The workload; it is not changed.
        resource: Its kind.

    Returns:
        A new Scale.

    Raises:
        NotFoundError: If the kind has none.
    """
    if Subresource.SCALE not in resource.subresources:
        raise no_such_resource()
    metadata, paths = parent["metadata"], _paths(resource)
    replicas = _at(parent, paths.spec)
    status: dict[str, Any] = {"replicas": _at(parent, paths.status) or 0}
    if resource.scale is None:
        selector = parent.get("spec", {}).get("selector")
        # The oldest of them knows labels only, and holds them without a name.
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
    """Return the managers of the parent's replicas as managers of a Scale's."""
    way, _ = _owned(resource)
    return {
        who if who.operation == APPLY else who._replace(api_version=_SCALE_VERSION): ManagerEntry(
            _OWNED, _SCALE_VERSION
        )
        for who, entry in managed.items()
        if entry.api_version == resource.api_version and contains(entry.fields, way)
    }


def _to_parent(parents: Managed, scales: Managed, resource: ApiResource) -> list[tuple[FieldManager, ManagerEntry]]:
    """Return the parent's managers after a write to the Scale.

    An apply is the same manager in every version, so its entry stays as it is. An update is not: what it owns of the
    replicas becomes an entry of its own, beside the one with the rest. A real server does that, and so the list may
    hold a manager twice; whoever reads it takes the last.
    """
    out: list[tuple[FieldManager, ManagerEntry]] = []
    way, owned = _owned(resource)
    left = {who: entry for who, entry in scales.items() if contains(entry.fields, _REPLICAS)}
    for who, entry in parents.items():
        silent = entry.api_version != resource.api_version or not contains(entry.fields, way)
        if silent or left.pop(who, None) is not None:
            out.append((who, entry))
        elif rest := difference(entry.fields, owned):
            out.append((who, ManagerEntry(rest, entry.api_version, entry.time)))
    for who in left:
        manager = who if who.operation == APPLY else who._replace(api_version=resource.api_version)
        out.append((manager, ManagerEntry(owned, resource.api_version)))
    return out


def _write(  # noqa: PLR0917 (the facts of one request)
    core: Registry, resource: ApiResource, live: Manifest, scale: Manifest, managed: Managed, options: WriteOptions
) -> PendingWrite[Manifest]:
    old = scale_of(live, resource)
    about = Review(Phase.MUTATING, Operation.UPDATE, resource, *place_of(live), scale, old, options)
    admitted = (yield about) or scale
    parents = read_entries(live["metadata"].get("managedFields"))
    new = copy_json(live)
    _put(new, _way(_paths(resource).spec), _replicas(admitted, live, resource))
    new["metadata"]["managedFields"] = write_entries(_to_parent(parents, managed, resource))
    for name in ("resourceVersion", "uid"):
        if scale["metadata"].get(name):
            new["metadata"][name] = scale["metadata"][name]
    yield replace(about, phase=Phase.VALIDATING, object=admitted)
    plain = replace(options, subresource=None)
    stored = yield from generic_store.update(core, resource, live, new, plain, reviewed=True)
    return scale_of(stored, resource)


def _replicas(scale: Manifest, live: Manifest, resource: ApiResource) -> int:
    replicas: int = scale["spec"].get("replicas", 0)
    if replicas < 0 and not resource.custom:  # that of a custom resource is judged with the whole object
        detail = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid("Scale.autoscaling", live["metadata"]["name"], [FieldProblem("spec.replicas", detail)])
    return replicas


def _put(manifest: Manifest, way: tuple[str, ...], value: Any) -> None:
    for name in way[:-1]:
        manifest = manifest.setdefault(name, {})
    manifest[way[-1]] = value


def addressed(manifest: Manifest) -> tuple[ObjectKey, Manifest]:
    """Take apart a manifest that is sent to a Scale.

    Args:
        manifest: apiVersion, kind and name of the scaled object, and `spec.replicas`: a Scale does not
            identify the scaled object.

    Returns:
        The scaled object, and the Scale that is meant.

    Raises:
        BadRequestError: If the manifest does not say what is scaled.
    """
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


def update_scale(core: Registry, key: ObjectKey, sent: Manifest, options: WriteOptions) -> PendingWrite[Manifest]:
    """Replace the Scale of a workload.

    Args:
        core: The server.
        key: The workload.
        sent: The Scale; it is not changed.
        options: How the request wants to be treated.

    Returns:
        The Scale after.

    Raises:
        ApiError: As a server refuses it.
    """
    resource = core.resource(key.api_version, key.kind)
    live = core.find(resource, key)
    old = scale_of(live, resource)
    new = _decoded(sent, key)
    require_known(sent, _scale_resource(), options, refused=_unreadable)
    managed = _to_scale(read_entries(live["metadata"].get("managedFields")), resource)
    # Replicas that nobody owns stay so: a server begins to track an object only when it is created or applied.
    if managed:
        managed = updated(
            old,
            {**new, "metadata": old["metadata"], "status": old["status"]},
            _scale_type(),
            managed,
            who=FieldManager.of(options.field_manager, UPDATE, _SCALE_VERSION, Subresource.SCALE),
            api_version=_SCALE_VERSION,
            ignored={"f:status": {}},
            now="",
        )
    return (yield from _write(core, resource, live, new, managed, options))


def patch_scale(
    core: Registry, key: ObjectKey, change: Any, patch_type: PatchType, options: WriteOptions
) -> PendingWrite[Manifest]:
    """Change parts of the Scale of a workload; arguments and answer as of `update_scale`."""
    resource = core.resource(key.api_version, key.kind)
    if patch_type is PatchType.STRATEGIC_MERGE and resource.custom:
        raise unsupported_patch()
    sent = patched(scale_of(core.find(resource, key), resource), change, patch_type, _scale_type())
    return (yield from update_scale(core, key, sent, options))


def apply_scale(core: Registry, key: ObjectKey, config: Manifest, options: WriteOptions) -> PendingWrite[Manifest]:
    """Apply the Scale of a workload; arguments and answer as of `update_scale`, conflicts as of an apply.

    No server can do that with a custom resource, unless it changes nothing.
    """
    resource = core.resource(key.api_version, key.kind)
    live = core.find(resource, key)
    old = scale_of(live, resource)
    require_typed(config, _scale_resource())
    sent = _decoded(config, key)
    new, managed = applied(
        old,
        config,
        _scale_type(),
        _to_scale(read_entries(live["metadata"].get("managedFields")), resource),
        who=FieldManager.of(options.field_manager, APPLY, _SCALE_VERSION, Subresource.SCALE),
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
    return (yield from _write(core, resource, live, merged, managed, options))
