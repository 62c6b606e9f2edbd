"""The Scale of a workload: its replicas under an object of another kind.

Who owns `spec.replicas` is translated there and back: a Scale shows the managers of the parent's field, and a write
through it becomes an entry of the parent with the subresource `scale`. Such an entry has no time; that is how a real
server writes it.
"""

from typing import Any, Final

from ocf.cluster.embedded import lifecycle
from ocf.cluster.embedded.core import Core
from ocf.cluster.embedded.decoding import DecodeError, decode
from ocf.cluster.embedded.failures import bad_request, invalid, no_such_resource
from ocf.cluster.embedded.fieldset import FieldSet, contains, difference
from ocf.cluster.embedded.managers import (
    APPLY,
    UPDATE,
    Entry,
    Managed,
    Manager,
    applied,
    read_entries,
    updated,
    write_entries,
)
from ocf.cluster.embedded.schema import Resource, StructType, struct
from ocf.cluster.embedded.selectors import selector_text
from ocf.cluster.embedded.writes import demand_same, demand_typed, patched
from ocf.cluster.protocol import PatchType, Subresource
from ocf.errors import FieldProblem, ManifestError
from ocf.objects import Manifest, ObjectKey, copy_json

__all__ = ["addressed", "apply_scale", "patch_scale", "scale_of", "update_scale"]

_SCALE_VERSION: Final = "autoscaling/v1"
_REPLICAS: Final = ("f:spec", "f:replicas")
_OWNED: Final[FieldSet] = {"f:spec": {"f:replicas": {}}}
_SHOWN_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def _scale_type() -> StructType:
    return struct("autoscaling.v1.Scale")


def _scale_resource() -> Resource:
    return Resource(
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


def scale_of(parent: Manifest, resource: Resource) -> Manifest:
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
    metadata = parent["metadata"]
    replicas = parent.get("spec", {}).get("replicas", 0)
    status: dict[str, Any] = {"replicas": parent.get("status", {}).get("replicas", 0)}
    text = selector_text(parent.get("spec", {}).get("selector"))
    if text:
        status["selector"] = text
    return {
        "kind": "Scale",
        "apiVersion": _SCALE_VERSION,
        "metadata": {name: metadata[name] for name in _SHOWN_METADATA if name in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def _to_scale(managed: Managed, api_version: str) -> Managed:
    """Return the managers of the parent's replicas as managers of a Scale's."""
    return {
        who if who.operation == APPLY else who._replace(api_version=_SCALE_VERSION): Entry(_OWNED, _SCALE_VERSION)
        for who, entry in managed.items()
        if entry.api_version == api_version and contains(entry.fields, _REPLICAS)
    }


def _to_parent(parents: Managed, scales: Managed, api_version: str) -> list[tuple[Manager, Entry]]:
    """Return the parent's managers after a write to the Scale.

    An apply is the same manager in every version, so its entry stays as it is. An update is not: what it owns of the
    replicas becomes an entry of its own, beside the one with the rest. A real server does that, and so the list may
    hold a manager twice; whoever reads it takes the last.
    """
    out: list[tuple[Manager, Entry]] = []
    left = {who: entry for who, entry in scales.items() if contains(entry.fields, _REPLICAS)}
    for who, entry in parents.items():
        silent = entry.api_version != api_version or not contains(entry.fields, _REPLICAS)
        if silent or left.pop(who, None) is not None:
            out.append((who, entry))
        elif rest := difference(entry.fields, _OWNED):
            out.append((who, Entry(rest, entry.api_version, entry.time)))
    for who in left:
        manager = who if who.operation == APPLY else who._replace(api_version=api_version)
        out.append((manager, Entry(_OWNED, api_version)))
    return out


def _write(
    core: Core, resource: Resource, live: Manifest, scale: Manifest, managed: Managed, *, dry_run: bool
) -> Manifest:
    metadata = scale["metadata"]
    replicas = scale["spec"].get("replicas", 0)
    if replicas < 0:
        detail = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid("Scale.autoscaling", live["metadata"]["name"], [FieldProblem("spec.replicas", detail)])
    parents = read_entries(live["metadata"].get("managedFields"))
    new = copy_json(live)
    new["spec"]["replicas"] = replicas
    new["metadata"]["managedFields"] = write_entries(_to_parent(parents, managed, resource.api_version))
    for name in ("resourceVersion", "uid"):
        new["metadata"].pop(name)
        if metadata.get(name):
            new["metadata"][name] = metadata[name]
    stored = lifecycle.update(core, resource, live, new, subresource=None, dry_run=dry_run)
    return scale_of(stored, resource)


def addressed(manifest: Manifest) -> tuple[ObjectKey, Manifest]:
    """Take apart a manifest that is sent to a Scale.

    Args:
        manifest: apiVersion, kind and name of the scaled object, and `spec.replicas`: a Scale does not say whose it is.

    Returns:
        The scaled object, and the Scale that is meant.

    Raises:
        BadRequestError: If the manifest does not say what is scaled.
    """
    if manifest.get("kind") == "Scale":
        raise bad_request(
            "a Scale does not say whose it is: give apiVersion and kind of the scaled object, or patch by key"
        )
    try:
        key = ObjectKey.of(manifest)
    except ManifestError as error:
        raise bad_request(str(error)) from error
    return key, {**manifest, "apiVersion": _SCALE_VERSION, "kind": "Scale"}


def _decoded(sent: Manifest, key: ObjectKey) -> Manifest:
    demand_same(sent, key)
    try:
        return decode(sent, _scale_type())
    except DecodeError as error:
        raise bad_request(f'Scale in version "v1" cannot be handled as a Scale: {error}') from error


def update_scale(core: Core, key: ObjectKey, sent: Manifest, *, field_manager: str, dry_run: bool) -> Manifest:
    """Replace the Scale of a workload.

    Args:
        core: The server.
        key: The workload.
        sent: The Scale; it is not changed.
        field_manager: Who writes.
        dry_run: Only say what would be stored.

    Returns:
        The Scale after.

    Raises:
        ApiError: As a server refuses it.
    """
    resource = core.resource(key.api_version, key.kind)
    live = core.find(resource, key)
    old = scale_of(live, resource)
    new = _decoded(sent, key)
    managed = _to_scale(read_entries(live["metadata"].get("managedFields")), resource.api_version)
    # Replicas that nobody owns stay so: a server begins to track an object only when it is created or applied.
    if managed:
        managed = updated(
            old,
            {**new, "metadata": old["metadata"], "status": old["status"]},
            _scale_type(),
            managed,
            who=Manager.of(field_manager, UPDATE, _SCALE_VERSION, Subresource.SCALE),
            api_version=_SCALE_VERSION,
            ignored={"f:status": {}},
            now="",
        )
    return _write(core, resource, live, new, managed, dry_run=dry_run)


def patch_scale(
    core: Core, key: ObjectKey, change: Any, *, patch_type: PatchType, field_manager: str, dry_run: bool
) -> Manifest:
    """Change parts of the Scale of a workload; arguments and answer as of `update_scale`."""
    resource = core.resource(key.api_version, key.kind)
    sent = patched(scale_of(core.find(resource, key), resource), change, patch_type)
    return update_scale(core, key, sent, field_manager=field_manager, dry_run=dry_run)


def apply_scale(
    core: Core, key: ObjectKey, config: Manifest, *, field_manager: str, force: bool, dry_run: bool
) -> Manifest:
    """Apply the Scale of a workload; arguments and answer as of `update_scale`, conflicts as of an apply."""
    resource = core.resource(key.api_version, key.kind)
    live = core.find(resource, key)
    old = scale_of(live, resource)
    demand_typed(config, _scale_resource())
    sent = _decoded(config, key)
    new, managed = applied(
        old,
        config,
        _scale_type(),
        _to_scale(read_entries(live["metadata"].get("managedFields")), resource.api_version),
        who=Manager.of(field_manager, APPLY, _SCALE_VERSION, Subresource.SCALE),
        api_version=_SCALE_VERSION,
        force=force,
        ignored={"f:status": {}},
        now="",
        empty=decode({"apiVersion": _SCALE_VERSION, "kind": "Scale"}, _scale_type()),
    )
    merged = decode(new if new is not None else old, _scale_type())
    merged["metadata"] = sent["metadata"]
    return _write(core, resource, live, merged, managed, dry_run=dry_run)
