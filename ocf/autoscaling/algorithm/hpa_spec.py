"""What an autoscaler asks for, in the numbers that the algorithm computes with.

A manifest is a tree of texts. Reading it costs more than deciding, and it changes rarely, so it is read once and
decided on often. Amounts are thousandths in integers here, whatever text they had.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from ocf.autoscaling.api.decoding import decode
from ocf.autoscaling.api.defaulting import default
from ocf.errors import ManifestError
from ocf.objects import LabelSelector, Manifest, Quantity
from ocf.schema.metric_sources import PODLESS_METRICS, source_field

__all__ = ["Autoscaler", "Behavior", "Metric", "MetricTarget", "ScalingPolicy", "ScalingRules"]

# The API server stores a quantity with a suffix, so its digits count in steps of three.
_NANO_DIGITS: Final = 9
_DIGITS_OF_STEP: Final = 3
_STEP: Final = 10**_DIGITS_OF_STEP


@dataclass(frozen=True, slots=True)
class MetricTarget:
    """What a metric is compared with; several may be set, and the type of metric decides which counts.

    Args:
        type: `Utilization`, `Value` or `AverageValue`; only metrics of type Object look at it.
        utilization: `averageUtilization`, percent of the requests.
        average: `averageValue`, thousandths per pod.
        value: `value`, thousandths altogether.
    """

    type: str = ""
    utilization: int | None = None
    average: int | None = None
    value: int | None = None


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of an autoscaler.

    Args:
        type: `Resource`, `ContainerResource`, `Pods`, `Object`, `External`; anything else is refused when computed.
        name: Name of the resource, or of the metric.
        target: What it is compared with.
        container: The container of a ContainerResource.
        described: Reference to the object of a metric of type Object.
        selector: Label selector of the metric, in object form; None where there is none.
        complaint: What is wrong with the selector; empty if nothing is.
    """

    type: str
    name: str
    target: MetricTarget = MetricTarget()
    container: str = ""
    described_object: Manifest | None = None
    selector: Manifest | None = None
    selector_error: str = ""

    @property
    def source_field(self) -> str:
        """The field that holds the source, `containerResource`; empty for an unknown type."""
        return source_field(self.type)


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """By how much a workload may grow or shrink within a period.

    Args:
        type: `Pods` or `Percent`; one of another type repeats what the policy before it allowed.
        value: Pods, or percent of the count at the start of the period.
        period: How long the period is.
    """

    type: str
    value: int
    period: timedelta


@dataclass(frozen=True, slots=True)
class ScalingRules:
    """How a workload may change in one direction.

    Args:
        policies: What limits the rate.
        select: `Max`: the policy that allows the largest change counts; `Min`: the smallest; `Disabled`: no change.
        window: How far back recommendations count; None for the controller's setting.
        tolerance: Replaces the controller's tolerance; None where it does not.
    """

    policies: tuple[ScalingPolicy, ...] = ()
    select: str = "Max"
    window: timedelta | None = None
    tolerance: float | None = None

    @property
    def longest_period(self) -> timedelta:
        """The longest period of a policy."""
        return max((policy.period for policy in self.policies), default=timedelta())


@dataclass(frozen=True, slots=True)
class Behavior:
    """How a workload may change.

    Args:
        up: The rules of growing.
        down: The rules of shrinking.
    """

    up: ScalingRules
    down: ScalingRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaler:
    """An HPA as the algorithm needs it, without its status.

    Args:
        namespace: Its namespace.
        name: Its name.
        kind: Kind of what it scales.
        target: Name of what it scales.
        api_version: API version of what it scales.
        minimum: The fewest replicas.
        maximum: The most replicas.
        metrics: What it scales on, in the order of the spec.
        behavior: How fast; None if the HPA says nothing about it.
        generation: `metadata.generation`, where it is known.

    Example:
        >>> cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}
        >>> spec = {"maxReplicas": 9, "metrics": [{"type": "Resource", "resource": cpu}]}
        >>> Autoscaler.of({"metadata": {"name": "web"}, "spec": spec}).metrics[0].target.utilization
        70
    """

    namespace: str = "default"
    name: str
    kind: str = ""
    target: str = ""
    api_version: str = ""
    minimum: int = 1
    maximum: int
    metrics: tuple[Metric, ...] = ()
    behavior: Behavior | None = None
    generation: int | None = None

    @classmethod
    def of(cls, hpa: Manifest) -> "Autoscaler":
        """Read an HPA of autoscaling/v2; what it does not say is filled in as the API server does.

        Args:
            hpa: The manifest. It is not validated, but it must be readable; the kind does not matter.

        Returns:
            The autoscaler.

        Raises:
            ManifestError: If a field has a value of a wrong type; names all of them.
        """
        return _autoscaler(default(decode(hpa, strict=False)))

    @property
    def reference(self) -> str:
        """What it scales, as errors call it: `Deployment/shop/web`."""
        return f"{self.kind}/{self.namespace}/{self.target}"

    @property
    def has_podless_metric(self) -> bool:
        """Whether a metric does not need pods: only with one can a workload come back from zero."""
        return any(metric.type in PODLESS_METRICS for metric in self.metrics)


def _autoscaler(hpa: Manifest) -> Autoscaler:
    metadata, spec = hpa.get("metadata", {}), hpa["spec"]
    reference = spec.get("scaleTargetRef", {})
    behavior = spec.get("behavior")
    return Autoscaler(
        namespace=metadata.get("namespace", "default"),
        name=metadata.get("name", ""),
        kind=reference.get("kind", ""),
        target=reference.get("name", ""),
        api_version=reference.get("apiVersion", ""),
        minimum=spec["minReplicas"],
        maximum=spec.get("maxReplicas", 0),
        metrics=tuple(map(_metric, spec["metrics"])),
        behavior=None if behavior is None else Behavior(_rules(behavior["scaleUp"]), _rules(behavior["scaleDown"])),
        generation=metadata.get("generation"),
    )


def _metric(metric: Manifest) -> Metric:
    kind = metric.get("type", "")
    source = metric.get(source_field(kind), {})
    identity = source.get("metric", {})
    selector = identity.get("selector")
    return Metric(
        type=kind,
        name=identity.get("name", "") or source.get("name", ""),
        target=_target(source.get("target", {})),
        container=source.get("container", ""),
        described_object=source.get("describedObject"),
        selector=selector,
        selector_error=_selector_error(selector),
    )


def _target(target: Manifest) -> MetricTarget:
    average, value = target.get("averageValue"), target.get("value")
    return MetricTarget(
        type=target.get("type", ""),
        utilization=target.get("averageUtilization"),
        average=None if average is None else Quantity.parse(average).milli,
        value=None if value is None else Quantity.parse(value).milli,
    )


def _rules(rules: Manifest) -> ScalingRules:
    window, tolerance = rules.get("stabilizationWindowSeconds"), rules.get("tolerance")
    return ScalingRules(
        policies=tuple(map(_policy, rules["policies"])),
        select=rules["selectPolicy"],
        window=None if window is None else timedelta(seconds=window),
        tolerance=None if tolerance is None else _as_double(Quantity.parse(tolerance)),
    )


def _policy(policy: Manifest) -> ScalingPolicy:
    seconds = policy.get("periodSeconds", 0)
    return ScalingPolicy(policy.get("type", ""), policy.get("value", 0), timedelta(seconds=seconds))


def _selector_error(selector: Manifest | None) -> str:
    try:
        LabelSelector.of(selector)
    except ManifestError as error:
        return str(error)
    return ""


def _as_double(quantity: Quantity) -> float:
    """Return what the controller makes of a quantity: its digits times its power of ten, rounded twice."""
    digits, power = quantity.nano, -_NANO_DIGITS
    while digits and digits % _STEP == 0:
        digits //= _STEP
        power += _DIGITS_OF_STEP
    return float(digits) * float(f"1e{power}")
