"""Validation of the resources of a pod as a whole.

Source: `validatePodResources` in `pkg/apis/core/validation/validation.go` of Kubernetes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from ocf.objects.field_errors import FieldError, forbidden, invalid
from ocf.objects.quantity import Quantity
from ocf_server.codec.pod_totals import pod_totals
from ocf_server.validation.resources import pod_resource_name, requirement_errors

__all__ = ["pod_resource_errors"]

_Json: TypeAlias = Mapping[str, Any]

_HUGE: Final = "hugepages-"


def pod_resource_errors(spec: _Json, path: str) -> Iterator[FieldError]:
    """Yield the errors of the resources of a pod at a path."""
    resources = spec.get("resources")
    if resources is None:
        return
    if spec.get("os", {}).get("name") == "windows":
        yield forbidden(path, "may not be set for a windows pod")
        return
    if resources.get("claims"):
        yield forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level")
    yield from requirement_errors(resources, path, name_rule=pod_resource_name)
    for amounts, prefix in (("requests", ""), ("limits", _HUGE)):
        for name, total in sorted(pod_totals(spec, amounts).items()):
            value = (resources.get(amounts) or {}).get(name)
            if name.startswith(prefix) and value is not None and total > Quantity.parse(value):
                shown = str(Quantity.parse(value))
                detail = f"must be greater than or equal to aggregate container {amounts} of {total}"
                yield invalid(f"{path}.{amounts}[{name}]", shown, detail)
    yield from _limit_errors(spec, resources.get("limits") or {}, path)


def _limit_errors(spec: _Json, limits: _Json, path: str) -> Iterator[FieldError]:
    for index, container in enumerate(spec.get("containers") or ()):
        for name, value in sorted((container.get("resources", {}).get("limits") or {}).items()):
            if name in limits and Quantity.parse(value) > Quantity.parse(limits[name]):
                most = Quantity.parse(limits[name])
                shown = str(Quantity.parse(value))
                place = f"{path}.containers[{index}][{name}].limits"
                yield invalid(place, shown, f"must be less than or equal to pod limits of {most}")
