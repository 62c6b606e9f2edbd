"""Conversion of HPAs between `autoscaling/v1` and `autoscaling/v2`.

`autoscaling/v1` has one metric, the cpu utilization. All other fields of `autoscaling/v2` are kept in annotations as
JSON, so that an object can be read and written in the older version without loss. The JSON is formatted exactly as by
the API server, byte for byte: another format would look like a change when objects are compared.

Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v1/, and the
responses of a real API server where the reference does not describe them.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from ocf.autoscaling.api.defaulting import default
from ocf.autoscaling.api.v1_annotations import read_behavior, read_metrics, read_statuses
from ocf.objects import Manifest, copy_json
from ocf.schema.metric_sources import source_field

__all__ = ["to_v1", "to_v2"]

_Json = dict[str, Any]

_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
_METRICS: Final = f"{_PREFIX}metrics"
_BEHAVIOR: Final = f"{_PREFIX}behavior"
_CURRENT: Final = f"{_PREFIX}current-metrics"
_CONDITIONS: Final = f"{_PREFIX}conditions"
_ANNOTATIONS: Final = frozenset(
    {
        _METRICS,
        _BEHAVIOR,
        _CURRENT,
        _CONDITIONS,
        f"{_PREFIX}scale-down-tolerance",
        f"{_PREFIX}scale-up-tolerance",
    }
)
# DefaultCPUUtilization.
_DEFAULT_PERCENT: Final = 80
# encoding/json escapes these so that its output can stand in HTML; Python's json does not.
_ESCAPES: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
_CONDITION_FIELDS: Final = ("type", "status", "lastTransitionTime", "reason", "message", "observedGeneration")


def to_v1(hpa: Manifest) -> Manifest:
    """Convert an HPA of `autoscaling/v2` to `autoscaling/v1`.

    Args:
        hpa: The object, defaulted; it is not changed.

    Returns:
        The object in `autoscaling/v1`. The first cpu utilization is its target; other metrics, the behavior, and
        status fields that `autoscaling/v1` does not have are in annotations.

    Example:
        >>> from ocf.autoscaling import default
        >>> to_v1(default({"metadata": {"name": "web"}, "spec": {"maxReplicas": 3}}))["spec"]
        {'maxReplicas': 3, 'minReplicas': 1, 'targetCPUUtilizationPercentage': 80}
    """
    out = copy_json(hpa)
    out["apiVersion"] = "autoscaling/v1"
    annotations: dict[str, str] = {}
    spec, status = dict(out.get("spec") or {}), dict(out.get("status") or {})
    metrics = spec.pop("metrics", None) or []
    others = [_metric_to_v1(metric, _SPEC_FIELDS) for metric in metrics if not _is_cpu_utilization(metric)]
    target = next((metric for metric in metrics if _is_cpu_utilization(metric)), None)
    if target is not None:
        spec["targetCPUUtilizationPercentage"] = target["resource"]["target"]["averageUtilization"]
    if others:
        annotations[_METRICS] = _text(others)
    current = status.pop("currentMetrics", None) or []
    if current:
        annotations[_CURRENT] = _text([_metric_to_v1(metric, _STATUS_FIELDS) for metric in current])
        # Of a status the last cpu utilization is shown, of a spec the first is the target; 0 is a value.
        usages = [usage for usage in map(_cpu_usage, current) if usage is not None]
        if usages:
            status["currentCPUUtilizationPercentage"] = usages[-1]
    behavior = spec.pop("behavior", None)
    if behavior is not None:
        annotations[_BEHAVIOR] = _text(_behavior_to_text(behavior))
    conditions = status.pop("conditions", None) or []
    if conditions:
        annotations[_CONDITIONS] = _text([_ordered(condition, _CONDITION_FIELDS) for condition in conditions])
    return _assemble(out, spec, status, annotations)


def to_v2(hpa: Manifest, *, defaults: bool = True, tolerance_known: bool = True) -> Manifest:
    """Convert an HPA of `autoscaling/v1` to `autoscaling/v2`.

    Args:
        hpa: The object; it is not changed.
        defaults: Whether to set the defaults of `autoscaling/v2`, as in an object that is read from the API server. A
            new object is validated without them: a `behavior` without policies is rejected.
        tolerance_known: Whether the API server has the field `tolerance` of the scaling rules (1.33 and newer).

    Returns:
        The object in `autoscaling/v2`. Invalid annotations are dropped, as the API server does.

    Example:
        >>> hpa = {"metadata": {"name": "web"}, "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 70}}
        >>> to_v2(hpa)["spec"]["metrics"][0]["resource"]["target"]
        {'type': 'Utilization', 'averageUtilization': 70}
    """
    out = copy_json(hpa)
    out["apiVersion"] = "autoscaling/v2"
    spec, status = dict(out.get("spec") or {}), dict(out.get("status") or {})
    annotations = (out.get("metadata") or {}).get("annotations") or {}
    metrics = read_metrics(annotations.get(_METRICS))
    target = spec.pop("targetCPUUtilizationPercentage", None)
    if target is not None:
        metrics.append(_cpu_utilization(target))
    spec["metrics"] = metrics or [_cpu_utilization(_DEFAULT_PERCENT)]
    behavior = read_behavior(annotations.get(_BEHAVIOR), tolerance_known=tolerance_known)
    if behavior:
        spec["behavior"] = behavior
    if spec.get("minReplicas") is None:
        spec["minReplicas"] = 1
    usage = status.pop("currentCPUUtilizationPercentage", None)
    current = read_statuses(annotations.get(_CURRENT))
    if current is not None:
        status["currentMetrics"] = current
    elif usage is not None:
        status["currentMetrics"] = [
            {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": usage}}}
        ]
    conditions = _read(annotations, _CONDITIONS, list)
    if conditions is not None:
        status["conditions"] = conditions
    converted = _assemble(out, spec, status, {})
    return default(converted) if defaults else converted


def _assemble(out: Manifest, spec: _Json, status: _Json, annotations: Mapping[str, str]) -> Manifest:
    metadata = dict(out.get("metadata") or {})
    kept = {
        name: value for name, value in (metadata.pop("annotations", None) or {}).items() if name not in _ANNOTATIONS
    }
    if kept or annotations:
        metadata["annotations"] = {**kept, **annotations}
    out["metadata"], out["spec"] = metadata, spec
    if status or "status" in out:
        out["status"] = status
    return out


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).translate(_ESCAPES)


def _read(annotations: Mapping[str, str], name: str, shape: type) -> Any:
    """Parse an annotation; None if it is missing or does not have the expected shape."""
    try:
        value = json.loads(annotations[name])
    except (KeyError, TypeError, ValueError):
        return None
    if not isinstance(value, shape):
        return None
    return value if not isinstance(value, list) or all(isinstance(item, dict) for item in value) else None


def _ordered(value: Mapping[str, Any], names: tuple[str, ...]) -> _Json:
    return {name: value[name] for name in names if value.get(name) not in (None, "")}


def _is_cpu_utilization(metric: Mapping[str, Any]) -> bool:
    resource = metric.get("resource") or {}
    target = resource.get("target") or {}
    return (
        metric.get("type") == "Resource"
        and resource.get("name") == "cpu"
        and target.get("averageUtilization") is not None
    )


def _cpu_utilization(percent: int) -> _Json:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _cpu_usage(metric: Mapping[str, Any]) -> int | None:
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    usage: int | None = (resource.get("current") or {}).get("averageUtilization")
    return usage


# The fields of a metric in v1: the name of each field, and the path of its value in v2. The third entry is the value of
# a required field that v2 does not set.
_Fields = tuple[tuple[str, str] | tuple[str, str, str], ...]

_SPEC_FIELDS: Final[Mapping[str, _Fields]] = {
    "Object": (
        ("target", "describedObject"),
        ("metricName", "metric.name"),
        ("targetValue", "target.value", "0"),
        ("selector", "metric.selector"),
        ("averageValue", "target.averageValue"),
    ),
    "Pods": (
        ("metricName", "metric.name"),
        ("targetAverageValue", "target.averageValue", "0"),
        ("selector", "metric.selector"),
    ),
    "Resource": (
        ("name", "name"),
        ("targetAverageUtilization", "target.averageUtilization"),
        ("targetAverageValue", "target.averageValue"),
    ),
    "ContainerResource": (
        ("name", "name"),
        ("targetAverageUtilization", "target.averageUtilization"),
        ("targetAverageValue", "target.averageValue"),
        ("container", "container"),
    ),
    "External": (
        ("metricName", "metric.name"),
        ("metricSelector", "metric.selector"),
        ("targetValue", "target.value"),
        ("targetAverageValue", "target.averageValue"),
    ),
}
_STATUS_FIELDS: Final[Mapping[str, _Fields]] = {
    "Object": (
        ("target", "describedObject"),
        ("metricName", "metric.name"),
        ("currentValue", "current.value", "0"),
        ("selector", "metric.selector"),
        ("averageValue", "current.averageValue"),
    ),
    "Pods": (
        ("metricName", "metric.name"),
        ("currentAverageValue", "current.averageValue", "0"),
        ("selector", "metric.selector"),
    ),
    "Resource": (
        ("name", "name"),
        ("currentAverageUtilization", "current.averageUtilization"),
        ("currentAverageValue", "current.averageValue", "0"),
    ),
    "ContainerResource": (
        ("name", "name"),
        ("currentAverageUtilization", "current.averageUtilization"),
        ("currentAverageValue", "current.averageValue", "0"),
        ("container", "container"),
    ),
    "External": (
        ("metricName", "metric.name"),
        ("metricSelector", "metric.selector"),
        ("currentValue", "current.value", "0"),
        ("currentAverageValue", "current.averageValue"),
    ),
}


def _metric_to_v1(metric: Mapping[str, Any], table: Mapping[str, _Fields]) -> _Json:
    kind = str(metric.get("type"))
    field = source_field(kind)
    if not field:
        return {"type": kind}
    source = metric.get(field) or {}
    out: _Json = {}
    for name, place, *zero in table[kind]:
        value = _at(source, place)
        if name == "target" and isinstance(value, Mapping):
            value = _ordered(value, ("kind", "name", "apiVersion"))
        if value is None and zero:
            value = zero[0]
        if value is not None:
            out[name] = value
    return {"type": kind, field: out}


def _at(value: Any, place: str) -> Any:
    for name in place.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


# The behavior is written with the names of the fields in Go, which begin with a capital.
_RULE_NAMES: Final = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
_POLICY_NAMES: Final = ("type", "value", "periodSeconds")


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]


def _behavior_to_text(behavior: Mapping[str, Any]) -> _Json:
    return {_capital(name): _rules_to_text(behavior.get(name)) for name in ("scaleUp", "scaleDown")}


def _rules_to_text(rules: Mapping[str, Any] | None) -> _Json | None:
    if rules is None:
        return None
    out: _Json = {_capital(name): rules.get(name) for name in _RULE_NAMES}
    # Nothing is left out: these types have no JSON tags in Go, so that unset fields are null.
    if out["Policies"] is not None:
        out["Policies"] = [
            {_capital(name): policy.get(name) for name in _POLICY_NAMES} for policy in rules.get("policies") or ()
        ]
    return out
