"""The kind of our own: spec and status of autoscaling/v2, and settings that the built-in controller has per cluster."""

from typing import Annotated, Final

from kubernetes.client import V2HorizontalPodAutoscalerSpec, V2HorizontalPodAutoscalerStatus
from pydantic import BaseModel, Field

from ocf.controllers.hpa.modes import GROUP, OWN
from ocf.objects import Manifest
from ocf.runtime.crds import AGE, CRDVersion, PrinterColumn, QuantityText, crd

__all__ = ["HorizontalAutoscaler", "HorizontalAutoscalerSettings", "HorizontalAutoscalerSpec", "definition"]

_HOUR: Final = 3600
_VERSION: Final = OWN[0].partition("/")[2]

Seconds = Annotated[int | None, Field(ge=1, le=_HOUR)]


class HorizontalAutoscalerSettings(BaseModel):
    """Settings of the controller for this autoscaler alone; what is not said is the controller's."""

    sync_period_seconds: Annotated[
        Seconds, Field(alias="syncPeriodSeconds", description="How often the autoscaler is looked at.")
    ] = None
    tolerance: Annotated[
        QuantityText | None,
        Field(description="By how much a ratio may differ from 1 without consequence, 0.1 for 10 percent."),
    ] = None
    downscale_stabilization_seconds: Annotated[
        Seconds,
        Field(
            alias="downscaleStabilizationSeconds",
            description="How long a recommendation keeps the target from shrinking below it,"
            " where `behavior` says nothing about it.",
        ),
    ] = None
    cpu_initialization_period_seconds: Annotated[
        Seconds,
        Field(
            alias="cpuInitializationPeriodSeconds",
            description="How long after its start a pod's cpu is looked at with suspicion.",
        ),
    ] = None
    initial_readiness_delay_seconds: Annotated[
        Seconds,
        Field(
            alias="initialReadinessDelaySeconds",
            description="How long after its start a change to unready counts as never having been ready.",
        ),
    ] = None
    scale_up_limit_factor: Annotated[
        QuantityText | None,
        Field(
            alias="scaleUpLimitFactor",
            description="Without `behavior`, the target grows at most to this multiple at once.",
        ),
    ] = None
    scale_up_limit_minimum: Annotated[
        int | None,
        Field(
            alias="scaleUpLimitMinimum",
            ge=0,
            description="Without `behavior`, the target may grow to this many pods at once, if that is more.",
        ),
    ] = None


class HorizontalAutoscalerSpec(V2HorizontalPodAutoscalerSpec):
    """What is scaled, and on what: the spec of a HorizontalPodAutoscaler, and settings."""

    settings: HorizontalAutoscalerSettings | None = None


class HorizontalAutoscaler(BaseModel):
    """An autoscaler that the built-in controller does not see."""

    spec: HorizontalAutoscalerSpec
    status: V2HorizontalPodAutoscalerStatus | None = None


_COLUMNS: Final = (
    PrinterColumn("Reference", ".spec.scaleTargetRef.name", description="What is scaled."),
    PrinterColumn("MinPods", ".spec.minReplicas"),
    PrinterColumn("MaxPods", ".spec.maxReplicas"),
    PrinterColumn("Replicas", ".status.currentReplicas"),
    PrinterColumn(
        "Active", '.status.conditions[?(@.type=="ScalingActive")].status', description="Whether it computes."
    ),
    AGE,
)


def definition() -> Manifest:
    """Write the CustomResourceDefinition of our own kind.

    Example:
        >>> definition()["metadata"]["name"]
        'horizontalautoscalers.autoscaling.ocf.dev'
    """
    version = CRDVersion(_VERSION, HorizontalAutoscaler, columns=_COLUMNS)
    return crd(GROUP, version, short_names=["oha"], categories=["autoscaling"])
