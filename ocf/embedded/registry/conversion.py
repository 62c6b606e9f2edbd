"""One object in several versions.

A kind is stored in one version and can be read and written in others. Of a user's kind only the name of the version
changes, and what the other version does not declare is dropped; of the built-in kinds with a second version the
fields are moved as a real server moves them.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ocf.embedded.apiextensions import prune
from ocf.embedded.codec.decoding import decode
from ocf.objects import Manifest
from ocf.schema.builtin import ApiResource

__all__ = ["convert"]

_METRICS: Final = "autoscaling.alpha.kubernetes.io/metrics"
_RENAMED: Final = {
    "involvedObject": "regarding",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "message": "note",
    "reportingComponent": "reportingController",
}


def _to_new_event(event: Manifest) -> Manifest:
    return {_RENAMED.get(name, name): value for name, value in event.items()}


def _to_old_event(event: Manifest) -> Manifest:
    back = {new: old for old, new in _RENAMED.items()}
    return {back.get(name, name): value for name, value in event.items()}


def _to_v1_autoscaler(autoscaler: Manifest) -> Manifest:
    from ocf.autoscaling.api.v1_conversion import to_v1

    return to_v1(autoscaler)


def _to_v2_autoscaler(autoscaler: Manifest) -> Manifest:
    from ocf.autoscaling.api.v1_conversion import to_v2

    return to_v2(autoscaler)


def _without_defaults(converted: Manifest, source: Manifest) -> Manifest:
    """Take the defaults out of an autoscaler that was converted from its first version."""
    spec, annotations = source.get("spec") or {}, source["metadata"].get("annotations") or {}
    if "minReplicas" not in spec:
        converted["spec"].pop("minReplicas", None)
    if "targetCPUUtilizationPercentage" not in spec and _METRICS not in annotations:
        converted["spec"].pop("metrics", None)
    return converted


_CONVERTERS: Final[Mapping[tuple[str, str, str], Callable[[Manifest], Manifest]]] = {
    ("Event", "v1", "events.k8s.io/v1"): _to_new_event,
    ("Event", "events.k8s.io/v1", "v1"): _to_old_event,
    ("HorizontalPodAutoscaler", "autoscaling/v2", "autoscaling/v1"): _to_v1_autoscaler,
    ("HorizontalPodAutoscaler", "autoscaling/v1", "autoscaling/v2"): _to_v2_autoscaler,
}


def convert(manifest: Manifest, source: ApiResource, target: ApiResource, *, filled: bool = True) -> Manifest:
    """Return an object in another version.

    Args:
        manifest: The object; it is not changed.
        source: Its kind, in the version it is in.
        target: Its kind, in the version wanted.
        filled: Whether it gets the defaults of that version, as what comes from the store does.

    Returns:
        The object there; it shares parts with the given one.
    """
    if source.api_version == target.api_version:
        return manifest
    head: dict[str, Any] = {"apiVersion": target.api_version, "kind": target.kind}
    if target.custom:
        moved = {**manifest, **head}
        return moved if target.schema is None else prune(moved, target.schema)
    change = _CONVERTERS[target.kind, source.api_version, target.api_version]
    changed = change(manifest)
    if not filled and change is _to_v2_autoscaler:
        changed = _without_defaults(changed, manifest)
    # Every version has parts that are always there; the structs of the target know which.
    return decode({**changed, **head}, target.type)
