"""Default status handlers of a Certificate, based on its condition `Ready`.

`Ready` is True while the Secret has a certificate for the current spec that has not expired. Failed attempts to issue
one are counted, and the count is removed by the next success.

Source: https://cert-manager.io/docs/reference/api-docs/#cert-manager.io/v1.CertificateStatus.
"""

from __future__ import annotations

from typing import Final

from ocf.concepts import OperationalStatus, StatusReport
from ocf.objects.third_party.lazy import Certificate
from ocf.primitives.condition_status import ConditionStatus, conditions_of
from ocf.primitives.integration_status import IntegrationStatus
from ocf.primitives.suspension import always_suspended

__all__ = [
    "default_grace_status_handler",
    "default_operational_status_handler",
    "default_suspension_status_handler",
]

_READY: Final = ConditionStatus()


def _observed(live: Certificate) -> StatusReport[OperationalStatus]:
    report = _READY.observe(live)
    attempts = (live.status.failed_issuance_attempts if live.status else None) or 0
    if report.status is OperationalStatus.OPERATIONAL or not attempts:
        return report
    issuing = next((found for found in conditions_of(live.status) if found.type == "Issuing"), None)
    reason = issuing.message if issuing and issuing.message else report.reason
    return StatusReport(OperationalStatus.FAILING, f"Certificate could not be issued ({attempts} failed): {reason}")


_STATUS: Final = IntegrationStatus(_observed)

default_operational_status_handler: Final = _STATUS.operational
"""Status handler: `Operational` while `Ready` is True for the current generation, `OperationFailing` if it is not and
an attempt to issue the certificate has failed, else `OperationPending`."""

default_grace_status_handler: Final = _STATUS.grace
"""Grace handler: `Healthy` while `Ready` is True, `Down` if it is not and an attempt has failed, else `Degraded`."""

default_suspension_status_handler: Final = always_suspended("Certificate unaffected by suspension")
"""Suspension handler: always `Suspended`."""
