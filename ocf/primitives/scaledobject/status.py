"""Default status handlers of a ScaledObject, based on its conditions.

KEDA sets `Paused` once it has stopped to scale and deleted its HPA. Its conditions have no generation.

Source: https://keda.sh/docs/latest/reference/scaledobject-spec/ and `controllers/keda/scaledobject_controller.go`.
"""

from __future__ import annotations

from typing import Final

from ocf.concepts import OperationalStatus, StatusReport, SuspensionStatus
from ocf.objects.third_party.lazy import ScaledObject
from ocf.primitives.condition_status import SeenCondition, conditions_of
from ocf.primitives.integration_status import IntegrationStatus

__all__ = [
    "PAUSED_ANNOTATION",
    "default_grace_status_handler",
    "default_operational_status_handler",
    "default_suspension_status_handler",
]

PAUSED_ANNOTATION: Final = "autoscaling.keda.sh/paused"
"""Annotation that makes KEDA stop scaling and delete its HPA; the target keeps its replica count."""


def _condition(live: ScaledObject, kind: str) -> SeenCondition | None:
    return next((condition for condition in conditions_of(live.status) if condition.type == kind), None)


def _observed(live: ScaledObject) -> StatusReport[OperationalStatus]:
    ready = _condition(live, "Ready")
    match ready.status if ready else "":
        case "True":
            return StatusReport(OperationalStatus.OPERATIONAL, ready.text if ready else "")
        case "False":
            return StatusReport(OperationalStatus.FAILING, ready.text if ready else "")
        case _:
            return StatusReport(OperationalStatus.PENDING, "Waiting for condition Ready of the ScaledObject")


def default_suspension_status_handler(live: ScaledObject) -> StatusReport[SuspensionStatus]:
    """Return the suspension status of a ScaledObject.

    Args:
        live: The object as the API server returned it.

    Returns:
        `Suspended` once the pause annotation is set and KEDA reports that scaling is paused, before that `Suspending`.
    """
    annotations = (live.metadata.annotations if live.metadata else None) or {}
    if PAUSED_ANNOTATION not in annotations:
        return StatusReport(SuspensionStatus.SUSPENDING, "Waiting for the pause annotation to be applied")
    paused = _condition(live, "Paused")
    if paused is None or paused.status != "True":
        return StatusReport(SuspensionStatus.SUSPENDING, "Waiting for KEDA to pause the ScaledObject")
    return StatusReport(SuspensionStatus.SUSPENDED, "ScaledObject paused")


_STATUS: Final = IntegrationStatus(_observed)

default_operational_status_handler: Final = _STATUS.operational
"""Status handler: `Operational` while `Ready` is True, `OperationFailing` while it is False, else
`OperationPending`."""

default_grace_status_handler: Final = _STATUS.grace
"""Grace handler: `Healthy` while `Ready` is True, `Down` while it is False, else `Degraded`."""
