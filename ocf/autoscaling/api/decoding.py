"""Decoder of HPAs, as strict as that of the API server.

The API server checks a manifest in two stages. It first decodes it: for a text in place of a number, or an unknown
field, it returns 400 and one line about Go types. Then it validates the object: if a rule is broken, it returns 422
with a list of fields. This module is the first stage. It rejects what the API server rejects, with messages of its own,
because half of the API server's messages do not name the field.

The result is what the structs of the API server hold: nulls are dropped, except that a null in a list or a map becomes
the empty value, and quantities are texts in the API server's notation.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final

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
from ocf.objects import Manifest

__all__ = ["decode"]


def decode(
    hpa: object, *, tolerance_known: bool = True, generation_known: bool = False, strict: bool = True
) -> Manifest:
    """Decode a manifest of autoscaling/v2.

    Args:
        hpa: A manifest, or a model of the client; it is not changed. `apiVersion` and `kind` may be missing.
        tolerance_known: Whether the API server has the field `tolerance` of the scaling rules (1.33 and newer).
        generation_known: Whether the conditions have the field `observedGeneration` (1.37 and newer).
        strict: Whether unknown fields are rejected, as with `kubectl`; otherwise they are dropped, as the API server
            does without strict field validation.

    Returns:
        A new manifest without nulls.

    Raises:
        ManifestError: With every unknown field (and the nearest known one) and every value of a wrong type.

    Example:
        >>> decode({"spec": {"maxReplicas": 3, "behavior": None}})
        {'spec': {'maxReplicas': 3}}
        >>> decode({"spec": {"maxReplica": 3}})
        Traceback (most recent call last):
        ocf.errors.ManifestError: HorizontalPodAutoscaler: spec.maxReplica: unknown field, did you mean "maxReplicas"?
    """
    reader = _hpa(tolerance_known=tolerance_known, generation_known=generation_known)
    return read_object(hpa, reader, "autoscaling/v2", "HorizontalPodAutoscaler", strict=strict)


_INT32: Final = integer("int32")
_INT64: Final = integer("int64")
_SELECTOR: Final = struct(
    matchLabels=texts,
    matchExpressions=items(struct(key=text, operator=text, values=items(text, str)), dict),
)
_METRIC: Final = struct(name=text, selector=_SELECTOR)
_CURRENT: Final[Mapping[str, Reader]] = {"value": quantity, "averageValue": quantity, "averageUtilization": _INT32}
_TARGET: Final[Mapping[str, Reader]] = {"type": text, **_CURRENT}


# What to write in place of the fields of autoscaling/v2beta1, with which files stay whose version alone was changed.
_VALUE: Final = "write target: {type: Value, value: {}}"
_AVERAGE: Final = "write target: {type: AverageValue, averageValue: {}}"
_UTILIZATION: Final = "write target: {type: Utilization, averageUtilization: {}}"
_NAME: Final = "write metric: {name: {}}"
_SELECTED: Final = "write it in metric, as metric.selector"
_OF_RESOURCE: Final = {"targetAverageUtilization": _UTILIZATION, "targetAverageValue": _AVERAGE}
_OF_OTHERS: Final = {"targetValue": _VALUE, "targetAverageValue": _AVERAGE, "metricName": _NAME, "selector": _SELECTED}
_OF_EXTERNAL: Final = {**_OF_OTHERS, "metricSelector": _SELECTED}
_OF_OBJECT: Final = {**_OF_OTHERS, "averageValue": _AVERAGE}
_OF_SPEC: Final = {
    "targetCPUUtilizationPercentage": "write metrics: [{type: Resource, resource: {name: cpu, target: "
    "{type: Utilization, averageUtilization: {}}}}]"
}
_DESCRIBED: Final[dict[str, str]] = dict.fromkeys(("kind", "name", "apiVersion"), "write it in describedObject")


def _metric(values_field: str, values: Mapping[str, Reader]) -> Reader:
    """Return the reader of a metric; `target` of a spec and `current` of a status are decoded alike."""
    value = {values_field: struct(**values)}
    return struct(
        type=text,
        object=struct(
            _OF_OBJECT, describedObject=REFERENCE, metric=_METRIC, **{values_field: struct(_DESCRIBED, **values)}
        ),
        pods=struct(_OF_OTHERS, metric=_METRIC, **value),
        resource=struct(_OF_RESOURCE, name=text, **value),
        containerResource=struct(_OF_RESOURCE, name=text, container=text, **value),
        external=struct(_OF_EXTERNAL, metric=_METRIC, **value),
    )


_POLICY: Final = struct(type=text, value=_INT32, periodSeconds=_INT32)


@cache
def _hpa(*, tolerance_known: bool, generation_known: bool) -> Reader:
    added_to_rules = {"tolerance": quantity} if tolerance_known else {}
    rules = struct(
        stabilizationWindowSeconds=_INT32, selectPolicy=text, policies=items(_POLICY, dict), **added_to_rules
    )
    spec = struct(
        _OF_SPEC,
        scaleTargetRef=REFERENCE,
        minReplicas=_INT32,
        maxReplicas=_INT32,
        metrics=items(_metric("target", _TARGET), dict),
        behavior=struct(scaleUp=rules, scaleDown=rules),
    )
    added = {"observedGeneration": _INT64} if generation_known else {}
    condition = struct(type=text, status=text, lastTransitionTime=instant, reason=text, message=text, **added)
    status = struct(
        observedGeneration=_INT64,
        lastScaleTime=instant,
        currentReplicas=_INT32,
        desiredReplicas=_INT32,
        currentMetrics=items(_metric("current", _CURRENT), dict),
        conditions=items(condition, dict),
    )
    return struct(apiVersion=text, kind=text, metadata=METADATA, spec=spec, status=status)
