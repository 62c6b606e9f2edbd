"""Default status handlers of a PersistentVolume, based on its phase (API reference, `PersistentVolumeStatus`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ocf.concepts import OperationalStatus, StatusReport
from ocf.lazy_types.kubernetes import V1PersistentVolume
from ocf.primitives.integration_status import IntegrationStatus

if TYPE_CHECKING:
    from collections.abc import Mapping


__all__ = ["default_grace_status_handler", "default_operational_status_handler"]

_BY_PHASE: Final[Mapping[str, StatusReport[OperationalStatus]]] = {
    "Available": StatusReport(OperationalStatus.OPERATIONAL, "PersistentVolume is available"),
    "Bound": StatusReport(OperationalStatus.OPERATIONAL, "PersistentVolume is bound to a claim"),
    "Pending": StatusReport(OperationalStatus.PENDING, "PersistentVolume is pending"),
    "Released": StatusReport(OperationalStatus.FAILING, "PersistentVolume has been released and is not yet reclaimed"),
    "Failed": StatusReport(OperationalStatus.FAILING, "PersistentVolume reclamation has failed"),
}


def _observed(live: V1PersistentVolume) -> StatusReport[OperationalStatus]:
    phase = (live.status.phase if live.status else None) or ""
    return _BY_PHASE.get(phase) or StatusReport(OperationalStatus.PENDING, f'PersistentVolume phase is "{phase}"')


_STATUS: Final = IntegrationStatus(_observed)

default_operational_status_handler: Final = _STATUS.operational
"""Status handler: `Operational` in the phases `Available` and `Bound`, `OperationFailing` in the phases `Released` and
`Failed`, else `OperationPending`."""

default_grace_status_handler: Final = _STATUS.grace
"""Grace handler: `Healthy` in the phases `Available` and `Bound`, `Down` in the phases `Released` and `Failed`, else
`Degraded`."""
