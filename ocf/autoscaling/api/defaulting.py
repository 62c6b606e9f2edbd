"""Defaults that the API server sets when it stores an HPA.

Comparison, validation and the algorithm use the object with its defaults. A null field counts as missing, as everywhere
in the API. Quantities are not changed to the API server's notation here: they are compared as numbers.
"""

from __future__ import annotations

from typing import Any

from ocf.autoscaling.api.decoders import to_manifest
from ocf.errors import FieldProblem, ManifestError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest, copy_json

__all__ = ["default", "default_decoded"]


def default(hpa: Manifest | BaseModel) -> Manifest:
    """Return an HPA with the defaults of autoscaling/v2.

    * `minReplicas` is 1.
    * Without metrics, or with an empty list, the target is 80 percent of the cpu requests.
    * With a `behavior`, even an empty one, each direction gets defaults field by field: `selectPolicy` is Max; up, a
      window of 0 seconds and the policies 4 pods and 100 percent per 15 seconds; down, the policy 100 percent per 15
      seconds. The window down has no default, because the controller has a setting for it. An empty list of policies
      is kept, and rejected by validation. Without a `behavior` nothing is set.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/.

    Args:
        hpa: A manifest, or a model of the client; it is not changed. Any `kind` is accepted, so that other kinds with
            the same `spec` can be defaulted too.

    Returns:
        A new manifest; setting the defaults again changes nothing.

    Raises:
        ManifestError: If the object, `spec`, `behavior` or a direction of it is not a map.

    Example:
        >>> default({"spec": {"maxReplicas": 3, "metrics": [{"type": "Pods"}], "behavior": None}})["spec"]
        {'maxReplicas': 3, 'metrics': [{'type': 'Pods'}], 'minReplicas': 1}
    """
    result = copy_json(hpa) if isinstance(hpa, dict) else to_manifest(hpa)
    if not isinstance(result, dict):
        raise ManifestError(
            "HorizontalPodAutoscaler", [FieldProblem("", f"must be a map, not {type(result).__name__}")]
        )
    return default_decoded(result)


def default_decoded(hpa: Manifest) -> Manifest:
    """Return an HPA with defaults, without copying the manifest first.

    Args:
        hpa: A decoded manifest that the caller does not use any more; the result shares parts with it.
    """
    spec = _without_nulls(hpa.get("spec"), "spec")
    spec.setdefault("minReplicas", 1)
    if spec.get("metrics", []) == []:
        spec["metrics"] = [_cpu_metric()]
    if "behavior" in spec:
        spec["behavior"] = _behavior(spec["behavior"])
    return {**hpa, "spec": spec}


def _behavior(value: object) -> Manifest:
    behavior = _without_nulls(value, "spec.behavior")
    up = {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [_policy("Pods", 4), _policy("Percent", 100)],
    }
    down = {"selectPolicy": "Max", "policies": [_policy("Percent", 100)]}
    for direction, defaults in (("scaleUp", up), ("scaleDown", down)):
        rules = _without_nulls(behavior.get(direction), f"spec.behavior.{direction}")
        behavior[direction] = {**rules, **{field: item for field, item in defaults.items() if field not in rules}}
    return behavior


def _without_nulls(value: Any, path: str) -> dict[str, Any]:
    """Return the fields of a map that are not null."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ManifestError("HorizontalPodAutoscaler", [FieldProblem(path, f"must be a map, not {value!r}")])
    return {field: item for field, item in value.items() if item is not None}


def _cpu_metric() -> Manifest:
    target = {"type": "Utilization", "averageUtilization": 80}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _policy(kind: str, value: int) -> Manifest:
    return {"type": kind, "value": value, "periodSeconds": 15}
