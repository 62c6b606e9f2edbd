"""The annotations in which autoscaling/v1 keeps the metrics and the behavior of autoscaling/v2.

Their metrics have the form of autoscaling/v2beta1.

The API server ignores an annotation that it cannot decode. Otherwise every source of a metric is converted, whether it
belongs to the type of the metric or not, and defaults of autoscaling/v2 are not set.

Source: `pkg/apis/autoscaling/v1/conversion.go` of Kubernetes, and recorded answers of a real API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ocf.autoscaling.api.go_json import Reader, amount, int32, items, loads, pointer, string, strings, struct
from ocf.objects import Manifest

__all__ = ["convert_metric", "read_behavior", "read_metrics", "read_statuses"]

_PERCENT: Final = pointer(int32)
_AMOUNT: Final = pointer(amount)
_SELECTOR: Final = pointer(
    struct(
        matchLabels=strings,
        matchExpressions=items(struct(key=string, operator=string, values=items(string, str)), dict),
    )
)
_OBJECT: Final = struct(kind=string, name=string, apiVersion=string)
_POLICY: Final = struct(type=string, value=int32, periodSeconds=int32)


def _metric(**sources: Reader) -> Reader:
    return items(struct(type=string, **{name: pointer(source) for name, source in sources.items()}), dict)


_METRICS: Final = _metric(
    object=struct(target=_OBJECT, metricName=string, targetValue=amount, selector=_SELECTOR, averageValue=_AMOUNT),
    pods=struct(metricName=string, targetAverageValue=amount, selector=_SELECTOR),
    resource=struct(name=string, targetAverageUtilization=_PERCENT, targetAverageValue=_AMOUNT),
    containerResource=struct(
        name=string, targetAverageUtilization=_PERCENT, targetAverageValue=_AMOUNT, container=string
    ),
    external=struct(metricName=string, metricSelector=_SELECTOR, targetValue=_AMOUNT, targetAverageValue=_AMOUNT),
)
_STATUSES: Final = _metric(
    object=struct(target=_OBJECT, metricName=string, currentValue=amount, selector=_SELECTOR, averageValue=_AMOUNT),
    pods=struct(metricName=string, currentAverageValue=amount, selector=_SELECTOR),
    resource=struct(name=string, currentAverageUtilization=_PERCENT, currentAverageValue=amount),
    containerResource=struct(
        name=string, currentAverageUtilization=_PERCENT, currentAverageValue=amount, container=string
    ),
    external=struct(metricName=string, metricSelector=_SELECTOR, currentValue=amount, currentAverageValue=_AMOUNT),
)


def _behavior(**added_to_rules: Reader) -> Reader:
    rules = pointer(
        struct(
            stabilizationWindowSeconds=_PERCENT,
            selectPolicy=pointer(string),
            policies=items(_POLICY, dict),
            **added_to_rules,
        )
    )
    return struct(scaleUp=rules, scaleDown=rules)


_BEHAVIOR: Final = _behavior(tolerance=_AMOUNT)
_OLD_BEHAVIOR: Final = _behavior()


def read_metrics(text: str | None) -> list[Manifest]:
    """Return the metrics of autoscaling/v2; none if the annotation is missing or invalid.

    Example:
        >>> read_metrics('[{"type": "Resource", "RESOURCE": {"name": "cpu", "targetAverageUtilization": 70}}]')
        [{'type': 'Resource', 'resource': {'name': 'cpu', 'target': {'type': 'Utilization', 'averageUtilization': 70}}}]
    """
    return [convert_metric(metric, "target") for metric in _read(text, _METRICS) or ()]


def read_statuses(text: str | None) -> list[Manifest] | None:
    """Return the current metrics of autoscaling/v2; None if the annotation is missing or invalid."""
    found = _read(text, _STATUSES)
    return None if found is None else [convert_metric(metric, "current") for metric in found]


def read_behavior(text: str | None, *, tolerance_known: bool = True) -> Manifest:
    """Return the behavior of autoscaling/v2; empty if the annotation is missing, invalid or empty.

    Args:
        tolerance_known: Whether the API server has the field `tolerance`.

    Example:
        >>> read_behavior('{"ScaleUp": {"SelectPolicy": "Min"}}')
        {'scaleUp': {'selectPolicy': 'Min'}}
    """
    return dict(_read(text, _BEHAVIOR if tolerance_known else _OLD_BEHAVIOR) or {})


def _read(text: str | None, reader: Reader) -> Any:
    if text is None:
        return None
    try:
        return loads(text, reader)
    except ValueError:
        return None


def _present(**values: Any) -> Manifest:
    return {name: value for name, value in values.items() if value not in (None, "")}


def convert_metric(metric: Manifest, field: str) -> Manifest:
    """Return a metric of autoscaling/v2beta1 as one of autoscaling/v2.

    Args:
        field: `target` for a metric of a spec, `current` for one of a status.
    """
    values = _target if field == "target" else _current
    found = _present(type=metric.get("type"))
    for name, source in metric.items():
        if name == "type":
            continue
        identity: Manifest = _present(name=source.get("name"), container=source.get("container"))
        if name not in {"resource", "containerResource"}:
            selector = source.get("metricSelector" if name == "external" else "selector")
            identity = {"metric": _present(name=source.get("metricName"), selector=selector)}
        if name == "object":
            identity["describedObject"] = _present(**source.get("target", {}))
        found[name] = {**identity, field: values(name, source)}
    return found


def _target(name: str, source: Mapping[str, Any]) -> Manifest:
    value, average = source.get("targetValue"), source.get("targetAverageValue")
    percent = source.get("targetAverageUtilization")
    if name == "pods":
        return _present(type="AverageValue", averageValue=average or "0")
    if name == "external":
        return _present(type="AverageValue" if value is None else "Value", value=value, averageValue=average)
    if name == "object":
        average = source.get("averageValue")
        if average is None:
            return _present(type="Value", value=value or "0")
        # The zero is only there because the field is required in autoscaling/v1.
        return _present(type="AverageValue", value=None if value in (0, "0") else value, averageValue=average)
    kind = "AverageValue" if percent is None else "Utilization"
    return _present(type=kind, averageValue=average, averageUtilization=percent)


def _current(name: str, source: Mapping[str, Any]) -> Manifest:
    if name in {"object", "external"}:
        average = source.get("averageValue" if name == "object" else "currentAverageValue")
        return _present(value=source.get("currentValue", "0"), averageValue=average)
    average = source.get("currentAverageValue", "0")
    return _present(averageValue=average, averageUtilization=source.get("currentAverageUtilization"))
