"""Decoder of HPAs of any version."""

from __future__ import annotations

from typing import Final

from ocf.autoscaling.api.decoders import METADATA, instant, integer, read_object, struct, text
from ocf.autoscaling.api.decoding import decode
from ocf.errors import FieldProblem, ManifestError
from ocf.objects import Manifest, ObjectKey
from ocf.schema.kubernetes import FeatureGates

__all__ = ["read_hpa"]

_KIND: Final = "HorizontalPodAutoscaler"
_CURRENT: Final = FeatureGates()
_INT32: Final = integer("int32")
_V1: Final = struct(
    apiVersion=text,
    kind=text,
    metadata=METADATA,
    spec=struct(
        scaleTargetRef=struct(kind=text, name=text, apiVersion=text),
        minReplicas=_INT32,
        maxReplicas=_INT32,
        targetCPUUtilizationPercentage=_INT32,
    ),
    status=struct(
        observedGeneration=integer("int64"),
        lastScaleTime=instant,
        currentReplicas=_INT32,
        desiredReplicas=_INT32,
        currentCPUUtilizationPercentage=_INT32,
    ),
)


def read_hpa(manifest: Manifest, *, gates: FeatureGates = _CURRENT) -> Manifest:
    """Decode an HPA of autoscaling/v2 or autoscaling/v1, as strictly as `kubectl`.

    Args:
        manifest: The manifest; it is not changed.

    Returns:
        The HPA as autoscaling/v2, without nulls and without defaults. One of autoscaling/v1 has the defaults of
        that version: `minReplicas` and the metric of autoscaling/v1.

    Example:
        >>> spec = {"maxReplicas": 3, "targetCPUUtilizationPercentage": 70}
        >>> old = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "spec": spec}
        >>> read_hpa(old)["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"]
        70
    """
    version = manifest.get("apiVersion")
    if version == "autoscaling/v2":
        return decode(manifest, tolerance_known=gates.tolerance_known, generation_known=gates.observed_generation)
    if version == "autoscaling/v1":
        from ocf.autoscaling.api.v1_conversion import to_v2

        known = gates.tolerance_known
        converted = to_v2(read_object(manifest, _V1, version, _KIND), defaults=False, tolerance_known=known)
        # Once more, because annotations are JSON of the user that nothing has checked yet.
        return decode(converted, tolerance_known=known)
    gone = f'"{version}" is not served by a supported release of Kubernetes: write autoscaling/v2'
    raise ManifestError(f"{_KIND} {_name(manifest)}".strip(), [FieldProblem("apiVersion", gone)])


def _name(manifest: Manifest) -> str:
    try:
        key = ObjectKey.of(manifest)
    except ManifestError:
        return ""
    return f"{key.namespace}/{key.name}" if key.namespace else key.name
