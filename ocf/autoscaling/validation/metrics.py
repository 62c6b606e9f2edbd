"""Validation rules of the metrics of an HPA.

A metric has a `type` and a field of that name with its source. Only the first source of an entry is validated, in an
order that differs from that of the types; of further sources only the name is reported.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from ocf.autoscaling.api.decoders import parse_quantity
from ocf.autoscaling.validation.references import VersionRule, reference_errors
from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, forbidden, invalid, not_supported, required
from ocf.objects.name_validation import dns_label, path_segment, qualified_name
from ocf.schema.metric_sources import METRIC_SOURCES, PODLESS_METRICS, TARGET_FIELDS, source_field

__all__ = ["metrics_errors"]

_SOURCE_ORDER: Final = ("object", "external", "pods", "resource", "containerResource")

_CONTAINER_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_RESOURCES: Final = _CONTAINER_RESOURCES | {
    *(f"{side}.{name}" for side in ("requests", "limits") for name in _CONTAINER_RESOURCES),
    *("pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps"),
    *("persistentvolumeclaims", "storage", "requests.storage", "services.nodeports", "services.loadbalancers"),
}
_HUGE_PAGES: Final = "hugepages-"
_QUOTA_HUGE_PAGES: Final = ("hugepages-", "requests.hugepages-")
_NATIVE: Final = "kubernetes.io/"
_QUOTA_PREFIX: Final = "requests."


def metrics_errors(metrics: list[Manifest], path: str, min_replicas: int, rule: VersionRule) -> Iterator[FieldError]:
    """Validate the metrics.

    Args:
        min_replicas: `minReplicas`; scaling to zero needs a metric that is measured without pods.
        rule: The rule for the `apiVersion` of described objects.

    Yields:
        The errors of the API server, in its order; errors without a fixed order are sorted.
    """
    for position, metric in enumerate(metrics):
        yield from _metric_errors(metric, f"{path}[{position}]", rule)
    if min_replicas == 0 and not any(metric.get("type") in PODLESS_METRICS for metric in metrics):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden(path, detail)


def _metric_errors(metric: Manifest, path: str, rule: VersionRule) -> Iterator[FieldError]:
    kind = metric.get("type", "")
    if not kind:
        yield required(f"{path}.type", "must specify a metric source type")
    # Reported again below, for an unknown type has no source that could be expected (validateMetricSpec of 1.36).
    if kind not in METRIC_SOURCES:
        yield not_supported(f"{path}.type", kind, tuple(METRIC_SOURCES))
    present = [source for source in _SOURCE_ORDER if source in metric]
    for source in present[:1]:
        yield from _SOURCE_RULES[source](metric[source], f"{path}.{source}", rule)
    expected = source_field(kind)
    if not expected:
        yield not_supported(f"{path}.type", kind, tuple(METRIC_SOURCES))
    elif expected not in metric:
        yield required(f"{path}.{expected}", "must populate information for the given metric source")
    if len(present) != 1:
        for source in sorted(present):
            if source != expected:
                yield forbidden(f"{path}.{source}", "must populate the given metric source only")


def _object_errors(source: Manifest, path: str, rule: VersionRule) -> Iterator[FieldError]:
    yield from reference_errors(source.get("describedObject", {}), f"{path}.describedObject", rule)
    yield from _identifier_errors(source, path)
    target = source.get("target", {})
    yield from _target_errors(target, f"{path}.target")
    if "value" not in target and "averageValue" not in target:
        yield required(f"{path}.target.averageValue", "must set either a target value or averageValue")


def _external_errors(source: Manifest, path: str, _rule: VersionRule) -> Iterator[FieldError]:
    yield from _identifier_errors(source, path)
    target = source.get("target", {})
    yield from _target_errors(target, f"{path}.target")
    if "value" not in target and "averageValue" not in target:
        detail = "must set either a target value for metric or a per-pod target"
        yield required(f"{path}.target.averageValue", detail)
    if "value" in target and "averageValue" in target:
        detail = "may not set both a target value for metric and a per-pod target"
        yield forbidden(f"{path}.target.value", detail)


def _pods_errors(source: Manifest, path: str, _rule: VersionRule) -> Iterator[FieldError]:
    yield from _identifier_errors(source, path)
    target = source.get("target", {})
    yield from _target_errors(target, f"{path}.target")
    if "averageValue" not in target:
        yield required(f"{path}.target.averageValue", "must specify a positive target averageValue")


def _resource_errors(source: Manifest, path: str, _rule: VersionRule) -> Iterator[FieldError]:
    if not source.get("name"):
        yield required(f"{path}.name", "must specify a resource name")
    yield from _utilization_errors(source.get("target", {}), f"{path}.target")


def _container_errors(source: Manifest, path: str, _rule: VersionRule) -> Iterator[FieldError]:
    if source.get("name"):
        yield from _container_resource_errors(source["name"], f"{path}.name")
    else:
        yield required(f"{path}.name", "must specify a resource name")
    container = source.get("container", "")
    if container:
        yield from (invalid(f"{path}.container", container, problem) for problem in dns_label(container))
    else:
        yield required(f"{path}.container", "must specify a container")
    yield from _utilization_errors(source.get("target", {}), f"{path}.target")


_SOURCE_RULES: Final[dict[str, Callable[[Manifest, str, VersionRule], Iterator[FieldError]]]] = {
    "object": _object_errors,
    "external": _external_errors,
    "pods": _pods_errors,
    "resource": _resource_errors,
    "containerResource": _container_errors,
}


def _container_resource_errors(name: str, path: str) -> Iterator[FieldError]:
    problems = qualified_name(name)
    yield from (invalid(path, name, problem) for problem in problems)
    if "/" not in name:
        if not problems and name not in _RESOURCES and not name.startswith(_QUOTA_HUGE_PAGES):
            yield invalid(path, name, "must be a standard resource type or fully qualified", as_json=True)
        if name not in _CONTAINER_RESOURCES and not name.startswith(_HUGE_PAGES):
            yield invalid(path, name, "must be a standard resource for containers", as_json=True)
    # A quota counts an extended resource under this prefix, so the name must leave room for it (IsExtendedResourceName
    # in pkg/apis/core/helper).
    elif _NATIVE not in name and (name.startswith(_QUOTA_PREFIX) or qualified_name(f"{_QUOTA_PREFIX}{name}")):
        yield invalid(path, name, "doesn't follow extended resource name standard", as_json=True)


def _identifier_errors(source: Manifest, path: str) -> Iterator[FieldError]:
    name = source.get("metric", {}).get("name", "")
    if name:
        yield from (invalid(f"{path}.metric.name", name, problem) for problem in path_segment(name))
    else:
        yield required(f"{path}.metric.name", "must specify a metric name")


def _utilization_errors(target: Manifest, path: str) -> Iterator[FieldError]:
    yield from _target_errors(target, path)
    if "averageUtilization" not in target and "averageValue" not in target:
        yield required(f"{path}.averageUtilization", "must set either a target raw value or a target utilization")
    if "averageUtilization" in target and "averageValue" in target:
        yield forbidden(f"{path}.averageValue", "may not set both a target raw value and a target utilization")


def _target_errors(target: Manifest, path: str) -> Iterator[FieldError]:
    kind = target.get("type", "")
    if not kind:
        yield required(f"{path}.type", "must specify a metric target type")
    if kind not in TARGET_FIELDS:
        yield invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue", as_json=True)
    for field in ("value", "averageValue"):
        if field in target:
            yield from _positive_errors(target[field], f"{path}.{field}")
    utilization: Any = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        yield invalid(f"{path}.averageUtilization", utilization, "must be greater than 0")


def _positive_errors(text: str, path: str) -> Iterator[FieldError]:
    found = parse_quantity(text)
    if found.nano <= 0:
        yield invalid(path, str(found), "must be positive", as_json=True)
