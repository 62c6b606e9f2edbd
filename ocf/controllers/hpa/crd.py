"""Our own kind: spec and status of autoscaling/v2, with settings that the built-in controller only has per cluster."""

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
    """Settings of this autoscaler; fields that are not set have the value of the controller."""

    sync_period_seconds: Annotated[
        Seconds,
        Field(alias="syncPeriodSeconds", description="The time between two reconciles of the autoscaler, in seconds."),
    ] = None
    tolerance: Annotated[
        QuantityText | None,
        Field(description="How much a ratio may differ from 1 without scaling the target; 0.1 is 10 percent."),
    ] = None
    downscale_stabilization_seconds: Annotated[
        Seconds,
        Field(
            alias="downscaleStabilizationSeconds",
            description="How long a recommendation is a lower limit for scaling down, in seconds,"
            " if `behavior` does not set it.",
        ),
    ] = None
    cpu_initialization_period_seconds: Annotated[
        Seconds,
        Field(
            alias="cpuInitializationPeriodSeconds",
            description="The period after pod start in which CPU samples may be skipped, in seconds.",
        ),
    ] = None
    initial_readiness_delay_seconds: Annotated[
        Seconds,
        Field(
            alias="initialReadinessDelaySeconds",
            description="The period after pod start in which a pod that turns unready counts as never ready,"
            " in seconds.",
        ),
    ] = None
    scale_up_limit_factor: Annotated[
        QuantityText | None,
        Field(
            alias="scaleUpLimitFactor",
            description="Without `behavior`, the largest multiple to which one reconcile scales up the target.",
        ),
    ] = None
    scale_up_limit_minimum: Annotated[
        int | None,
        Field(
            alias="scaleUpLimitMinimum",
            ge=0,
            description="Without `behavior`, one reconcile may scale up to this many pods,"
            " even if that is a larger multiple.",
        ),
    ] = None


class HorizontalAutoscalerSpec(V2HorizontalPodAutoscalerSpec):
    """The spec of a HorizontalPodAutoscaler, with settings."""

    settings: HorizontalAutoscalerSettings | None = None


class HorizontalAutoscaler(BaseModel):
    """An autoscaler that the built-in controller does not see."""

    spec: HorizontalAutoscalerSpec
    status: V2HorizontalPodAutoscalerStatus | None = None


_COLUMNS: Final = (
    PrinterColumn("Reference", ".spec.scaleTargetRef.name", description="The scaled target."),
    PrinterColumn("MinPods", ".spec.minReplicas"),
    PrinterColumn("MaxPods", ".spec.maxReplicas"),
    PrinterColumn("Replicas", ".status.currentReplicas"),
    PrinterColumn(
        "Active",
        '.status.conditions[?(@.type=="ScalingActive")].status',
        description="Whether the desired replicas can be computed.",
    ),
    AGE,
)


def definition() -> Manifest:
    """Return the CustomResourceDefinition of our own kind.

    Example:
        >>> definition()["metadata"]["name"]
        'horizontalautoscalers.autoscaling.ocf.dev'
    """
    version = CRDVersion(_VERSION, HorizontalAutoscaler, columns=_COLUMNS)
    return crd(GROUP, version, short_names=["oha"], categories=["autoscaling"])
