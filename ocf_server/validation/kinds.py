"""Table of the kinds with a validation, each imported when its first object is validated.

A module of the table has a mapping `VALIDATIONS` from kinds (`Deployment.apps`) to `Validation`s.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

from ocf.cluster.protocol import Subresource
from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError
from ocf_server.validation.metadata import common_update_errors, metadata_update_errors
from ocf_server.validation.validation import Validation

__all__ = ["create_errors", "update_errors"]

_MODULES: Final[dict[str, str]] = {
    "ClusterRole.rbac.authorization.k8s.io": "rbac",
    "ClusterRoleBinding.rbac.authorization.k8s.io": "rbac",
    "ConfigMap": "config",
    "CronJob.batch": "jobs",
    "DaemonSet.apps": "workloads",
    "Deployment.apps": "workloads",
    "EndpointSlice.discovery.k8s.io": "discovery",
    "Event": "events",
    "Event.events.k8s.io": "events",
    "Ingress.networking.k8s.io": "networking",
    "IngressClass.networking.k8s.io": "networking",
    "Job.batch": "jobs",
    "Lease.coordination.k8s.io": "coordination",
    "LimitRange": "limits",
    "Namespace": "namespaces",
    "NetworkPolicy.networking.k8s.io": "network_policies",
    "PersistentVolume": "persistent_volumes",
    "PersistentVolumeClaim": "storage",
    "Pod": "pods",
    "PodDisruptionBudget.policy": "policy",
    "PodTemplate": "pods",
    "PriorityClass.scheduling.k8s.io": "priority_classes",
    "ReplicaSet.apps": "workloads",
    "ResourceQuota": "limits",
    "Role.rbac.authorization.k8s.io": "rbac",
    "RoleBinding.rbac.authorization.k8s.io": "rbac",
    "Secret": "config",
    "Service": "services",
    "ServiceAccount": "config",
    "StatefulSet.apps": "stateful_sets",
    "StorageClass.storage.k8s.io": "storage",
}
_WHOLE: Final = (None, Subresource.SCALE)
"""Subresources whose updates are validated like those of the object."""


def _validation(group_kind: str) -> Validation | None:
    name = _MODULES.get(group_kind)
    if name is None:
        return None
    module: Any = import_module(f"ocf_server.validation.{name}")
    found: Validation = module.VALIDATIONS[group_kind]
    return found


def _metadata_update(new: Manifest, live: Manifest) -> Iterator[FieldError]:
    return metadata_update_errors(new["metadata"], live["metadata"])


def create_errors(manifest: Manifest, group_kind: str) -> list[FieldError] | None:
    """Return the errors of a new object.

    Args:
        manifest: The object, decoded and defaulted, with the fields that the API server sets.
        group_kind: Its kind, `Deployment.apps`.

    Returns:
        The errors in the order of the API server, empty if the object is valid; None if the table lacks the kind.
    """
    validation = _validation(group_kind)
    return None if validation is None else list(validation.create(manifest))


def update_errors(
    manifest: Manifest, live: Manifest, group_kind: str, subresource: Subresource | None
) -> list[FieldError] | None:
    """Return the errors of an update of an object.

    Args:
        manifest: The new object, decoded and defaulted, with the fields that the API server sets.
        group_kind: Its kind, `Deployment.apps`.
        subresource: Subresource of the request; None for the object itself.

    Returns:
        The errors in the order of the API server, empty if the object is valid; None if the table lacks the kind.
    """
    validation = _validation(group_kind)
    if validation is None:
        return None
    others = validation.subresources.get(subresource, _metadata_update) if subresource else validation.update
    rule = validation.update if subresource in _WHOLE else others
    return [*common_update_errors(manifest["metadata"], live["metadata"]), *rule(manifest, live)]
