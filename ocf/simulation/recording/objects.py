"""Objects of a recording: what identifies them, and the parts of them that a sync reads."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.paths import get_field

__all__ = ["difference", "identity", "reduced"]

_METADATA: Final = ("name", "namespace", "labels", "creationTimestamp", "deletionTimestamp", "generation")
_CONDITIONS: Final = frozenset({"Ready", "PodScheduled"})


def identity(manifest: Manifest) -> str:
    """Return what identifies an object within a recording: kind and name, or the series of a metric.

    Example:
        >>> identity({"kind": "Pod", "metadata": {"name": "web-0"}})
        'Pod/web-0'
    """
    kind = str(manifest.get("kind"))
    if kind == "MetricValue":
        described = manifest.get("describedObject") or {}
        name = get_field(manifest, ("metric", "name")) or manifest.get("metricName")
        return f"{kind}/{described.get('kind')}/{described.get('name')}/{name}"
    if kind == "ExternalMetricValue":
        labels = json.dumps(manifest.get("metricLabels") or {}, sort_keys=True)
        return f"{kind}/{manifest.get('metricName')}/{labels}"
    return f"{kind}/{get_field(manifest, ('metadata', 'name'))}"


def reduced(manifest: Manifest) -> Manifest:
    """Return the parts of an object that a sync reads; others, which may be secret, are left out.

    Args:
        manifest: The object; it is not changed.
    """
    reduce = _BY_KIND.get(str(manifest.get("kind")))
    result = dict(manifest)
    if "metadata" in result:
        result["metadata"] = _chosen(result["metadata"], _METADATA)
    return result if reduce is None else reduce(result)


def difference(before: Mapping[str, Manifest], after: Iterable[Manifest]) -> tuple[list[Manifest], list[str]]:
    """Return the objects that are new or have changed, and the identities of those that are gone."""
    now = {identity(each): each for each in after}
    changed = [each for name, each in now.items() if before.get(name) != each]
    return changed, [name for name in before if name not in now]


def _chosen(value: Any, names: Iterable[str]) -> Manifest:
    return {name: value[name] for name in names if name in value} if isinstance(value, dict) else {}


def _hpa(manifest: Manifest) -> Manifest:
    return _chosen(manifest, ("apiVersion", "kind", "metadata", "spec", "status"))


def _pod(manifest: Manifest) -> Manifest:
    spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
    result = _chosen(manifest, ("apiVersion", "kind", "metadata"))
    result["spec"] = _chosen(spec, ("resources", "overhead", "nodeName"))
    for name in ("containers", "initContainers"):
        if spec.get(name):
            result["spec"][name] = [_chosen(each, ("name", "resources", "restartPolicy")) for each in spec[name]]
    result["status"] = _chosen(status, ("phase", "startTime"))
    conditions = _conditions(status)
    if conditions:
        result["status"]["conditions"] = conditions
    return result


def _node(manifest: Manifest) -> Manifest:
    spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
    result = _chosen(manifest, ("apiVersion", "kind", "metadata"))
    result["spec"] = _chosen(spec, ("unschedulable", "taints"))
    # Without the times of heartbeats, a node changes only when something happens to it.
    result["status"] = _chosen(status, ("capacity", "allocatable"))
    conditions = _conditions(status)
    if conditions:
        result["status"]["conditions"] = conditions
    return result


def _conditions(status: Manifest) -> list[Manifest]:
    return [
        _chosen(each, ("type", "status", "lastTransitionTime"))
        for each in status.get("conditions") or ()
        if isinstance(each, dict) and each.get("type") in _CONDITIONS
    ]


_BY_KIND: Final[Mapping[str, Callable[[Manifest], Manifest]]] = {
    "HorizontalPodAutoscaler": _hpa,
    "Node": _node,
    "Pod": _pod,
}
