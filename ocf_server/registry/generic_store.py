"""Create, update and delete of stored objects: the rules that are the same for every kind of request.

The verbs compute the new object and its managed fields. This module does the rest: fields that only the API server
writes, generation, validation, optimistic locking, finalizers.
"""

from collections.abc import Generator, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from ocf.cluster.protocol import Preconditions, Propagation
from ocf.errors import FieldProblem, api_error
from ocf.objects import Manifest
from ocf.objects.json_equality import equal_json
from ocf.objects.timestamps import format_time
from ocf.schema.builtin import ApiResource
from ocf_server.api.attributes import Attributes
from ocf_server.api.numbers import encoded_numbers
from ocf_server.api.resource_versions import parse_problem
from ocf_server.api.status_errors import already_exists, forbidden, invalid, stale
from ocf_server.api.write_options import WriteOptions
from ocf_server.apiextensions import prune, set_schema_defaults
from ocf_server.apiextensions.crd_status import marked_for_deletion
from ocf_server.registry.conversion_review import ConversionNeeded, converting
from ocf_server.registry.escalation import require_no_escalation
from ocf_server.registry.graceful_deletion import deletion_time, grace_period, seconds_left, shortens
from ocf_server.registry.pending_write import ObjectChangedError, PendingWrite, Phase, Review, WriteOperation
from ocf_server.registry.registry import DEFINITION, Registry, kind_of, place_of, without_managed_fields
from ocf_server.registry.storage import Place
from ocf_server.registry.strategy import (
    allows_unconditional_update,
    default_propagation,
    prepare_create,
    prepare_update,
    warnings_about,
)
from ocf_server.registry.validation import create_problems, update_problems

__all__ = ["create", "delete", "is_removable", "require_preconditions", "require_unchanged", "update"]

_DELETION: Final = ("deletionTimestamp", "deletionGracePeriodSeconds")
_SERVER_METADATA: Final = ("uid", "creationTimestamp", "generation")
_PROTECTED_NAMESPACES: Final = frozenset({"default", "kube-system", "kube-public"})
_SERVICE: Final = ("", "Service")
_JOB: Final = ("batch", "Job")
_KEPT_PODS: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)
_NAME_ATTEMPTS: Final = 8
"""The API server's number of attempts to find an unused name for `generateName` (feature RetryGenerateName)."""
_ORPHAN: Final = "orphan"
_FOREGROUND: Final = "foregroundDeletion"


def create(
    registry: Registry, resource: ApiResource, new: Manifest, options: WriteOptions, *, named: bool = False
) -> PendingWrite[Manifest]:
    """Store a new object.

    Args:
        new: The object, defaulted, with its managed fields; it belongs to the store afterwards.
        named: Whether the request names the object, as an update or an apply; it is authorized as a create then, too.

    Returns:
        The object as stored; it must not be changed.

    Raises:
        InvalidError: If the object is invalid.
        AlreadyExistsError: If the name is taken.
    """
    if not resource.namespaced:
        # As rest.BeforeCreate does for cluster-scoped kinds.
        new["metadata"].pop("namespace", None)
    reviewed = registry.has_admission()
    if reviewed:
        place = (new["metadata"].get("namespace", ""), new["metadata"].get("name", ""))
        new = _require_object(
            (yield Review(Phase.MUTATING, WriteOperation.CREATE, resource, *place, new, None, options))
        )
    version = new["metadata"].get("resourceVersion") or "0"
    if named and (problem := parse_problem(version)):
        raise api_error(problem, code=500)
    _require_no_escalation(registry, resource, new, None, options)
    # After the mutating webhooks, which may set a name themselves.
    generated = not new["metadata"].get("name") and bool(new["metadata"].get("generateName"))
    metadata = _set_server_fields(registry, resource, new, options)
    _allocate(registry, resource, new, None, options)
    problems = create_problems(new, resource)
    if problems:
        raise invalid(resource.group_kind, metadata.get("name", ""), problems)
    for warning in warnings_about(new, None, resource):
        options.warn(warning)
    if named and registry.rbac is not None:
        namespace, name = place_of(new)
        registry.rbac.require(options.user, Attributes("create", resource.group, resource.plural, "", namespace, name))
    # Validating webhooks see the object as it will be stored, but after the server's own validation has passed.
    place, new = place_of(new), _encoded(new, resource)
    if reviewed:
        yield Review(Phase.VALIDATING, WriteOperation.CREATE, resource, *place, new, None, options)
    yield from converting(lambda: registry.encoded(resource, new))
    # An update or an apply of an object that does not exist may have any version.
    if not named and not options.dry_run and not parse_problem(version) and int(version):
        raise api_error("resourceVersion should not be set on objects to be created", code=500)
    # Last, as a real server learns it from etcd: an invalid object of a name that is taken is reported as invalid.
    taken = registry.store.get(kind_of(resource), place)
    if taken is not None:
        deleting = "deletionTimestamp" in taken["metadata"]
        raise already_exists(resource.group_resource, place[1], deleting=deleting, generated=generated)
    new = _with_status(new, resource)
    return new if options.dry_run else (yield from _written(registry, resource, place, new))


def _require_no_escalation(
    registry: Registry, resource: ApiResource, new: Manifest, live: Manifest | None, options: WriteOptions
) -> None:
    if registry.rbac is not None:
        require_no_escalation(registry.rbac, options.user, resource, new, live)


def _encoded(new: Manifest, resource: ApiResource) -> Manifest:
    """Return a valid object as it is stored and sent: its numbers, and without fields that its schema lacks."""
    if not resource.custom:
        return new
    if resource.schema is not None:
        # Those of an apply, which are validated and count as a change.
        new = prune(new, resource.schema)
    # Metadata have types, which were decoded before; its managed fields would be half of the object.
    body = {name: value for name, value in new.items() if name != "metadata"}
    encoded: Manifest = encoded_numbers(body)
    return new if encoded is body else {**new, **encoded}


def _with_status(new: Manifest, resource: ApiResource) -> Manifest:
    """Return a new object with the default of its status, which a create cannot set but every read from etcd does."""
    status = ((resource.schema or {}).get("properties") or {}).get("status")
    if not status or "status" in new:
        return new
    defaulted: Manifest = set_schema_defaults(new, {"properties": {"status": status}})
    return defaulted


def _written(
    registry: Registry, resource: ApiResource, place: Place, manifest: Manifest
) -> Generator[ConversionNeeded, Manifest | None, Manifest]:
    """Store an object, and return it in the version of the request."""
    stored = registry.write(resource, place, manifest)
    return (yield from converting(lambda: registry.shown(stored, resource)))


def _require_object(manifest: Manifest | None) -> Manifest:
    """Return the object that admission sends back; only for a delete there is no object."""
    if manifest is None:
        raise ValueError("admission of a create or an update must send an object back, got None")
    return manifest


def _set_server_fields(
    registry: Registry, resource: ApiResource, new: Manifest, options: WriteOptions
) -> dict[str, Any]:
    """Set the fields of a new object that only the API server writes; return its metadata."""
    metadata: dict[str, Any] = new["metadata"]
    for name in (*_SERVER_METADATA, *_DELETION, "selfLink"):
        metadata.pop(name, None)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = _unused_name(registry, resource, metadata)
    metadata["uid"] = registry.new_uid()
    metadata["creationTimestamp"] = registry.timestamp()
    prepare_create(new, resource, registry.empty(resource), options.user)
    return metadata


def _unused_name(registry: Registry, resource: ApiResource, metadata: dict[str, Any]) -> str:
    """Return a name from `generateName` that no object of the kind has; after eight attempts, a used one."""
    name = ""
    for _ in range(_NAME_ATTEMPTS):
        name = registry.generate_name(metadata["generateName"])
        if registry.store.get(kind_of(resource), (metadata.get("namespace", ""), name)) is None:
            break
    return name


def _allocate(
    registry: Registry, resource: ApiResource, new: Manifest, live: Manifest | None, options: WriteOptions
) -> None:
    """Set the fields of a Service that the API server allocates."""
    if kind_of(resource) == _SERVICE and options.subresource is None:
        from ocf_server.registry.service_allocator import allocate

        allocate(registry.store, new, live, dry_run=options.dry_run)


def update(
    registry: Registry,
    resource: ApiResource,
    live: Manifest,
    new: Manifest,
    options: WriteOptions,
    *,
    reviewed: bool = False,
) -> PendingWrite[Manifest]:
    """Replace a stored object.

    Args:
        live: The stored object, in the version of the kind.
        new: The new object, defaulted, with its managed fields; it belongs to the store afterwards.
        reviewed: Whether the caller requests admission itself, for another object (a Scale).

    Returns:
        The object as stored; the live object if nothing changes. It must not be changed.

    Raises:
        ConflictError: If the resourceVersion of the new object is not the live one.
        InvalidError: If the new object is invalid.
        ObjectChangedError: If another request wrote the object during admission.
    """
    place = place_of(live)
    needs_admission = registry.has_admission() and not reviewed
    if needs_admission:
        new = _require_object(
            (yield Review(Phase.MUTATING, WriteOperation.UPDATE, resource, *place, new, live, options))
        )
    _require_no_escalation(registry, resource, new, live, options)
    # Before the validation: a stale object may be invalid only because of what has changed since.
    _require_version(resource, live, new)
    uid_problems = list(_uid_problems(live, new))
    for field in (*_SERVER_METADATA, "resourceVersion", "name", "namespace"):
        if field in live["metadata"]:
            new["metadata"][field] = live["metadata"][field]
        else:
            new["metadata"].pop(field, None)
    _keep_deletion(new["metadata"], live["metadata"])
    new = prepare_update(new, live, resource, options.subresource, registry.timestamp())
    _allocate(registry, resource, new, live, options)
    problems = [*uid_problems, *update_problems(new, live, resource, options.subresource)]
    if problems:
        raise invalid(resource.group_kind, place[1], problems)
    new = _encoded(new, resource)
    for warning in warnings_about(new, live, resource, options.subresource):
        options.warn(warning)
    if needs_admission:
        yield Review(Phase.VALIDATING, WriteOperation.UPDATE, resource, *place, new, live, options)
    changed = new
    yield from converting(lambda: registry.encoded(resource, changed))
    require_unchanged(registry, resource, live)
    # A write that changes nothing gets no resourceVersion and no event, as GuaranteedUpdate of etcd3 skips it.
    if _is_unchanged(registry, resource, new, live):
        return live
    if options.dry_run:
        return new
    # An update that takes the last finalizer off deletes the object (ShouldDeleteDuringUpdate).
    if is_removable(new):
        registry.store.remove(kind_of(resource), place)
        return new
    # The store writes the resourceVersion into the metadata, which may be shared with the live object.
    new["metadata"] = dict(new["metadata"])
    return (yield from _written(registry, resource, place, new))


def _keep_deletion(new: dict[str, Any], live: dict[str, Any]) -> None:
    """Keep the deletion fields of an object that is being deleted; validation rejects those of any other object."""
    if "deletionTimestamp" in live:
        new["deletionTimestamp"] = live["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in live:
        # Unlike the timestamp, a client may shorten it in an update; validation then compares the two.
        new.setdefault("deletionGracePeriodSeconds", live["deletionGracePeriodSeconds"])


def require_unchanged(registry: Registry, resource: ApiResource, live: Manifest) -> None:
    """Check that no other request has written an object since it was read.

    Raises:
        ObjectChangedError: If the stored object has another resourceVersion, or is gone.
    """
    stored = registry.store.get(kind_of(resource), place_of(live))
    if stored is None or stored["metadata"]["resourceVersion"] != live["metadata"]["resourceVersion"]:
        raise ObjectChangedError


def _uid_problems(live: Manifest, new: Manifest) -> Iterator[FieldProblem]:
    uid = new["metadata"].get("uid")
    if uid and uid != live["metadata"]["uid"]:
        # A real API server checks it before and within the validation of the kind.
        yield from [FieldProblem("metadata.uid", f'Invalid value: "{uid}": field is immutable')] * 2


def is_removable(manifest: Manifest) -> bool:
    """Return whether an object is being deleted, and neither finalizers nor a grace period block that."""
    metadata = manifest["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    return not _has_content_finalizers(manifest) and not seconds_left(manifest)


def _has_content_finalizers(manifest: Manifest) -> bool:
    """Return whether the content of a namespace blocks its deletion."""
    return _is_namespace(manifest) and bool(manifest.get("spec", {}).get("finalizers"))


def _is_namespace(manifest: Manifest) -> bool:
    return (manifest["apiVersion"], manifest["kind"]) == ("v1", "Namespace")


def _require_version(resource: ApiResource, live: Manifest, new: Manifest) -> None:
    wanted = new["metadata"].get("resourceVersion", "")
    name = live["metadata"]["name"]
    if wanted in ("", "0"):
        if not allows_unconditional_update(resource):
            detail = "Invalid value: 0: must be specified for an update"
            raise invalid(resource.group_resource, name, [FieldProblem("metadata.resourceVersion", detail)])
    elif problem := parse_problem(wanted):
        raise api_error(problem, code=500)
    elif wanted != live["metadata"]["resourceVersion"]:
        raise stale(resource.group_resource, name)


def _is_unchanged(registry: Registry, resource: ApiResource, new: Manifest, live: Manifest) -> bool:
    """Return whether a write would store what is stored already."""
    if registry.stores_as_sent(resource):
        return _equal_without_times(new, live)
    # A write sets defaults, and loses fields of the stored version that the version of the request does not declare.
    return _equal_without_times(registry.encoded(resource, new), registry.stored(resource, place_of(live)))


def _equal_without_times(new: Manifest, live: Manifest) -> bool:
    """Return whether two states are equal except for the times of their managed fields."""
    if not equal_json(without_managed_fields(new), without_managed_fields(live)):
        return False
    first, second = new["metadata"].get("managedFields"), live["metadata"].get("managedFields")
    # The time of an entry moves with every write; alone, it would make each repeated update a change.
    return first == second or _without_times(first) == _without_times(second)


def _without_times(entries: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry.items() if key != "time"} for entry in entries or ()]


def delete(
    registry: Registry,
    resource: ApiResource,
    live: Manifest,
    options: WriteOptions,
    *,
    preconditions: Preconditions | None = None,
    propagation: Propagation | None = None,
    grace_period_seconds: int | None = None,
) -> PendingWrite[Manifest | None]:
    """Delete a stored object, or set its deletionTimestamp while finalizers or a grace period block the deletion.

    Args:
        live: The stored object, in the version of the kind.
        preconditions: Preconditions of the delete; None for none.
        propagation: Propagation policy for the dependents; None for the default of the kind.
        grace_period_seconds: Grace period of a pod on a node; None for that of the pod.

    Returns:
        The object as it is stored now; None if it was removed.

    Raises:
        ConflictError: If a precondition does not hold.
        ForbiddenError: If the object may not be deleted.
        ObjectChangedError: If another request wrote the object during admission.
    """
    metadata = live["metadata"]
    if kind_of(resource) == ("", "Namespace") and metadata["name"] in _PROTECTED_NAMESPACES:
        raise forbidden("namespaces", metadata["name"], "this namespace may not be deleted")
    require_preconditions(resource, metadata, preconditions or Preconditions())
    review = Review(Phase.MUTATING, WriteOperation.DELETE, resource, *place_of(live), None, live, options)
    if kind_of(resource) == _JOB and propagation is None:
        options.warn(_KEPT_PODS)
    # Admission of deletes gets the old object only, and its answer changes nothing.
    yield review
    yield replace(review, phase=Phase.VALIDATING)
    require_unchanged(registry, resource, live)
    if kind_of(resource) == DEFINITION and "deletionTimestamp" not in metadata:
        return (yield from _marked(registry, resource, live, marked_for_deletion(live, registry.timestamp()), options))
    # A further delete changes nothing before the content is gone, and then as for any other object.
    ends = "deletionTimestamp" in metadata and _has_content_finalizers(live)
    if ends or not shortens(live, grace_period_seconds):
        return live
    seconds = grace_period(live, grace_period_seconds)
    finalizers = _finalizers(resource, metadata.get("finalizers") or [], propagation)
    if not finalizers and not _has_content_finalizers(live) and not seconds:
        if not options.dry_run:
            registry.store.remove(kind_of(resource), place_of(live))
        return None
    if "deletionTimestamp" in metadata and not seconds_left(live) and finalizers == (metadata.get("finalizers") or []):
        return live
    marked = _marked_for_deletion(registry, live, finalizers, seconds)
    return (yield from _marked(registry, resource, live, marked, options))


def _marked(
    registry: Registry, resource: ApiResource, live: Manifest, marked: Manifest, options: WriteOptions
) -> PendingWrite[Manifest]:
    """Store an object that was marked for deletion."""
    if options.dry_run:
        return marked
    yield from converting(lambda: registry.encoded(resource, marked))
    require_unchanged(registry, resource, live)
    return (yield from _written(registry, resource, place_of(live), marked))


def require_preconditions(resource: ApiResource, metadata: dict[str, Any], wanted: Preconditions) -> None:
    """Raise ConflictError if an object is not the one that preconditions name."""
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
    """Return the finalizers of an object after a delete sets or removes those of the garbage collector."""
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
    # A real API server keeps the order if the set of finalizers does not change.
    return known if set(out) == set(known) else out


def _marked_for_deletion(registry: Registry, live: Manifest, finalizers: list[str], seconds: int) -> Manifest:
    metadata = dict(live["metadata"])
    marked = {**live, "metadata": metadata}
    metadata.pop("finalizers", None)
    if finalizers:
        metadata["finalizers"] = finalizers
    if seconds_left(live):
        metadata["deletionTimestamp"] = deletion_time(metadata, seconds)
        metadata["deletionGracePeriodSeconds"] = seconds
    elif "deletionTimestamp" not in metadata:
        metadata["deletionTimestamp"] = format_time(registry.now() + timedelta(seconds=seconds))
        if _is_namespace(live):
            # A namespace ends by its controller and not after a period, so it has neither that nor a new generation.
            marked["status"] = {**live["status"], "phase": "Terminating"}
            return marked
        metadata["deletionGracePeriodSeconds"] = seconds
        if "generation" in metadata:
            metadata["generation"] += 1
    return marked
