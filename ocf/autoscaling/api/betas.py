"""HPAs of autoscaling/v2beta1 and v2beta2, which no supported release serves, as the last releases read them.

autoscaling/v2beta2 has the fields of autoscaling/v2. The metrics of autoscaling/v2beta1 are those that the annotations
of autoscaling/v1 have, and its behavior is in such an annotation.

Two faults, by which Kubernetes 1.24 rejected valid objects of autoscaling/v2beta1, are not repeated: it lost the
container of a metric, and kept the zero of a required `targetValue` beside an `averageValue`.

Source: `pkg/apis/autoscaling/v2beta1/conversion.go` and `v2beta2/conversion.go` of Kubernetes 1.24.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ocf.autoscaling.api.decoders import (
    METADATA,
    REFERENCE,
    Reader,
    instant,
    integer,
    items,
    quantity,
    read_object,
    struct,
    text,
    texts,
)
from ocf.autoscaling.api.kinds import HPA_KIND
from ocf.autoscaling.api.v1_annotations import convert_metric, read_behavior
from ocf.objects import Manifest

__all__ = ["METRIC_LISTS", "REMOVED", "as_v2", "not_served", "read_v2beta1"]

REMOVED: Final[Mapping[str, str]] = {"autoscaling/v2beta1": "1.25", "autoscaling/v2beta2": "1.26"}
"""The first releases without a version."""

_OF_RESOURCE: Final = frozenset({"targetAverageUtilization", "targetAverageValue"})
_OF_OTHERS: Final = frozenset({"metricName", "targetAverageValue", "selector"})
_OLD: Final[Mapping[str, frozenset[str]]] = {
    "object": frozenset({"metricName", "targetValue", "averageValue", "selector"}),
    "pods": _OF_OTHERS,
    "resource": _OF_RESOURCE,
    "containerResource": _OF_RESOURCE,
    "external": _OF_OTHERS - {"selector"} | {"metricSelector", "targetValue"},
}
"""The fields of autoscaling/v2beta1 that autoscaling/v2 has in another place, by the source of a metric of a spec."""
METRIC_LISTS: Final = (("spec", "metrics", "target"), ("status", "currentMetrics", "current"))
"""The lists of metrics, and the field of a metric that has its values."""
_BEHAVIOR: Final = "autoscaling.alpha.kubernetes.io/behavior"
_INT32: Final = integer("int32")
_SELECTOR: Final = struct(
    matchLabels=texts,
    matchExpressions=items(struct(key=text, operator=text, values=items(text, str)), dict),
)
_AS_V2: Final = "a field of autoscaling/v2: write apiVersion: autoscaling/v2"


def _metric(value: str, average: str, utilization: str) -> Reader:
    """Return the reader of a metric of a spec or of a status, whose fields have other names."""
    newer: dict[str, str] = dict.fromkeys(("target", "current", "metric", "describedObject"), _AS_V2)
    resource = {"name": text, utilization: _INT32, average: quantity}
    named = {"metricName": text, average: quantity}
    source = {
        "target": REFERENCE,
        "metricName": text,
        value: quantity,
        "selector": _SELECTOR,
        "averageValue": quantity,
    }
    return struct(
        type=text,
        object=struct(newer, **source),
        pods=struct(newer, **named, selector=_SELECTOR),
        resource=struct(newer, **resource),
        containerResource=struct(newer, **resource, container=text),
        external=struct(newer, **named, **{value: quantity}, metricSelector=_SELECTOR),
    )


_CONDITION: Final = struct(type=text, status=text, lastTransitionTime=instant, reason=text, message=text)
_V2BETA1: Final = struct(
    apiVersion=text,
    kind=text,
    metadata=METADATA,
    spec=struct(
        {"behavior": _AS_V2},
        scaleTargetRef=REFERENCE,
        minReplicas=_INT32,
        maxReplicas=_INT32,
        metrics=items(_metric("targetValue", "targetAverageValue", "targetAverageUtilization"), dict),
    ),
    status=struct(
        observedGeneration=integer("int64"),
        lastScaleTime=instant,
        currentReplicas=_INT32,
        desiredReplicas=_INT32,
        currentMetrics=items(_metric("currentValue", "currentAverageValue", "currentAverageUtilization"), dict),
        conditions=items(_CONDITION, dict),
    ),
)


def read_v2beta1(manifest: Manifest) -> Manifest:
    """Decode an HPA of autoscaling/v2beta1; return it as autoscaling/v2, without its defaults.

    Example:
        >>> metric = {"type": "Pods", "pods": {"metricName": "rps", "targetAverageValue": "10"}}
        >>> read_v2beta1({"spec": {"metrics": [metric]}})["spec"]["metrics"][0]["pods"]
        {'metric': {'name': 'rps'}, 'target': {'type': 'AverageValue', 'averageValue': '10'}}
    """
    found = read_object(manifest, _V2BETA1, "autoscaling/v2beta1", HPA_KIND)
    spec: dict[str, Any] = dict(found.get("spec") or {})
    if "metrics" in spec:
        spec["metrics"] = [convert_metric(each, "target") for each in spec["metrics"]]
    behavior = _behavior_of(found)
    if behavior:
        spec["behavior"] = behavior
    converted = {**found, "apiVersion": "autoscaling/v2", "spec": spec}
    if "currentMetrics" in (found.get("status") or {}):
        current = [convert_metric(each, "current") for each in found["status"]["currentMetrics"]]
        converted["status"] = {**found["status"], "currentMetrics": current}
    return converted


def _behavior_of(manifest: Manifest) -> Manifest:
    annotations = (manifest.get("metadata") or {}).get("annotations") or {}
    return read_behavior(annotations.get(_BEHAVIOR), tolerance_known=False)


def as_v2(manifest: Manifest) -> Manifest:
    """Return an HPA of a beta as its user would write it in autoscaling/v2.

    Args:
        manifest: An HPA of any version. One of autoscaling/v2 with metrics of autoscaling/v2beta1 is converted, too.

    Returns:
        A new manifest, in which what needs no change is as it was; the manifest itself if nothing does.

    Example:
        >>> metric = {"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 70}}
        >>> written = as_v2({"apiVersion": "autoscaling/v2beta1", "spec": {"metrics": [metric]}})
        >>> written["spec"]["metrics"][0]["resource"]
        {'name': 'cpu', 'target': {'type': 'Utilization', 'averageUtilization': 70}}
    """
    version = manifest.get("apiVersion")
    if version not in {*REMOVED, "autoscaling/v2"}:
        return manifest
    found = {**manifest, "apiVersion": "autoscaling/v2"}
    for part, name, field in METRIC_LISTS:
        content = manifest.get(part)
        metrics = content.get(name) if isinstance(content, dict) else None
        if isinstance(content, dict) and isinstance(metrics, list):
            found[part] = {**content, name: [_metric_as_v2(each, field) for each in metrics]}
    behavior = _behavior_of(manifest) if version == "autoscaling/v2beta1" else {}
    if behavior and isinstance(found.get("spec"), dict):
        found["spec"] = {**found["spec"], "behavior": behavior}
    return manifest if found == manifest else found


def _metric_as_v2(metric: Any, field: str) -> Any:
    """Return a metric whose fields of autoscaling/v2beta1 are those of autoscaling/v2."""
    if not isinstance(metric, dict):
        return metric
    return {name: _source_as_v2(name, part, field) if name in _OLD else part for name, part in metric.items()}


def _source_as_v2(name: str, source: Any, field: str) -> Any:
    if not isinstance(source, dict):
        return source
    reference = source.get("target")
    described = name == "object" and isinstance(reference, dict) and "kind" in reference
    old = {each.replace("target", field, 1) for each in _OLD[name]} | ({"target"} if described else set())
    moved = {each: part for each, part in source.items() if each in old}
    if not moved:
        return source
    kept = {each: part for each, part in source.items() if each not in moved}
    found: Manifest = convert_metric({name: moved}, field)[name]
    if isinstance(kept.get("metric"), dict):
        kept["metric"] = {**found["metric"], **kept["metric"]}
    return {**kept, **{each: part for each, part in found.items() if each not in kept}}


def not_served(version: object) -> str:
    """Return why no supported release serves a version of HPAs, and what to do; empty if it does.

    Example:
        >>> not_served("autoscaling/v2beta2")
        'not served by Kubernetes 1.26 and newer: write autoscaling/v2, or let `ocf validate --fix` do it'
        >>> not_served("autoscaling/v1")
        ''
    """
    removed = REMOVED.get(version) if isinstance(version, str) else None
    if removed is None:
        return ""
    what = "autoscaling/v2, whose metrics have other fields" if version == "autoscaling/v2beta1" else "autoscaling/v2"
    return f"not served by Kubernetes {removed} and newer: write {what}, or let `ocf validate --fix` do it"
