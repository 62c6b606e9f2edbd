"""Form in which the API server stores an HPA: empty optional fields are left out, empty required fields are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ocf.objects import Manifest

__all__ = ["stored_form"]

_EMPTY: Final[tuple[object, ...]] = ("", [], {})


def stored_form(hpa: Manifest) -> Manifest:
    """Return an HPA without its empty optional fields.

    Args:
        hpa: A valid HPA of autoscaling/v2, decoded and with defaults; it is not changed.

    Returns:
        A new manifest; a selector that is empty stays, because it selects everything.

    Example:
        >>> metadata, target = {"name": "web", "labels": {}}, {"kind": "Deployment", "name": "web", "apiVersion": ""}
        >>> stored_form({"metadata": metadata, "spec": {"scaleTargetRef": target, "metrics": []}})
        {'metadata': {'name': 'web'}, 'spec': {'scaleTargetRef': {'kind': 'Deployment', 'name': 'web'}, 'metrics': []}}
    """
    spec = dict(hpa["spec"])
    if "scaleTargetRef" in spec:
        spec["scaleTargetRef"] = _reference(spec["scaleTargetRef"])
    spec["metrics"] = [{name: _source(part) for name, part in metric.items()} for metric in spec["metrics"]]
    metadata = {"metadata": _without_empty(hpa["metadata"])} if "metadata" in hpa else {}
    return {**hpa, **metadata, "spec": spec}


def _without_empty(fields: Mapping[str, Any]) -> Manifest:
    return {name: value for name, value in fields.items() if value not in _EMPTY}


def _reference(reference: Mapping[str, Any]) -> Manifest:
    return {name: value for name, value in reference.items() if name != "apiVersion" or value}


def _source(source: Any) -> Any:
    """Return a source of a metric; its type is a text."""
    if not isinstance(source, Mapping):
        return source
    found = dict(source)
    if "describedObject" in found:
        found["describedObject"] = _reference(found["describedObject"])
    selector = found.get("metric", {}).get("selector")
    if selector is not None:
        found["metric"] = {**found["metric"], "selector": _selector(selector)}
    return found


def _selector(selector: Mapping[str, Any]) -> Manifest:
    found = _without_empty(selector)
    if "matchExpressions" in found:
        found["matchExpressions"] = [
            {"key": "", "operator": "", **_without_empty(each)} for each in found["matchExpressions"]
        ]
    return found
