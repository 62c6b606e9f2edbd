"""Strategies of kinds: the fields that a create and an update can write, and the fields that count as a generation.

The tables follow the registry strategies of a real API server. The rules for all kinds are in `verbs` and
`generic_store`; the tables list the exceptions.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocf.cluster.protocol import Propagation, Subresource
from ocf.objects import Manifest, copy_json
from ocf.objects.json_equality import equal_json
from ocf.schema.builtin import ApiResource
from ocf_server.api.numbers import encoded_numbers
from ocf_server.api.users import User
from ocf_server.apiextensions import format_warnings
from ocf_server.managedfields.fieldset import FieldSet
from ocf_server.registry.disabled_fields import drop_disabled_fields
from ocf_server.registry.kind_hooks import (
    CERTIFICATE_REQUEST,
    FIXED_PARTS,
    PREPARE_CREATE,
    PREPARE_STATUS,
    PREPARE_UPDATE,
)
from ocf_server.registry.object_parts import part_of

__all__ = [
    "allows_create_on_update",
    "allows_unconditional_update",
    "default_propagation",
    "ignored_fields",
    "prepare_create",
    "prepare_update",
    "warnings_about",
]

_ADMISSION: Final = "admissionregistration.k8s.io"
_DEFINITION: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")
_FLOW: Final = "flowcontrol.apiserver.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"
_GENERATION: Final = frozenset(
    {
        ("", "Pod"),
        ("", "PodTemplate"),
        ("", "ReplicationController"),
        (_ADMISSION, "MutatingAdmissionPolicy"),
        (_ADMISSION, "MutatingAdmissionPolicyBinding"),
        (_ADMISSION, "MutatingWebhookConfiguration"),
        (_ADMISSION, "ValidatingAdmissionPolicy"),
        (_ADMISSION, "ValidatingAdmissionPolicyBinding"),
        (_ADMISSION, "ValidatingWebhookConfiguration"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apps", "DaemonSet"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("batch", "CronJob"),
        ("batch", "Job"),
        ("discovery.k8s.io", "EndpointSlice"),
        (_FLOW, "FlowSchema"),
        (_FLOW, "PriorityLevelConfiguration"),
        ("networking.k8s.io", "Ingress"),
        ("networking.k8s.io", "IngressClass"),
        ("networking.k8s.io", "NetworkPolicy"),
        ("policy", "PodDisruptionBudget"),
        ("resource.k8s.io", "DeviceClass"),
        ("resource.k8s.io", "ResourceSlice"),
        ("scheduling.k8s.io", "PriorityClass"),
    }
)

_FIXED_GENERATION: Final = frozenset({("scheduling.k8s.io", "PriorityClass")})
_METADATA_COUNTS: Final = {("apps", "Deployment"): "annotations", ("discovery.k8s.io", "EndpointSlice"): "labels"}
_CONDITIONAL: Final = frozenset(
    {
        (_ADMISSION, "MutatingAdmissionPolicy"),
        (_ADMISSION, "MutatingAdmissionPolicyBinding"),
        (_ADMISSION, "MutatingWebhookConfiguration"),
        (_ADMISSION, "ValidatingAdmissionPolicy"),
        (_ADMISSION, "ValidatingAdmissionPolicyBinding"),
        (_ADMISSION, "ValidatingWebhookConfiguration"),
        ("coordination.k8s.io", "Lease"),
        ("node.k8s.io", "RuntimeClass"),
        ("policy", "PodDisruptionBudget"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "CSINode"),
        ("storage.k8s.io", "CSIStorageCapacity"),
        ("storage.k8s.io", "VolumeAttachment"),
    }
)

_CREATED_BY_UPDATE: Final = frozenset(
    {
        ("", "Endpoints"),
        ("", "Event"),
        ("", "LimitRange"),
        ("", "Service"),
        ("coordination.k8s.io", "Lease"),
        ("events.k8s.io", "Event"),
        ("node.k8s.io", "RuntimeClass"),
        (_RBAC, "ClusterRole"),
        (_RBAC, "ClusterRoleBinding"),
        (_RBAC, "Role"),
        (_RBAC, "RoleBinding"),
    }
)

_ORPHANS: Final = frozenset({("", "ReplicationController"), ("batch", "Job")})

# Metadata that a write of the status does not change, besides the spec; of all other kinds it can change the metadata.
_STATUS_KEEPS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("", "Pod"): ("deletionTimestamp", "ownerReferences"),
    ("apps", "Deployment"): ("labels",),
}

_STATUS_KEEPS_METADATA: Final = frozenset(
    {
        (_ADMISSION, "ValidatingAdmissionPolicy"),
        (_FLOW, "FlowSchema"),
        (_FLOW, "PriorityLevelConfiguration"),
        ("networking.k8s.io", "ServiceCIDR"),
        ("resource.k8s.io", "ResourceClaim"),
        ("storage.k8s.io", "VolumeAttachment"),
    }
)

_KEPT_METADATA: Final = ("deletionTimestamp", "labels", "annotations", "finalizers", "ownerReferences")
_FIRST_STATUS: Final[Mapping[tuple[str, str], Mapping[str, Any]]] = {
    ("", "Namespace"): {"phase": "Active"},
    ("", "PersistentVolume"): {"phase": "Pending"},
    ("", "PersistentVolumeClaim"): {"phase": "Pending"},
    ("", "Pod"): {"phase": "Pending"},
}


_REQUESTOR: Final = ("username", "uid", "groups", "extra")


def _key(resource: ApiResource) -> tuple[str, str]:
    return resource.group, resource.kind


def allows_unconditional_update(resource: ApiResource) -> bool:
    """Return whether an update may omit the resourceVersion."""
    return not resource.custom and _key(resource) not in _CONDITIONAL


def allows_create_on_update(resource: ApiResource) -> bool:
    """Return whether an update creates an object that does not exist."""
    return _key(resource) in _CREATED_BY_UPDATE


def default_propagation(resource: ApiResource) -> Propagation:
    """Return the propagation policy of a delete request that does not set one."""
    return Propagation.ORPHAN if _key(resource) in _ORPHANS else Propagation.BACKGROUND


def ignored_fields(resource: ApiResource, subresource: Subresource | None) -> FieldSet:
    """Return the fields that a request cannot write and therefore never owns.

    Args:
        subresource: Subresource of the request; None for the object itself.

    Returns:
        The fields; each includes all fields below it.
    """
    if part := part_of(resource, subresource):
        return part.ignored
    if subresource is None and _key(resource) == CERTIFICATE_REQUEST:
        return {"f:spec": {}, "f:status": {}}
    if subresource is None:
        return {"f:status": {}} if "status" in resource.subresources else {}
    if resource.custom or _key(resource) in _STATUS_KEEPS_METADATA:
        return {"f:metadata": {}, "f:spec": {}}
    kept = _STATUS_KEEPS.get(_key(resource), ())
    return {"f:spec": {}, **({"f:metadata": {f"f:{name}": {} for name in kept}} if kept else {})}


def _empty_status(resource: ApiResource, new: Manifest, empty: Manifest) -> None:
    if _key(resource) == ("", "Node"):
        return  # a kubelet registers its node with its resources
    if "status" in empty:
        new["status"] = {**empty["status"], **_FIRST_STATUS.get(_key(resource), {})}
    else:
        new.pop("status", None)


def prepare_create(new: Manifest, resource: ApiResource, empty: Manifest, user: User) -> None:
    """Set the initial status and generation of a new object, and what the API server adds to its kind.

    Args:
        new: The object; it is changed.
        empty: The empty object of the kind.
        user: The user of the request.
    """
    if "status" in resource.subresources:
        _empty_status(resource, new, empty)
    if resource.custom or _key(resource) in _GENERATION:
        new["metadata"]["generation"] = 1
    else:
        new["metadata"].pop("generation", None)
    drop_disabled_fields(new, {}, resource)
    if prepare := PREPARE_CREATE.get(_key(resource)):
        prepare(new)
    if _key(resource) == CERTIFICATE_REQUEST:
        sent = {name: value for name, value in new["spec"].items() if name not in _REQUESTOR}
        new["spec"] = {**sent, **user.info()}


def prepare_update(
    new: Manifest, live: Manifest, resource: ApiResource, subresource: Subresource | None, now: str
) -> Manifest:
    """Restore the fields that an update cannot change, and increment the generation.

    Args:
        new: The new object of the request; it is changed.
        subresource: Subresource of the request; None for the object itself.
        now: The time, as objects contain it.

    Returns:
        The object to store.
    """
    if part := part_of(resource, subresource):
        kept = part.kept(new, live, now)
        if _key(resource) == ("", "Pod"):
            kept = copy_json(kept)  # it shares what the request cannot write with the stored pod
            drop_disabled_fields(kept, live, resource)
        return _with_generation(kept, live, resource)
    if subresource is Subresource.STATUS:
        if _key(resource) != ("", "Node"):  # whose status a kubelet of another release writes
            drop_disabled_fields(new, live, resource)
        return _status_update(new, live, resource)
    if _key(resource) in FIXED_PARTS:
        new |= {"spec": {**new.get("spec", {}), **FIXED_PARTS[_key(resource)](live)}}
    drop_disabled_fields(new, live, resource)
    if "status" in resource.subresources:
        _copy(new, live, "status")
    if prepare := PREPARE_UPDATE.get(_key(resource)):
        prepare(new, live)
    return _with_generation(new, live, resource)


def _with_generation(new: Manifest, live: Manifest, resource: ApiResource) -> Manifest:
    if (resource.custom or _key(resource) in _GENERATION) and _key(resource) not in _FIXED_GENERATION:
        counted = _without(new, resource)
        changed = not equal_json(counted, _without(live, resource))
        if not changed and resource.custom:
            # A floating-point number does not equal the integer as which it was stored.
            changed = encoded_numbers(counted) is not counted
        new["metadata"]["generation"] = live["metadata"].get("generation", 0) + changed
    return new


def _status_update(new: Manifest, live: Manifest, resource: ApiResource) -> Manifest:
    kept = {key: value for key, value in live.items() if key != "status"}
    if resource.custom:
        # A status write of a custom resource changes nothing of the metadata but the managers (statusStrategy).
        kept["metadata"] = dict(live["metadata"])
        _copy(kept["metadata"], new["metadata"], "managedFields")
    else:
        kept["metadata"] = new["metadata"]
        names = _KEPT_METADATA if _key(resource) in _STATUS_KEEPS_METADATA else _STATUS_KEEPS.get(_key(resource), ())
        for name in names:
            _copy(kept["metadata"], live["metadata"], name)
        if _key(resource) == ("batch", "Job") and not kept["metadata"].get("labels"):
            # The API server reads a Job without labels with those of its template.
            _copy(kept["metadata"], live["spec"]["template"].get("metadata") or {}, "labels")
    if "status" in new:
        kept["status"] = new["status"]
    if prepare := PREPARE_STATUS.get(_key(resource)):
        prepare(kept, live)
    return kept


def warnings_about(
    new: Manifest, live: Manifest | None, resource: ApiResource, subresource: Subresource | None = None
) -> Iterator[str]:
    """Yield the warnings about a valid create or update.

    Args:
        live: The stored object; None for a new one.
        subresource: Subresource of the request; None for the object itself.
    """
    # Imported here, because the server starts without the validation of kinds.
    from ocf_server.validation.warnings import finalizer_warnings, status_warnings, warnings_of

    if resource.custom:
        yield from finalizer_warnings(new, live)
    elif subresource is Subresource.STATUS:
        yield from status_warnings(new, resource.group_kind)
    elif subresource is None and _key(resource) == _DEFINITION:
        yield from format_warnings(new, live)
    elif subresource is None:
        yield from warnings_of(new, live, resource.group_kind)


def _copy(into: Manifest, source: Manifest, name: str) -> None:
    if name in source:
        into[name] = source[name]
    else:
        into.pop(name, None)


def _without(manifest: Manifest, resource: ApiResource) -> dict[str, Any]:
    """Return the parts of an object whose change increments the generation."""
    uncounted = {"metadata", "status"} if "status" in resource.subresources else {"metadata"}
    parts = {key: value for key, value in manifest.items() if key not in uncounted}
    name = _METADATA_COUNTS.get(_key(resource))
    if name:
        parts["metadata"] = manifest["metadata"].get(name)
    return parts
