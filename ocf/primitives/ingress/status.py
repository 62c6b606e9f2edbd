"""Default status handlers of an Ingress (API reference, `IngressStatus`)."""

from __future__ import annotations

from typing import Final

from ocf.concepts import OperationalStatus, StatusReport
from ocf.lazy_types.kubernetes import V1Ingress
from ocf.primitives.integration_status import IntegrationStatus
from ocf.primitives.suspension import always_suspended

__all__ = [
    "default_grace_status_handler",
    "default_operational_status_handler",
    "default_suspension_status_handler",
]


def _observed(live: V1Ingress) -> StatusReport[OperationalStatus]:
    balancer = live.status.load_balancer if live.status else None
    # Some controllers first write an empty entry, which is not an address.
    if any(entry.ip or entry.hostname for entry in (balancer.ingress if balancer else None) or ()):
        return StatusReport(OperationalStatus.OPERATIONAL, "Ingress has been assigned an address")
    return StatusReport(OperationalStatus.PENDING, "Awaiting load balancer address assignment")


_STATUS: Final = IntegrationStatus(_observed)

default_operational_status_handler: Final = _STATUS.operational
"""Status handler: `Operational` once the Ingress has an IP address or a host name, before that `OperationPending`."""

default_grace_status_handler: Final = _STATUS.grace
"""Grace handler: `Healthy` once the Ingress has an IP address or a host name, else `Degraded`."""

default_suspension_status_handler: Final = always_suspended("Ingress suspended (backend unavailable)")
"""Suspension handler: always `Suspended`."""
