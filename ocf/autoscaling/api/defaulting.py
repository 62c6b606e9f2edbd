"""What the API server fills in when it stores a HorizontalPodAutoscaler.

Comparing, validating and deciding start from the object as the server sees it, not as its author wrote it. A field
that is null counts as absent, as everywhere in the API. What the server does to the text of a quantity is no
defaulting and is not done here: quantities are compared as numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ocf.autoscaling.api.decoders import to_manifest
from ocf.errors import FieldProblem, ManifestError
from ocf.objects import Manifest, copy_json

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["default", "default_decoded"]


def default(hpa: Manifest | BaseModel) -> Manifest:
    """Fill in the defaults of autoscaling/v2.

    * `minReplicas` is 1.
    * Without a metric, or with an empty list of them, the target is 80 percent of the requested cpu.
    * With a `behavior`, even an empty one, each direction is filled in field by field: `selectPolicy` is Max; up, a
      window of 0 seconds and the policies 4 pods and 100 percent per 15 seconds; down, the policy 100 percent per 15
      seconds. The window down stays open, as the controller has a setting for it. A list of policies that is given
      but empty is kept, and refused by validation. Without a `behavior` nothing is filled in.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/.

    Args:
        hpa: A manifest, or a model of the client; left as it is. The kind does not matter, so objects of other kinds
            with the same `spec` can be defaulted too.

    Returns:
        A new manifest. Defaulting it again changes nothing.

    Raises:
        ManifestError: If it, `spec`, its `behavior` or a direction of that is no map.

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
    """Do what `default` does with a manifest that nobody else holds.

    Args:
        hpa: A manifest; parts of it become parts of the result.

    Returns:
        A new manifest.
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
