"""Default status handlers of a HorizontalPodAutoscaler, based on its conditions.

The HPA controller reports three conditions (API reference, `HorizontalPodAutoscalerCondition`): `AbleToScale`,
`ScalingActive` and `ScalingLimited`. The first two determine the status; being limited by the bounds is not a failure.
An autoscaler that cannot scale is unhealthy regardless of its other conditions, so `AbleToScale` is checked first.
"""

from __future__ import annotations

from typing import Final

from ocf.concepts import ApplyOperation, GraceStatus, OperationalStatus, StatusReport
from ocf.lazy_types.kubernetes import V2HorizontalPodAutoscaler
from ocf.objects import Manifest
from ocf.primitives.status import always_suspended, condition_of, live_field

__all__ = [
    "default_grace_status_handler",
    "default_operational_status_handler",
    "default_suspension_status_handler",
    "scaled_to_zero_grace_status_handler",
    "scaled_to_zero_operational_status_handler",
]

_NO_CONDITIONS: Final = "Waiting for HPA conditions to be populated"
_NO_SCALING_ACTIVE: Final = "Waiting for ScalingActive condition on HPA"


def default_operational_status_handler(
    operation: ApplyOperation,  # noqa: ARG001 (the signature of every status handler)
    live: V2HorizontalPodAutoscaler | Manifest,
) -> StatusReport[OperationalStatus]:
    """Return the status of an autoscaler according to its conditions.

    Args:
        operation: What this reconcile did to the object; not used.
        live: The object as the API server returned it.

    Returns:
        `Operational` while scaling is active, `OperationFailing` while it is inactive or not possible, else
        `OperationPending`; the reason is the message of the condition.

    Example:
        >>> from kubernetes.client import V2HorizontalPodAutoscaler
        >>> fresh = V2HorizontalPodAutoscaler.model_validate(
        ...     {"spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "web"}}})
        >>> default_operational_status_handler(ApplyOperation.CREATED, fresh).status
        <OperationalStatus.PENDING: 'OperationPending'>
    """
    able = condition_of(live, "AbleToScale")
    if able is not None and able.status == "False":
        return StatusReport(OperationalStatus.FAILING, able.message or "AbleToScale is False")
    active = condition_of(live, "ScalingActive")
    if active is None:
        return StatusReport(OperationalStatus.PENDING, _waiting(live))
    match active.status:
        case "True":
            return StatusReport(OperationalStatus.OPERATIONAL, active.message or "ScalingActive is True")
        case "False":
            return StatusReport(OperationalStatus.FAILING, active.message or "ScalingActive is False")
        case "Unknown":
            return StatusReport(OperationalStatus.PENDING, active.message or "ScalingActive is Unknown")
        case _:
            return StatusReport(OperationalStatus.PENDING, active.message or "ScalingActive has unrecognized status")


def default_grace_status_handler(live: V2HorizontalPodAutoscaler | Manifest) -> StatusReport[GraceStatus]:
    """Return the status of an autoscaler after the grace period, according to the same conditions.

    Args:
        live: The object as the API server returned it.

    Returns:
        `Healthy` while scaling is active, `Down` while it is inactive or not possible, else `Degraded`.
    """
    able = condition_of(live, "AbleToScale")
    if able is not None and able.status == "False":
        return StatusReport(GraceStatus.DOWN, able.message or "AbleToScale is False")
    active = condition_of(live, "ScalingActive")
    if active is None:
        return StatusReport(GraceStatus.DEGRADED, _waiting(live))
    match active.status:
        case "True":
            return StatusReport(GraceStatus.HEALTHY, active.message or "ScalingActive is True")
        case "False":
            return StatusReport(GraceStatus.DOWN, active.message or "ScalingActive is False")
        case _:
            return StatusReport(GraceStatus.DEGRADED, active.message or "ScalingActive is Unknown")


default_suspension_status_handler: Final = always_suspended(
    "HorizontalPodAutoscaler suspended to prevent scaling interference"
)
"""Suspension handler: always `Suspended`; nothing remains to be done once the object is deleted, or kept on purpose."""


def scaled_to_zero_operational_status_handler(
    operation: ApplyOperation, live: V2HorizontalPodAutoscaler | Manifest
) -> StatusReport[OperationalStatus]:
    """Return the default status, but `Operational` if the target was scaled to zero on purpose.

    The HPA controller disables scaling (`ScalingActive` False, reason `ScalingDisabled`) while the target has 0
    replicas and `minReplicas` is not 0. Whether that is intended depends on the product, so this handler is opt-in::

        hpa.Builder(base).with_custom_operational_status(hpa.scaled_to_zero_operational_status_handler)

    Args:
        operation: What this reconcile did to the object; not used.
        live: The object as the API server returned it.

    Returns:
        `Operational` for a disabled autoscaler that is able to scale, otherwise the default status.
    """
    reason = _disabled_reason(live)
    if reason is None:
        return default_operational_status_handler(operation, live)
    return StatusReport(OperationalStatus.OPERATIONAL, reason)


def scaled_to_zero_grace_status_handler(live: V2HorizontalPodAutoscaler | Manifest) -> StatusReport[GraceStatus]:
    """Return the default status after the grace period, but `Healthy` if the target was scaled to zero on purpose.

    Args:
        live: The object as the API server returned it.

    Returns:
        `Healthy` for a disabled autoscaler that is able to scale, otherwise the default status.
    """
    reason = _disabled_reason(live)
    if reason is None:
        return default_grace_status_handler(live)
    return StatusReport(GraceStatus.HEALTHY, reason)


def _disabled_reason(live: V2HorizontalPodAutoscaler | Manifest) -> str | None:
    """Return why scaling is disabled; None if it is not disabled, or the autoscaler cannot scale."""
    able = condition_of(live, "AbleToScale")
    active = condition_of(live, "ScalingActive")
    if active is None or active.status != "False" or active.reason != "ScalingDisabled":
        return None
    if able is not None and able.status == "False":
        return None
    return active.message or "scaling is disabled since the replica count of the target is zero"


def _waiting(live: V2HorizontalPodAutoscaler | Manifest) -> str:
    return _NO_SCALING_ACTIVE if live_field(live, "status", "conditions") else _NO_CONDITIONS
