"""Decoder of HPAs of any version."""

from __future__ import annotations

from typing import Final

from ocf.autoscaling.api.decoders import METADATA, REFERENCE, instant, integer, read_object, struct, text
from ocf.autoscaling.api.decoding import decode
from ocf.autoscaling.api.kinds import HPA_KIND
from ocf.errors import FieldProblem, ManifestError
from ocf.objects import Manifest, ObjectKey
from ocf.schema.kubernetes import FeatureGates

__all__ = ["read_hpa"]

_CURRENT: Final = FeatureGates()
_INT32: Final = integer("int32")
_OF_V2: Final[dict[str, str]] = dict.fromkeys(
    ("metrics", "behavior"), "a field of autoscaling/v2: write apiVersion: autoscaling/v2"
)
_V1: Final = struct(
    apiVersion=text,
    kind=text,
    metadata=METADATA,
    spec=struct(
        _OF_V2,
        scaleTargetRef=REFERENCE,
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
    """Decode an HPA of any version, as strictly as `kubectl`.

    Args:
        manifest: The manifest; it is not changed.

    Returns:
        The HPA as autoscaling/v2, without nulls and without defaults. One of autoscaling/v1 has the defaults of
        that version: `minReplicas` and the metric of autoscaling/v1. autoscaling/v2beta1 and v2beta2 are converted as
        the last release did that served them; `not_served` is why an API server rejects them.

    Raises:
        ManifestError: If it cannot be decoded, or has another version.

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
        converted = to_v2(read_object(manifest, _V1, version, HPA_KIND), defaults=False, tolerance_known=known)
        # Once more, because annotations are JSON of the user that nothing has checked yet.
        return decode(converted, tolerance_known=known)
    if version == "autoscaling/v2beta2":
        return decode({**manifest, "apiVersion": "autoscaling/v2"}, tolerance_known=False)
    if version == "autoscaling/v2beta1":
        from ocf.autoscaling.api.betas import read_v2beta1

        return decode(read_v2beta1(manifest), tolerance_known=False)
    problem = "is missing: write autoscaling/v2"
    if version is not None:
        problem = f'"{version!s:.80}" is not a version of {HPA_KIND}: write autoscaling/v2'
    raise ManifestError(f"{HPA_KIND} {_name(manifest)}".strip(), [FieldProblem("apiVersion", problem)])


def _name(manifest: Manifest) -> str:
    try:
        key = ObjectKey.of(manifest)
    except ManifestError:
        return ""
    return f"{key.namespace}/{key.name}" if key.namespace else key.name
