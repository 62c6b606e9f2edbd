"""Default status handlers of a Service (API reference, `ServiceStatus`).

Only a load balancer has to be waited for: its addresses are reported once the cloud provider has created it.
"""

from __future__ import annotations

from typing import Final

from ocf.concepts import ApplyOperation, GraceStatus, OperationalStatus, StatusReport
from ocf.lazy_types.kubernetes import V1Service
from ocf.objects import Manifest
from ocf.primitives.live_fields import live_field
from ocf.primitives.suspension import always_suspended

__all__ = [
    "default_grace_status_handler",
    "default_operational_status_handler",
    "default_suspension_status_handler",
]

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
    return StatusReport(OperationalStatus.PENDING, _AWAITING)


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
    return StatusReport(GraceStatus.DEGRADED, _AWAITING)


default_suspension_status_handler: Final = always_suspended("Service unaffected by suspension")
"""Suspension handler: always `Suspended`; there is nothing to wait for."""


def _is_load_balancer(live: V1Service | Manifest) -> bool:
    return bool(live_field(live, "spec", "type") == "LoadBalancer")


def _has_address(live: V1Service | Manifest) -> bool:
    """Return whether any entry has an address; some providers first write an empty one, which does not count."""
    entries = live_field(live, "status", "loadBalancer", "ingress") or ()
    return any(live_field(entry, "ip") or live_field(entry, "hostname") for entry in entries)
