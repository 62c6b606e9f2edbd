"""Creating, replacing and deleting stored objects: the rules that hold whatever request leads there.

A request decides what the object should be and who owns its fields. Here it becomes what the store holds: the fields
that only the server writes, generation, validation, optimistic locking, finalizers.
"""

from dataclasses import replace
from typing import Any, Final

from ocf.cluster.protocol import Preconditions, Propagation
from ocf.embedded.api.status_errors import already_exists, forbidden, invalid, stale
from ocf.embedded.api.write_options import WriteOptions
from ocf.embedded.apiextensions.crd_status import CLEANUP
from ocf.embedded.registry.pending_write import MovedError, Operation, PendingWrite, Phase, Review
from ocf.embedded.registry.registry import DEFINITION, Registry, kind_of, place_of, without_managed_fields
from ocf.embedded.registry.service_allocator import allocate
from ocf.embedded.registry.strategy import (
    allows_unconditional_update,
    default_propagation,
    prepare_create,
    prepare_update,
)
from ocf.embedded.registry.validation import create_problems, update_problems
from ocf.errors import FieldProblem, api_error
from ocf.objects import Manifest
from ocf.objects.json_equality import equal_json
from ocf.schema.builtin import ApiResource

__all__ = ["create", "delete", "require_unmoved", "update"]

_DELETION: Final = ("deletionTimestamp", "deletionGracePeriodSeconds")
_SERVER_METADATA: Final = ("uid", "creationTimestamp", "generation")
_IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})
_SERVICE: Final = ("", "Service")
_ORPHAN: Final = "orphan"
_FOREGROUND: Final = "foregroundDeletion"


def create(core: Registry, resource: ApiResource, new: Manifest, options: WriteOptions) -> PendingWrite[Manifest]:
    """Store a new object.

    Args:
        core: The server.
        resource: The object's kind.
        new: The object, defaulted, with its managed fields; it becomes the store's.
        options: How the request wants to be treated.

    Returns:
        The object as stored; it must not be changed.

    Raises:
        InvalidError: If validation refuses it.
        AlreadyExistsError: If the name is taken.
    """
    if new["metadata"].get("resourceVersion"):
        raise api_error("resourceVersion should not be set on objects to be created", code=500)
    if not resource.namespaced:
        new["metadata"].pop("namespace", None)
    reviewed = core.is_reviewed()
    if reviewed:
        place = (new["metadata"].get("namespace", ""), new["metadata"].get("name", ""))
        new = _require_object((yield Review(Phase.MUTATING, Operation.CREATE, resource, *place, new, None, options)))
    metadata = _started(core, resource, new)
    problems = create_problems(new, resource)
    if problems:
        raise invalid(resource.group_kind, metadata.get("name", ""), problems)
    place = place_of(new)
    if reviewed:
        yield Review(Phase.VALIDATING, Operation.CREATE, resource, *place, new, None, options)
    taken = core.store.get(kind_of(resource), place)
    if taken is not None:
        raise already_exists(resource.group_resource, place[1], deleting="deletionTimestamp" in taken["metadata"])
    return new if options.dry_run else core.write(resource, place, new)


def _require_object(manifest: Manifest | None) -> Manifest:
    """Return what an admission sent back: of anything but a delete, an object."""
    if manifest is None:
        raise ValueError("an admission must send an object back")
    return manifest


def _started(core: Registry, resource: ApiResource, new: Manifest) -> dict[str, Any]:
    """Write into a new object what only the server writes; return its metadata."""
    metadata: dict[str, Any] = new["metadata"]
    for name in (*_SERVER_METADATA, *_DELETION, "selfLink"):
        metadata.pop(name, None)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = core.generate_name(metadata["generateName"])
    metadata["uid"] = core.new_uid()
    metadata["creationTimestamp"] = core.timestamp()
    prepare_create(new, resource, core.empty(resource))
    if kind_of(resource) == _SERVICE:
        allocate(core.store, new, None)
    return metadata


def update(
    core: Registry,
    resource: ApiResource,
    live: Manifest,
    new: Manifest,
    options: WriteOptions,
    *,
    reviewed: bool = False,
) -> PendingWrite[Manifest]:
    """Replace a stored object.

    Args:
        core: The server.
        resource: The object's kind.
        live: The stored object, in the version of the kind.
        new: What replaces it, defaulted, with its managed fields; it becomes the store's.
        options: How the request wants to be treated.
        reviewed: Whether the caller asks for admission itself, for another object than this.

    Returns:
        The object as stored, the live one if nothing changes; it must not be changed.

    Raises:
        ConflictError: If the new object was made from another version than the live one.
        InvalidError: If validation refuses it.
        MovedError: If the object was written while it waited for admission.
    """
    place = place_of(live)
    asking = core.is_reviewed() and not reviewed
    if asking:
        new = _require_object((yield Review(Phase.MUTATING, Operation.UPDATE, resource, *place, new, live, options)))
    _require_version(resource, live, new)
    _require_uid(resource, live, new)
    for field in (*_SERVER_METADATA, "resourceVersion", "name", "namespace"):
        if field in live["metadata"]:
            new["metadata"][field] = live["metadata"][field]
        else:
            new["metadata"].pop(field, None)
    _keep_deletion(new["metadata"], live["metadata"])
    new = prepare_update(new, live, resource, options.subresource)
    if kind_of(resource) == _SERVICE:
        allocate(core.store, new, live)
    problems = update_problems(new, live, resource, options.subresource)
    if problems:
        raise invalid(resource.group_kind, place[1], problems)
    if asking:
        yield Review(Phase.VALIDATING, Operation.UPDATE, resource, *place, new, live, options)
    require_unmoved(core, resource, live)
    if _same(new, live):
        return live
    if options.dry_run:
        return new
    if "deletionTimestamp" in new["metadata"] and not _is_held(new):
        core.store.remove(kind_of(resource), place)
        return new
    # The resourceVersion is written into it, and a part of it may be the live object's.
    new["metadata"] = dict(new["metadata"])
    return core.write(resource, place, new)


def _keep_deletion(new: dict[str, Any], live: dict[str, Any]) -> None:
    """Keep the marks of an object that is being deleted; marks that it does not have are left to validation."""
    if "deletionTimestamp" in live:
        new["deletionTimestamp"] = live["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in live:
        new.setdefault("deletionGracePeriodSeconds", live["deletionGracePeriodSeconds"])


def require_unmoved(core: Registry, resource: ApiResource, live: Manifest) -> None:
    """Refuse to go on with an object that somebody else wrote in the meantime.

    Raises:
        MovedError: If the stored object is another one.
    """
    stored = core.store.get(kind_of(resource), place_of(live))
    if stored is None or stored["metadata"]["resourceVersion"] != live["metadata"]["resourceVersion"]:
        raise MovedError


def _require_uid(resource: ApiResource, live: Manifest, new: Manifest) -> None:
    uid = new["metadata"].get("uid")
    if uid and uid != live["metadata"]["uid"]:
        problem = FieldProblem("metadata.uid", f'Invalid value: "{uid}": field is immutable')
        raise invalid(resource.group_kind, live["metadata"]["name"], [problem])


def _is_held(manifest: Manifest) -> bool:
    """Say whether something keeps an object that is being deleted."""
    if manifest["metadata"].get("finalizers"):
        return True
    return manifest["kind"] == "Namespace" and bool(manifest.get("spec", {}).get("finalizers"))


def _require_version(resource: ApiResource, live: Manifest, new: Manifest) -> None:
    wanted = new["metadata"].get("resourceVersion", "")
    name = live["metadata"]["name"]
    if wanted in ("", "0"):
        if not allows_unconditional_update(resource):
            detail = "Invalid value: 0: must be specified for an update"
            raise invalid(resource.group_resource, name, [FieldProblem("metadata.resourceVersion", detail)])
    elif wanted != live["metadata"]["resourceVersion"]:
        raise stale(resource.group_resource, name)


def _same(new: Manifest, live: Manifest) -> bool:
    """Say whether two states differ in nothing but the times of their managed fields."""
    if not equal_json(without_managed_fields(new), without_managed_fields(live)):
        return False
    first, second = new["metadata"].get("managedFields"), live["metadata"].get("managedFields")
    return first == second or _without_times(first) == _without_times(second)


def _without_times(entries: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry.items() if key != "time"} for entry in entries or ()]


def delete(
    core: Registry,
    resource: ApiResource,
    live: Manifest,
    options: WriteOptions,
    *,
    preconditions: Preconditions | None = None,
    propagation: Propagation | None = None,
) -> PendingWrite[Manifest | None]:
    """Delete a stored object, or mark it as being deleted while finalizers hold it.

    Args:
        core: The server.
        resource: The object's kind.
        live: The stored object, in the version of the kind.
        options: How the request wants to be treated.
        preconditions: What must hold of it.
        propagation: What becomes of its dependents; None takes the kind's default.

    Returns:
        The object as it is stored now; None if it is gone.

    Raises:
        ConflictError: If a precondition does not hold.
        ForbiddenError: If the object may not be deleted.
        MovedError: If the object was written while it waited for admission.
    """
    metadata = live["metadata"]
    if kind_of(resource) == ("", "Namespace") and metadata["name"] in _IMMORTAL:
        raise forbidden("namespaces", metadata["name"], "this namespace may not be deleted")
    _require_preconditions(resource, metadata, preconditions or Preconditions())
    about = Review(Phase.MUTATING, Operation.DELETE, resource, *place_of(live), None, live, options)
    yield about
    yield replace(about, phase=Phase.VALIDATING)
    require_unmoved(core, resource, live)
    finalizers = _finalizers(resource, metadata.get("finalizers") or [], propagation)
    if kind_of(resource) == DEFINITION and CLEANUP not in finalizers and _has_objects(core, live):
        finalizers = [*finalizers, CLEANUP]
    place = place_of(live)
    if not finalizers and not _is_held(live):
        if not options.dry_run:
            core.store.remove(kind_of(resource), place)
        return None
    if "deletionTimestamp" in metadata and finalizers == (metadata.get("finalizers") or []):
        return live
    marked = _marked(core, live, finalizers)
    return marked if options.dry_run else core.write(resource, place, marked)


def _has_objects(core: Registry, definition: Manifest) -> bool:
    spec = definition["spec"]
    return bool(core.store.objects((spec["group"], spec["names"]["kind"])))


def _require_preconditions(resource: ApiResource, metadata: dict[str, Any], wanted: Preconditions) -> None:
    checks = (
        ("UID", wanted.uid, metadata["uid"], "The object might have been deleted and then recreated"),
        (
            "ResourceVersion",
            wanted.resource_version,
            metadata["resourceVersion"],
            "The object might have been modified",
        ),
    )
    for what, asked, found, guess in checks:
        if asked is not None and asked != found:
            problem = f"the {what} in the precondition ({asked}) does not match the {what} in record ({found}). {guess}"
            raise stale(resource.group_kind, metadata["name"], problem)


def _finalizers(resource: ApiResource, known: list[str], propagation: Propagation | None) -> list[str]:
    """Return the finalizers with those of the garbage collector as a delete sets them."""
    orphan, foreground = _ORPHAN in known, _FOREGROUND in known
    if propagation is not None:
        orphan, foreground = propagation is Propagation.ORPHAN, propagation is Propagation.FOREGROUND
    elif not orphan and not foreground:
        orphan = default_propagation(resource) is Propagation.ORPHAN
    out = [name for name in known if name not in (_ORPHAN, _FOREGROUND)]
    if orphan:
        out.append(_ORPHAN)
    elif foreground:
        out.append(_FOREGROUND)
    # A server that changes nothing also leaves the order alone.
    return known if set(out) == set(known) else out


def _marked(core: Registry, live: Manifest, finalizers: list[str]) -> Manifest:
    metadata = dict(live["metadata"])
    marked = {**live, "metadata": metadata}
    metadata.pop("finalizers", None)
    if finalizers:
        metadata["finalizers"] = finalizers
    if "deletionTimestamp" not in metadata:
        metadata["deletionTimestamp"] = core.timestamp()
        if live["kind"] == "Namespace":
            marked["status"] = {**live["status"], "phase": "Terminating"}
            return marked
        metadata["deletionGracePeriodSeconds"] = 0
        if "generation" in metadata:
            metadata["generation"] += 1
    return marked
