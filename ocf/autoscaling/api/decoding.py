"""Reading an HPA as the API server's decoder reads it, before any rule is looked at.

A manifest can be wrong in two ways. It may not be an HPA at all: a text where a number belongs, a field nobody knows.
The server answers that with 400 and one line about Go types. Or it is one, and breaks a rule: 422, with a list of
fields. This is the first stage. Its texts are our own, because the server's name no field in half of the cases; its
verdict is the server's.

What comes out is what the server's structs hold: nulls are gone, except that in a list or a map a null is the empty
value, and quantities are texts in the server's own notation.
"""

from typing import Final

from ocf.autoscaling.api.decoders import (
    METADATA,
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


def decode(hpa: object, *, tolerance_known: bool = True, strict: bool = True) -> Manifest:
    """Read a manifest as autoscaling/v2.

    Args:
        hpa: A manifest, or a model of the client; left as it is. `apiVersion` and `kind` may be missing.
        tolerance_known: Whether the server has the field `tolerance` of the scaling rules (1.33 and newer).
        strict: Whether unknown fields are mistakes, as for `kubectl`; otherwise they are left out, as the server does
            where it is not asked for strictness.

    Returns:
        A new manifest without nulls.

    Raises:
        ManifestError: With every field that is unknown (and the nearest known one), or holds a value of a wrong type.

    Example:
        >>> decode({"spec": {"maxReplicas": 3, "behavior": None}})
        {'spec': {'maxReplicas': 3}}
        >>> decode({"spec": {"maxReplica": 3}})
        Traceback (most recent call last):
        ocf.errors.ManifestError: HorizontalPodAutoscaler: spec.maxReplica: unknown field, did you mean "maxReplicas"?
    """
    reader = _HPA if tolerance_known else _OLD_HPA
    return read_object(hpa, reader, "autoscaling/v2", "HorizontalPodAutoscaler", strict=strict)


_INT32: Final = integer("int32")
_INT64: Final = integer("int64")
_SELECTOR: Final = struct(
    matchLabels=texts,
    matchExpressions=items(struct(key=text, operator=text, values=items(text, str)), dict),
)
_METRIC: Final = struct(name=text, selector=_SELECTOR)
_REFERENCE: Final = struct(kind=text, name=text, apiVersion=text)
_TARGET: Final = struct(type=text, value=quantity, averageValue=quantity, averageUtilization=_INT32)
_CURRENT: Final = struct(value=quantity, averageValue=quantity, averageUtilization=_INT32)


def _metric(amount: str, reader: Reader) -> Reader:
    """Make the reader of a metric; `target` of a spec and `current` of a status are read alike."""
    held = {amount: reader}
    return struct(
        type=text,
        object=struct(describedObject=_REFERENCE, metric=_METRIC, **held),
        pods=struct(metric=_METRIC, **held),
        resource=struct(name=text, **held),
        containerResource=struct(name=text, container=text, **held),
        external=struct(metric=_METRIC, **held),
    )


_CONDITION: Final = struct(type=text, status=text, lastTransitionTime=instant, reason=text, message=text)
_STATUS: Final = struct(
    observedGeneration=_INT64,
    lastScaleTime=instant,
    currentReplicas=_INT32,
    desiredReplicas=_INT32,
    currentMetrics=items(_metric("current", _CURRENT), dict),
    conditions=items(_CONDITION, dict),
)
_POLICY: Final = struct(type=text, value=_INT32, periodSeconds=_INT32)


def _hpa(**added_to_rules: Reader) -> Reader:
    rules = struct(
        stabilizationWindowSeconds=_INT32, selectPolicy=text, policies=items(_POLICY, dict), **added_to_rules
    )
    spec = struct(
        scaleTargetRef=_REFERENCE,
        minReplicas=_INT32,
        maxReplicas=_INT32,
        metrics=items(_metric("target", _TARGET), dict),
        behavior=struct(scaleUp=rules, scaleDown=rules),
    )
    return struct(apiVersion=text, kind=text, metadata=METADATA, spec=spec, status=_STATUS)


_HPA: Final = _hpa(tolerance=quantity)
_OLD_HPA: Final = _hpa()
