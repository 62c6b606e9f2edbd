"""The spec of an HPA, parsed into the numbers that the algorithm computes with.

Parsing a manifest costs more than a decision, and a spec changes rarely. So it is parsed once and used for many syncs.
Amounts are integers of thousandths.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from ocf.autoscaling.api.decoding import decode
from ocf.autoscaling.api.defaulting import default
from ocf.objects import Manifest, Quantity
from ocf.objects.name_validation import label_value, qualified_name
from ocf.schema.metric_sources import PODLESS_METRICS, source_field

__all__ = ["Autoscaler", "Behavior", "Metric", "MetricTarget", "ScalingPolicy", "ScalingRules", "selector_error"]

# The API server stores a quantity with a suffix, so its digits count in steps of three.
_NANO_DIGITS: Final = 9
_DIGITS_OF_STEP: Final = 3
_STEP: Final = 10**_DIGITS_OF_STEP
_SETS: Final = frozenset({"In", "NotIn"})
_UNARY: Final = frozenset({"Exists", "DoesNotExist"})


@dataclass(frozen=True, slots=True)
class MetricTarget:
    """The target of a metric; several amounts may be set, and the type of the metric decides which one is used.

    Args:
        type: `Utilization`, `Value` or `AverageValue`; used by metrics of type Object only.
        utilization: `averageUtilization`, percent of the requests.
        average: `averageValue`, thousandths per pod.
        value: `value`, thousandths for the whole workload.
    """

    type: str = ""
    utilization: int | None = None
    average: int | None = None
    value: int | None = None


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of an autoscaler.

    Args:
        type: `Resource`, `ContainerResource`, `Pods`, `Object`, `External`; a metric of another type fails.
        name: Name of the resource or the metric.
        target: The target.
        container: The container of a ContainerResource.
        described_object: Reference to the object of a metric of type Object.
        selector: Label selector of the metric as an object; None without a selector.
        selector_error: The error message for an invalid selector; empty if the selector is valid.
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
        """The field with the source, such as `containerResource`; empty for an unknown type."""
        return source_field(self.type)


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """The change that is allowed within a period.

    Args:
        type: `Pods` or `Percent`; a policy of another type repeats the limit of the policy before it.
        value: Pods, or percent of the replicas at the start of the period.
        period: The length of the period.
    """

    type: str
    value: int
    period: timedelta


@dataclass(frozen=True, slots=True)
class ScalingRules:
    """The scaling rules of one direction.

    Args:
        policies: The policies that limit the rate.
        select: `Max`: the policy with the largest change applies; `Min`: the smallest; `Disabled`: no scaling.
        window: The stabilization window; None for the controller's setting.
        tolerance: The tolerance; None for the controller's setting.
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
    """The `behavior` of an HPA.

    Args:
        up: The rules for scaling up.
        down: The rules for scaling down.
    """

    up: ScalingRules
    down: ScalingRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaler:
    """The name and the spec of an HPA.

    Args:
        namespace: The namespace.
        name: The name.
        kind: Kind of the target.
        target: Name of the target.
        api_version: API version of the target.
        minimum: `minReplicas`.
        maximum: `maxReplicas`.
        metrics: The metrics, in the order of the spec.
        behavior: The scaling behavior; None if the spec has none.
        generation: `metadata.generation`; None if it is not known.

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
        """Parse an HPA of autoscaling/v2, with the defaults of the API server.

        Args:
            hpa: The manifest. Its types are checked, the rules of the API server are not; any `kind` is accepted.

        Returns:
            The autoscaler.

        Raises:
            ManifestError: If fields have values of a wrong type; the error names all of them.
        """
        return _autoscaler(default(decode(hpa, strict=False)))

    @property
    def reference(self) -> str:
        """The target as error messages name it: `Deployment/shop/web`."""
        return f"{self.kind}/{self.namespace}/{self.target}"

    @property
    def has_podless_metric(self) -> bool:
        """Whether a metric is measured without pods; scaling up from zero needs one."""
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
        selector_error=selector_error(selector),
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


def _as_double(quantity: Quantity) -> float:
    """Return a quantity as a double as the controller does: digits times a power of ten, rounded twice."""
    digits, power = quantity.nano, -_NANO_DIGITS
    # AsApproximateFloat64 multiplies the stored digits by a power of ten: 350m is 350 * 1e-3, 0.35000000000000003, and
    # a ratio of 1.35 is compared with that.
    while digits and digits % _STEP == 0:
        digits //= _STEP
        power += _DIGITS_OF_STEP
    return float(digits) * float(f"1e{power}")


# The API server does not check these selectors; the controller finds the errors when it converts one, and users find
# them in conditions and events. Source: `LabelSelectorAsSelector` and `labels.NewRequirement` of k8s.io/apimachinery
# 1.36.
def selector_error(selector: Manifest | None) -> str:
    """Return the error of a selector of a metric; empty if it is valid.

    Args:
        selector: The selector in object form, of the types of the API; None for a missing one.

    Example:
        >>> selector_error({"matchExpressions": [{"key": "shop", "operator": "Near"}]})
        '"Near" is not a valid label selector operator'
        >>> selector_error({"matchExpressions": [{"key": "shop", "operator": "In"}]})
        "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
    """
    for key, operator, values in _requirements(selector or {}):
        if operator not in _SETS | _UNARY:
            return f"{json.dumps(operator)} is not a valid label selector operator"
        errors = list(dict.fromkeys(_errors(key, operator, values)))
        if errors:
            return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
    return ""


def _requirements(selector: Manifest) -> Iterator[tuple[str, str, Sequence[str] | None]]:
    for key, value in (selector.get("matchLabels") or {}).items():
        yield key, "In", [value or ""]
    for expression in selector.get("matchExpressions") or ():
        yield expression.get("key") or "", expression.get("operator") or "", expression.get("values")


def _errors(key: str, operator: str, values: Sequence[str] | None) -> Iterator[str]:
    problems = qualified_name(key)
    if problems:
        yield f"key: Invalid value: {json.dumps(key)}: {'; '.join(problems)}"
    written = json.dumps(values, separators=(",", ":"))
    if operator in _SETS and not values:
        yield f"values: Invalid value: {written}: for 'in', 'notin' operators, values set can't be empty"
    if operator in _UNARY and values:
        yield f"values: Invalid value: {written}: values set must be empty for exists and does not exist"
    for position, value in enumerate(values or ()):
        problems = label_value(value)
        if problems:
            yield f"values[{position}][{key}]: Invalid value: {json.dumps(value)}: {'; '.join(problems)}"
