"""Resizes of pods: changes of the resources of containers that run.

Source: podResizeStrategy and ValidatePodResize of Kubernetes 1.36. Resources of a whole pod are not resized.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocf.errors import FieldProblem, ManifestError
from ocf.objects import Manifest, Quantity

__all__ = ["problems", "qos_class", "resized"]

_LISTS: Final = ("containers", "initContainers")
_RESIZED: Final = ("resources", "resizePolicy")
_COUNTED: Final = ("cpu", "memory")

Json = dict[str, Any]


def _containers(spec: Mapping[str, Any], name: str) -> list[Json]:
    found: list[Json] = spec.get(name) or []
    return found


def resized(new: Mapping[str, Any], live: Mapping[str, Any]) -> Json | None:
    """Return the spec of a pod with the new resources of its containers.

    Args:
        live: The live spec; it is not changed.

    Returns:
        The spec, which differs from the live one only in resources; None if containers are added or removed.
    """
    spec = dict(live)
    for name in _LISTS:
        wanted, known = _containers(new, name), _containers(live, name)
        if len(wanted) != len(known):
            return None
        if known:
            same = all(one.get("name") == other["name"] for one, other in zip(wanted, known, strict=True))
            spec[name] = [_with_resources(*pair) for pair in zip(wanted, known, strict=True)] if same else wanted
    return spec


def _with_resources(new: Json, live: Json) -> Json:
    kept = {name: value for name, value in live.items() if name not in _RESIZED}
    return kept | {name: new[name] for name in _RESIZED if name in new}


def problems(new: Manifest, live: Manifest) -> Iterator[FieldProblem]:
    """Yield what is invalid in a resize."""
    before = live["status"].get("qosClass") or qos_class(live["spec"])
    # The class decides about the pod's cgroup, which the kubelet cannot change while it runs.
    if before != qos_class(new["spec"]):
        yield FieldProblem("spec", f'Invalid value: "{before}": Pod QOS Class may not change as a result of resizing')
    order = list(_order_problems(new["spec"], live["spec"]))
    yield from order
    if order:
        return
    # Init containers first, as ValidatePodResize reports them.
    for name in reversed(_LISTS):
        for index, pair in enumerate(_pairs(new, live, name)):
            yield from _removals(*pair, f"spec.{name}[{index}].resources")
    for one, other in _pairs(new, live, "containers"):
        if not _differ_in_cpu_and_memory(one, other):
            yield FieldProblem("spec", "Forbidden: only cpu and memory resources are mutable")
    for index, (one, other) in enumerate(_pairs(new, live, "initContainers")):
        if not _differ_in_cpu_and_memory(one, other):
            detail = "only cpu and memory resources for init or sidecar containers are mutable"
            yield FieldProblem(f"spec.initContainers[{index}]", f"Forbidden: {detail}")


def _pairs(new: Manifest, live: Manifest, name: str) -> Iterator[tuple[Json, Json]]:
    return zip(_containers(new["spec"], name), _containers(live["spec"], name), strict=True)


def _order_problems(new: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[FieldProblem]:
    for name in _LISTS:
        wanted, known = _containers(new, name), _containers(live, name)
        if len(wanted) != len(known):
            yield FieldProblem(f"spec.{name}", f"Forbidden: {name} may not be added or removed on resize")
            continue
        for index, (one, other) in enumerate(zip(wanted, known, strict=True)):
            if one.get("name") != other["name"]:
                detail = f"{name} may not be renamed or reordered on resize"
                yield FieldProblem(f"spec.{name}[{index}].name", f"Forbidden: {detail}")


def _removals(new: Json, live: Json, path: str) -> Iterator[FieldProblem]:
    for part, text in (("requests", "resource requests"), ("limits", "resource limits")):
        if set(_amounts(live, part)) - set(_amounts(new, part)):
            yield FieldProblem(f"{path}.{part}", f"Forbidden: {text} cannot be removed")


def _amounts(container: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (container.get("resources") or {}).get(part) or {}
    return found


def _differ_in_cpu_and_memory(new: Json, live: Json) -> bool:
    """Return whether nothing else differs between two containers."""
    return _without(new) == _without(live)


def _without(container: Json) -> Json:
    resources = {
        part: {name: value for name, value in _amounts(container, part).items() if name not in _COUNTED}
        for part in ("requests", "limits")
    }
    return {**container, "resources": resources}


def qos_class(spec: Mapping[str, Any]) -> str:
    """Return the quality of service class of a pod.

    Example:
        >>> amounts = {"cpu": "1", "memory": "1Gi"}
        >>> qos_class({"containers": [{"resources": {"requests": amounts, "limits": amounts}}]})
        'Guaranteed'
        >>> qos_class({"containers": [{"resources": {"requests": {"cpu": "1"}}}]}), qos_class({"containers": [{}]})
        ('Burstable', 'BestEffort')
    """
    containers = [container for name in _LISTS for container in _containers(spec, name)]
    if spec.get("resources") is not None:
        # Those of the whole pod count instead.
        containers = [dict(spec)]
    amounts = [(_counted(one, "requests"), _counted(one, "limits")) for one in containers]
    if not any(requests or limits for requests, limits in amounts):
        return "BestEffort"
    exact = all(set(limits) == set(_COUNTED) and requests == limits for requests, limits in amounts)
    return "Guaranteed" if exact else "Burstable"


def _counted(container: Mapping[str, Any], part: str) -> dict[str, Any]:
    found = _amounts(container, part)
    return {name: _amount(found[name]) for name in _COUNTED if name in found and _amount(found[name])}


def _amount(value: Any) -> Any:
    try:
        return Quantity.parse(str(value)).milli
    except ManifestError:
        return value
