"""The Service (`v1`): operational, graceful, not affected by suspension.

A Service of type LoadBalancer is operational once it has an address; other types as soon as they exist. Suspending does
not change it: without pods it needs no resources, and deleting it would release its addresses.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ocf import feature
from ocf.concepts import ApplyOperation, GraceStatus, OperationalStatus, StatusReport
from ocf.editors import ObjectMetaEditor, ServiceSpecEditor
from ocf.lazy_types.kubernetes import V1Service
from ocf.objects import Manifest
from ocf.primitives.builder import IntegrationBuilder
from ocf.primitives.kind import Handlers, Kind, OnManifest
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import IntegrationResource
from ocf.primitives.status import always_suspended, conditions_of, live_field, port_error

__all__ = [
    "Builder",
    "Mutation",
    "Mutator",
    "Resource",
    "default_grace_status_handler",
    "default_operational_status_handler",
    "default_suspension_status_handler",
]


class Mutator(BaseMutator):
    """Records edits of a Service: first its metadata, then its spec."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_service_spec = Edits(ServiceSpecEditor, "spec")


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a Service."""

Resource: TypeAlias = IntegrationResource["V1Service", Mutator]
"""A Service as a resource of a component."""


# Default status handlers of a Service (API reference, `ServiceStatus`).
#
# Only a load balancer has to be waited for: its addresses are reported once the cloud provider has created it.

_ASSIGNED: Final = "Load balancer IP/hostname assigned"
_AWAITING: Final = "Awaiting load balancer IP/hostname assignment"


def default_operational_status_handler(
    operation: ApplyOperation,  # noqa: ARG001 (the signature of every status handler)
    live: V1Service | Manifest,
) -> StatusReport[OperationalStatus]:
    """Return the status of a Service.

    Args:
        operation: What this reconcile did to the object; not used.
        live: The object as the API server returned it.

    Returns:
        `OperationPending` for a load balancer without an address, else `Operational`.
    """
    if not _is_load_balancer(live):
        return StatusReport(OperationalStatus.OPERATIONAL, "Service is operational")
    if _has_address(live):
        return StatusReport(OperationalStatus.OPERATIONAL, _ASSIGNED)
    return StatusReport(OperationalStatus.PENDING, _awaiting(live))


def default_grace_status_handler(live: V1Service | Manifest) -> StatusReport[GraceStatus]:
    """Return the status of a Service after the grace period.

    Args:
        live: The object as the API server returned it.

    Returns:
        `Degraded` for a load balancer without an address, because it still works inside the cluster; else `Healthy`.
    """
    if not _is_load_balancer(live):
        return StatusReport(GraceStatus.HEALTHY, "Service is healthy")
    if _has_address(live):
        return StatusReport(GraceStatus.HEALTHY, _ASSIGNED)
    return StatusReport(GraceStatus.DEGRADED, _awaiting(live))


default_suspension_status_handler: Final = always_suspended("Service unaffected by suspension")
"""Suspension handler: always `Suspended`; there is nothing to wait for."""


def _is_load_balancer(live: V1Service | Manifest) -> bool:
    return bool(live_field(live, "spec", "type") == "LoadBalancer")


def _has_address(live: V1Service | Manifest) -> bool:
    """Return whether any entry has an address; some providers first write an empty one, which does not count."""
    entries = live_field(live, "status", "loadBalancer", "ingress") or ()
    return any(live_field(entry, "ip") or live_field(entry, "hostname") for entry in entries)


def _awaiting(live: V1Service | Manifest) -> str:
    """Return that an address is missing, and why, if a controller of load balancers reports that as a condition.

    The API defines no condition for it. `LoadBalancerPortsError` is True if a port is the cause; controllers have types
    of their own that are False, such as `cilium.io/IPAMRequestSatisfied`.
    """
    if problem := port_error(live):
        return f"{_AWAITING}: {problem}"
    for condition in conditions_of(live_field(live, "status")):
        if condition.status == ("True" if condition.type == "LoadBalancerPortsError" else "False"):
            return f"{_AWAITING}: {condition.with_reason}"
    name = live_field(live, "spec", "loadBalancerClass")
    return f'{_AWAITING}: no controller of load balancer class "{name}" has set one' if name else _AWAITING


class Builder(IntegrationBuilder[V1Service, Mutator]):
    """Builds a Service.

    Args:
        base: The desired baseline: a `V1Service`, a manifest, or a YAML text with one document.

    Example:
        >>> metadata = {"name": "web", "namespace": "shop"}
        >>> spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
        >>> Builder({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}).build().identity
        'v1/Service/shop/web'
    """

    kind = Kind("v1", "Service", "V1Service", Mutator, selector=("spec", "selector"))
    handlers = Handlers(
        status=OnManifest(default_operational_status_handler),
        grace=OnManifest(default_grace_status_handler),
        suspension=OnManifest(default_suspension_status_handler),
    )
