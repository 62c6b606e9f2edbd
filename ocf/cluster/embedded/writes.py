"""The four ways to write an object, or its status: create, update, patch, apply.

Each makes the object the caller wants out of the request, says who owns which field afterwards, and leaves the rest to
`lifecycle`.
"""

from typing import Any

from ocf.cluster.embedded import lifecycle
from ocf.cluster.embedded.core import Core, bare, decoded, kind_of
from ocf.cluster.embedded.decoding import DecodeError
from ocf.cluster.embedded.defaulting import set_defaults
from ocf.cluster.embedded.failures import (
    bad_request,
    invalid,
    method_not_allowed,
    no_such_resource,
    not_found,
    stale,
    unsupported,
)
from ocf.cluster.embedded.managers import APPLY, UPDATE, Managed, Manager, applied, read_entries, updated, write_entries
from ocf.cluster.embedded.patching import PatchError, json_patch, merge_patch
from ocf.cluster.embedded.schema import Resource
from ocf.cluster.embedded.strategy import allows_create_on_update, ignored_fields
from ocf.cluster.embedded.typed import ElementError, type_problems
from ocf.cluster.protocol import PatchType, Subresource
from ocf.errors import ApiError, FieldProblem, InvalidError, api_error
from ocf.objects import Manifest, ObjectKey

__all__ = [
    "apply",
    "create",
    "demand_manager",
    "demand_same",
    "demand_subresource",
    "demand_typed",
    "patch",
    "patched",
    "update",
]

_LONGEST_MANAGER = 128


def demand_manager(field_manager: str, *, operation: str) -> None:
    """Refuse a field manager that a server would refuse.

    Args:
        field_manager: Its name.
        operation: `Apply` demands one.

    Raises:
        InvalidError: If it is too long, or missing.
    """
    kind = "PatchOptions.meta.k8s.io"
    if operation == APPLY and not field_manager:
        raise invalid(kind, "", [FieldProblem("fieldManager", "Required value: is required for apply patch")])
    if len(field_manager.encode()) > _LONGEST_MANAGER:
        raise invalid(kind, "", [FieldProblem("fieldManager", "Too long: may not be more than 128 bytes")])


def demand_subresource(resource: Resource, name: str, subresource: Subresource | None) -> None:
    """Refuse a subresource that the kind does not have."""
    if subresource is not None and subresource not in resource.subresources:
        raise not_found(resource.group_resource, name) if resource.custom else no_such_resource()


def _held(manifest: Manifest, resource: Resource) -> Manifest:
    """Return a manifest as the server's structs hold it, with defaults."""
    return set_defaults(decoded(manifest, resource), resource.group)


def _body(manifest: Manifest, resource: Resource) -> Manifest:
    try:
        return _held(manifest, resource)
    except DecodeError as error:
        message = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {error}'
        raise bad_request(message) from error


def _metadata(manifest: Manifest) -> dict[str, Any]:
    metadata = manifest.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _set_managed(manifest: Manifest, managed: Managed) -> Manifest:
    manifest["metadata"].pop("managedFields", None)
    if managed:
        manifest["metadata"]["managedFields"] = write_entries(managed.items())
    return manifest


def _managed_of_request(live: Manifest | None, sent: Manifest) -> Managed:
    """Return the managers a write starts from: a caller may send managed fields, or an empty list to drop them."""
    entries = _metadata(sent).get("managedFields")
    if entries in ([], [{}]):
        return {}
    try:
        managed = read_entries(entries)
    except ValueError:
        managed = {}
    return managed or read_entries(live["metadata"].get("managedFields") if live else None)


def _tracked(  # noqa: PLR0917 (the facts of one request)
    core: Core,
    resource: Resource,
    before: Manifest,
    new: Manifest,
    managed: Managed,
    field_manager: str,
    subresource: Subresource | None,
) -> Managed:
    """Return the managers after a create, an update or a patch."""
    try:
        return updated(
            before,
            bare(new),
            resource.type,
            managed,
            who=Manager.of(field_manager, UPDATE, resource.api_version, subresource or ""),
            api_version=resource.api_version,
            ignored=ignored_fields(resource, subresource),
            now=core.timestamp(),
        )
    except ElementError:
        # A list item that has no name cannot be owned. A server then stores the object and forgets all its managers.
        return {}


def create(core: Core, manifest: Manifest, *, field_manager: str, dry_run: bool) -> Manifest:
    """Create an object.

    Args:
        core: The server.
        manifest: The object; it is not changed.
        field_manager: Who writes.
        dry_run: Only say what would be stored.

    Returns:
        The object as stored; it must not be changed.

    Raises:
        ApiError: As a server refuses it.
    """
    resource = core.resource(str(manifest.get("apiVersion")), str(manifest.get("kind")))
    _demand_verb(resource, "create")
    new = _body(manifest, resource)
    core.demand_namespace(resource, new["metadata"].get("namespace", ""), new["metadata"].get("name", ""))
    managed = _tracked(
        core, resource, core.empty(resource), new, _managed_of_request(None, manifest), field_manager, None
    )
    return lifecycle.create(core, resource, _set_managed(new, managed), dry_run=dry_run)


def _demand_verb(resource: Resource, verb: str) -> None:
    if verb not in resource.verbs:
        raise method_not_allowed()


def update(
    core: Core, manifest: Manifest, *, field_manager: str, subresource: Subresource | None, dry_run: bool
) -> Manifest:
    """Replace an object, or its status.

    Args:
        core: The server.
        manifest: The object; it is not changed.
        field_manager: Who writes.
        subresource: None or the status.
        dry_run: Only say what would be stored.

    Returns:
        The object as stored; it must not be changed.

    Raises:
        ApiError: As a server refuses it.
    """
    resource = core.resource(str(manifest.get("apiVersion")), str(manifest.get("kind")))
    _demand_verb(resource, "update")
    key = _key(manifest, resource)
    demand_subresource(resource, key.name, subresource)
    live = core.store.get(kind_of(resource), (key.namespace, key.name))
    if live is None:
        if subresource is None and allows_create_on_update(resource):
            return create(core, manifest, field_manager=field_manager, dry_run=dry_run)
        raise not_found(resource.group_resource, key.name)
    new = _body(manifest, resource)
    uid = new["metadata"].get("uid")
    if uid and uid != live["metadata"]["uid"]:
        problem = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {live['metadata']['uid']}"
        raise stale(resource.group_resource, key.name, problem)
    return _replace(
        core, resource, live, new, manifest, field_manager=field_manager, subresource=subresource, dry_run=dry_run
    )


def _key(manifest: Manifest, resource: Resource) -> ObjectKey:
    metadata = _metadata(manifest)
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise bad_request("the name of the object was undeterminable: name must be provided")
    namespace = str(metadata.get("namespace") or "") if resource.namespaced else ""
    if resource.namespaced and not namespace:
        raise bad_request(f'{resource.kind} "{name}" is namespaced: metadata.namespace must be provided')
    return ObjectKey(resource.api_version, resource.kind, name, namespace)


def _replace(  # noqa: PLR0913 (the facts of one request)
    core: Core,
    resource: Resource,
    live: Manifest,
    new: Manifest,
    sent: Manifest,
    *,
    field_manager: str,
    subresource: Subresource | None,
    dry_run: bool,
) -> Manifest:
    """Put a new state in the place of the live one, for an update or a patch."""
    managed = _managed_of_request(live, {} if subresource else sent)
    if managed:
        # Without managers the object was last written by somebody who dropped them, and stays untracked until an apply.
        managed = _tracked(core, resource, bare(live), new, managed, field_manager, subresource)
    new = _set_managed(new, managed)
    return lifecycle.update(core, resource, live, new, subresource=subresource, dry_run=dry_run)


def patched(document: Manifest, change: Any, patch_type: PatchType) -> Manifest:
    """Apply a patch to a document.

    Args:
        document: The document; it is not changed.
        change: The patch.
        patch_type: How it is read.

    Returns:
        The patched document.

    Raises:
        BadRequestError: If the patch is no patch of that type, or the type is not supported.
        InvalidError: If it cannot be applied.
    """
    if patch_type is PatchType.STRATEGIC_MERGE:
        raise unsupported("apply strategic merge patches", "use server-side apply, a merge patch or a JSON patch")
    shape, name = (
        (list, "[]handlers.jsonPatchOp") if patch_type is PatchType.JSON else (dict, "map[string]interface {}")
    )
    if not isinstance(change, shape):
        found = "array" if isinstance(change, list) else "object" if isinstance(change, dict) else type(change).__name__
        raise bad_request(f"error decoding patch: json: cannot unmarshal {found} into Go value of type {name}")
    try:
        out = json_patch(document, change) if isinstance(change, list) else merge_patch(document, change)
    except PatchError as error:
        message = "the server rejected our request due to an error in our request"
        raise InvalidError(message, code=422, reason="Invalid") from error
    if not isinstance(out, dict):
        raise bad_request("a patch must leave an object")
    return out


def patch(
    core: Core,
    key: ObjectKey,
    change: Any,
    *,
    patch_type: PatchType,
    field_manager: str,
    subresource: Subresource | None,
    dry_run: bool,
) -> Manifest:
    """Change parts of an object, or of its status.

    Args:
        core: The server.
        key: The object.
        change: The patch; it is not changed.
        patch_type: How it is read.
        field_manager: Who writes.
        subresource: None or the status.
        dry_run: Only say what would be stored.

    Returns:
        The object as stored; it must not be changed.

    Raises:
        ApiError: As a server refuses it.
    """
    resource = core.resource(key.api_version, key.kind)
    _demand_verb(resource, "patch")
    demand_subresource(resource, key.name, subresource)
    live = core.find(resource, key)
    sent = patched(live, change, patch_type)
    demand_same(sent, key)
    try:
        new = _held(sent, resource)
    except DecodeError as error:
        problem = FieldProblem("patch", f"Invalid value: {error}")
        raise invalid("", "", [problem]) from error
    return _replace(
        core, resource, live, new, sent, field_manager=field_manager, subresource=subresource, dry_run=dry_run
    )


def demand_same(sent: Manifest, key: ObjectKey) -> None:
    """Refuse a patch that renames the object."""
    metadata = _metadata(sent)
    if metadata.get("name") != key.name:
        raise bad_request(
            f"the name of the object ({metadata.get('name') or ''}) does not match the name on the URL ({key.name})"
        )
    if (metadata.get("namespace") or "") != key.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def apply(
    core: Core,
    manifest: Manifest,
    *,
    field_manager: str,
    force: bool,
    subresource: Subresource | None,
    dry_run: bool,
) -> Manifest:
    """Apply an object, or its status.

    Args:
        core: The server.
        manifest: What the manager wants to own; it is not changed.
        field_manager: Who applies.
        force: Take fields from their owners.
        subresource: None or the status.
        dry_run: Only say what would be stored.

    Returns:
        The object as stored; it must not be changed.

    Raises:
        ApiError: As a server refuses it.
    """
    resource = core.resource(str(manifest.get("apiVersion")), str(manifest.get("kind")))
    _demand_verb(resource, "patch")
    key = _key(manifest, resource)
    demand_subresource(resource, key.name, subresource)
    live = core.store.get(kind_of(resource), (key.namespace, key.name))
    if live is None and subresource is not None:
        raise not_found(resource.group_resource, key.name)
    if live is None:
        core.demand_namespace(resource, key.namespace, key.name)
    demand_typed(manifest, resource)
    base = live or core.empty(resource)
    before = read_entries(base.get("metadata", {}).get("managedFields"))
    try:
        new, managed = applied(
            bare(base) if live else base,
            manifest,
            resource.type,
            before,
            who=Manager.of(field_manager, APPLY, resource.api_version, subresource or ""),
            api_version=resource.api_version,
            force=force,
            ignored=ignored_fields(resource, subresource),
            now=core.timestamp(),
            empty=core.empty(resource),
        )
    except ElementError as error:
        raise _apply_error("failed to create typed live object", _metadata(manifest), resource, str(error)) from error
    if new is None and live is not None and managed == before:
        return live
    final = _set_managed(_converted(base if new is None else new, resource), managed)
    if live is None:
        final["metadata"].pop("resourceVersion", None)
        return lifecycle.create(core, resource, final, dry_run=dry_run)
    return lifecycle.update(core, resource, live, final, subresource=subresource, dry_run=dry_run)


def demand_typed(config: Manifest, resource: Resource) -> None:
    """Refuse an applied manifest that does not fit the kind's type."""
    metadata = _metadata(config)
    if metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    problems = type_problems(config, resource.type)
    if problems:
        text = problems[0] if len(problems) == 1 else "\n  ".join(["errors:", *problems])
        raise _apply_error("failed to create typed patch object", metadata, resource, text)


def _apply_error(what: str, metadata: dict[str, Any], resource: Resource, problem: str) -> ApiError:
    place = f"{metadata.get('namespace') or ''}/{metadata.get('name')}"
    # A server answers with an internal error, although the fault is the caller's.
    return api_error(
        f"{what} ({place}; {resource.group}/{resource.version}, Kind={resource.kind}): {problem}", code=500
    )


def _converted(manifest: Manifest, resource: Resource) -> Manifest:
    try:
        return _held(manifest, resource)
    except DecodeError as error:
        what = "failed to convert new object"
        raise _apply_error(what, _metadata(manifest), resource, f"to proper version: {error}") from error
