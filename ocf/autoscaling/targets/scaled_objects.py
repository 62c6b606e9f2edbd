"""ScaledObjects of KEDA, as the HPAs that KEDA makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ocf.autoscaling.api.kinds import HPA_KIND
from ocf.autoscaling.targets.targets import key_of, scale_target_key
from ocf.objects import Manifest, ObjectKey
from ocf.objects.paths import get_field
from ocf.schema.metric_sources import TARGET_FIELDS

__all__ = ["hpa_name_of", "hpa_of", "is_scaled_object", "scaled_object_field", "target_of"]

_FIELDS: Final[Mapping[str, str]] = {
    "minReplicas": "spec.minReplicaCount",
    "maxReplicas": "spec.maxReplicaCount",
    "metrics": "spec.triggers",
    "behavior": "spec.advanced.horizontalPodAutoscalerConfig.behavior",
    "scaleTargetRef": "spec.scaleTargetRef",
}
_TRIGGERS: Final = _FIELDS["metrics"]

_CONFIG: Final = ("spec", "advanced", "horizontalPodAutoscalerConfig")
_MOST: Final = 100


def is_scaled_object(manifest: Manifest) -> bool:
    """Return whether an object is a ScaledObject of KEDA."""
    return manifest.get("kind") == "ScaledObject" and key_of(manifest).group == "keda.sh"


def hpa_name_of(scaled_object: Manifest) -> str:
    """Return the name of the HPA that KEDA makes of a ScaledObject."""
    name = get_field(scaled_object, (*_CONFIG, "name"))
    return str(name) if name else f"keda-hpa-{key_of(scaled_object).name}"


def scaled_object_field(field: str) -> str:
    """Return the field of a ScaledObject of which KEDA makes a field of an HPA.

    Args:
        field: The field of the HPA. Metrics have the positions of the triggers in the HPA of `hpa_of` only: KEDA sorts
            them by type.

    Example:
        >>> scaled_object_field("spec.behavior.scaleDown"), scaled_object_field("spec.metrics[1].resource.target")
        ('spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleDown', 'spec.triggers[1]')
    """
    name, dot, rest = field.removeprefix("spec.").partition(".")
    name, bracket, position = name.partition("[")
    found = f"{_FIELDS.get(name, 'spec')}{bracket}{position}"
    # Below a trigger the fields have other names.
    return found if found.startswith(_TRIGGERS) else f"{found}{dot}{rest}"


def target_of(scaled_object: Manifest) -> ObjectKey:
    """Return the key of the target of a ScaledObject, with the defaults of KEDA."""
    return scale_target_key({**scaled_object, "spec": {"scaleTargetRef": _reference(scaled_object)}})


def hpa_of(scaled_object: Manifest) -> Manifest:
    """Return the HPA that KEDA makes of a ScaledObject.

    A metric from outside has a name and an amount that only KEDA knows, so they stand for those. Source:
    https://github.com/kedacore/keda/blob/main/controllers/keda/hpa.go.
    """
    key = key_of(scaled_object)
    spec = _map(get_field(scaled_object, ("spec",)))
    listed = spec.get("triggers")
    triggers = [_map(each) for each in listed] if isinstance(listed, list) else []
    behavior = get_field(scaled_object, (*_CONFIG, "behavior"))
    owner = {"apiVersion": key.api_version, "kind": key.kind, "name": key.name, "uid": "", "controller": True}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": HPA_KIND,
        "metadata": {
            "name": hpa_name_of(scaled_object),
            **({"namespace": key.namespace} if key.namespace else {}),
            "ownerReferences": [owner],
        },
        "spec": {
            "scaleTargetRef": _reference(scaled_object),
            # KEDA itself scales to 0 and from it.
            "minReplicas": spec.get("minReplicaCount") or 1,
            "maxReplicas": _MOST if spec.get("maxReplicaCount") is None else spec["maxReplicaCount"],
            "metrics": [_metric(trigger, position) for position, trigger in enumerate(triggers)],
            **({"behavior": behavior} if isinstance(behavior, dict) else {}),
        },
    }


def _reference(scaled_object: Manifest) -> Manifest:
    reference = _map(get_field(scaled_object, ("spec", "scaleTargetRef")))
    given = {name: _text(reference[name]) for name in ("apiVersion", "kind", "name") if reference.get(name)}
    return {"apiVersion": "apps/v1", "kind": "Deployment", **given}


def _metric(trigger: Mapping[str, Any], position: int) -> Manifest:
    kind, metadata = _text(trigger.get("type")), _map(trigger.get("metadata"))
    if kind not in {"cpu", "memory"}:
        target = {"type": "AverageValue", "averageValue": "1"}
        return {"type": "External", "external": {"metric": {"name": f"s{position}-{kind}"}, "target": target}}
    # Older releases have the type among the metadata.
    target_type = _text(trigger.get("metricType") or metadata.get("type")) or "Utilization"
    value: Any = str(metadata.get("value", ""))
    if target_type == "Utilization" and value.isdecimal():
        value = int(value)
    source = {"name": kind, "target": {"type": target_type, TARGET_FIELDS.get(target_type, "averageValue"): value}}
    container = metadata.get("containerName")
    if container:
        return {"type": "ContainerResource", "containerResource": {**source, "container": container}}
    return {"type": "Resource", "resource": source}


def _text(value: Any) -> str:
    """Return a text, also of a value of another type, which the user may have written."""
    return "" if value is None else str(value)


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
