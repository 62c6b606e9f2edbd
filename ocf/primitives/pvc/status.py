"""Default status handlers of a PersistentVolumeClaim, based on its phase.

Source: the API reference, `PersistentVolumeClaimStatus`.
"""

from __future__ import annotations

from typing import Final

from ocf.concepts import OperationalStatus, StatusReport
from ocf.lazy_types.kubernetes import V1PersistentVolumeClaim
from ocf.primitives.integration_status import IntegrationStatus
from ocf.primitives.suspension import always_suspended

__all__ = [
    "default_grace_status_handler",
    "default_operational_status_handler",
    "default_suspension_status_handler",
]


def _observed(live: V1PersistentVolumeClaim) -> StatusReport[OperationalStatus]:
    match live.status.phase if live.status else None:
        case "Bound":
            volume = live.spec.volume_name if live.spec else None
            reason = f"PVC is bound to volume {volume}" if volume else "PVC is bound"
            return StatusReport(OperationalStatus.OPERATIONAL, reason)
        case "Lost":
            return StatusReport(OperationalStatus.FAILING, "PVC has lost its bound volume")
        case _:
            return StatusReport(OperationalStatus.PENDING, "Waiting for PVC to be bound")


_STATUS: Final = IntegrationStatus(_observed)

default_operational_status_handler: Final = _STATUS.operational
"""Status handler: `Operational` in phase `Bound`, `OperationFailing` in phase `Lost`, else `OperationPending`."""

default_grace_status_handler: Final = _STATUS.grace
"""Grace handler: `Healthy` in phase `Bound`, `Down` in phase `Lost`, else `Degraded`."""

default_suspension_status_handler: Final = always_suspended("PVC does not require suspension actions")
"""Suspension handler: always `Suspended`."""
