"""Our own kind: spec and status of autoscaling/v2, with settings that the built-in controller only has per cluster."""

from typing import Annotated, Final

from kubernetes.client import V2HorizontalPodAutoscalerSpec, V2HorizontalPodAutoscalerStatus
from pydantic import BaseModel, Field, WithJsonSchema

from ocf.controllers.hpa.modes import GROUP, OWN
from ocf.objects import Manifest
from ocf.runtime.crds import CRDVersion, PrinterColumn, QuantityText, ValidationRule, crd, rules
from ocf.runtime.crds.crd import AGE
from ocf.runtime.crds.markers import RuleReason

__all__ = [
    "HorizontalAutoscaler",
    "definition",
]

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


def _not_negative(path: str) -> ValidationRule:
    """Return the rule of a quantity that must not be negative; `path` starts with a dot."""
    parts = path[1:].split(".")
    present = " && ".join(f"has(self.{'.'.join(parts[: number + 1])})" for number in range(len(parts)))
    # CEL sees an int-or-string as whichever was written, and `quantity` takes strings only.
    compared = f"quantity(string(self{path})).compareTo(quantity('0')) >= 0"
    return ValidationRule(f"!({present}) || {compared}", message="must be greater than or equal to 0", field_path=path)


@rules(
    ValidationRule("self.maxReplicas >= 1", message="must be greater than 0", field_path=".maxReplicas"),
    ValidationRule(
        "self.minReplicas <= self.maxReplicas",
        message="must be greater than or equal to `minReplicas`",
        field_path=".maxReplicas",
    ),
    ValidationRule(
        "self.minReplicas > 0 || (has(self.metrics) && self.metrics.exists(m, m.type in ['Object', 'External']))",
        message="must specify at least one Object or External metric to support scaling to zero replicas",
        reason=RuleReason.FORBIDDEN,
        field_path=".metrics",
    ),
    *(
        ValidationRule(f"self.scaleTargetRef.{field} != ''", reason=RuleReason.REQUIRED, field_path=".scaleTargetRef")
        for field in ("kind", "name")
    ),
    *(
        _not_negative(path)
        for path in (".settings.tolerance", ".behavior.scaleUp.tolerance", ".behavior.scaleDown.tolerance")
    ),
    ValidationRule(
        "!has(self.settings) || !has(self.settings.scaleUpLimitFactor)"
        " || quantity(string(self.settings.scaleUpLimitFactor)).compareTo(quantity('1')) >= 0",
        message="must be greater than or equal to 1",
        field_path=".settings.scaleUpLimitFactor",
    ),
)
class HorizontalAutoscalerSpec(V2HorizontalPodAutoscalerSpec):
    """The spec of a HorizontalPodAutoscaler, with settings."""

    # The default replaces null, so the schema does not allow it.
    min_replicas: Annotated[
        int | None,
        Field(alias="minReplicas"),
        WithJsonSchema({"type": "integer", "minimum": 0, "description": "The lower limit of the replicas."}),
    ] = 1
    settings: HorizontalAutoscalerSettings | None = None


class HorizontalAutoscalerStatus(V2HorizontalPodAutoscalerStatus):
    """The status of a HorizontalPodAutoscaler, with a summary."""

    targets: Annotated[
        str | None,
        Field(description="Current and desired values of the metrics, as `kubectl get hpa` shows them."),
    ] = None


class HorizontalAutoscaler(BaseModel):
    """An autoscaler that the built-in controller does not see."""

    spec: HorizontalAutoscalerSpec
    status: HorizontalAutoscalerStatus | None = None


_COLUMNS: Final = (
    PrinterColumn("Kind", ".spec.scaleTargetRef.kind", description="The kind of the scaled target."),
    PrinterColumn("Reference", ".spec.scaleTargetRef.name", description="The name of the scaled target."),
    PrinterColumn("Targets", ".status.targets", description="Current and desired values of the metrics."),
    PrinterColumn("MinPods", ".spec.minReplicas"),
    PrinterColumn("MaxPods", ".spec.maxReplicas"),
    PrinterColumn("Replicas", ".status.currentReplicas"),
    PrinterColumn(
        "Active",
        '.status.conditions[?(@.type=="ScalingActive")].status',
        description="Whether the desired replicas can be computed.",
    ),
    PrinterColumn("Reason", '.status.conditions[?(@.type=="ScalingActive")].reason', description="Why, or why not."),
    AGE,
)


def definition() -> Manifest:
    """Return the CustomResourceDefinition of our own kind.

    Example:
        >>> definition()["metadata"]["name"]
        'horizontalautoscalers.autoscaling.ocf.dev'
    """
    version = CRDVersion(_VERSION, HorizontalAutoscaler, columns=_COLUMNS)
    return crd(GROUP, version, short_names=["oha"], categories=["all", "autoscaling"])
