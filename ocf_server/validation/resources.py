"""Validation of compute resources: their names, quantities, requests and limits.

Source: `validateResourceRequirements` and its helpers in `pkg/apis/core/validation/validation.go` and
`pkg/apis/core/helper` of Kubernetes.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ocf.errors import QuantityError
from ocf.objects.field_errors import FieldError, duplicate, forbidden, invalid, not_found, not_supported, required
from ocf.objects.name_validation import dns_label, qualified_name
from ocf.objects.quantity import Quantity
from ocf_server.validation.fields import each_problem, quantity_not_negative

__all__ = [
    "ResourceNameRule",
    "container_resource_name",
    "may_be_overcommitted",
    "pod_resource_name",
    "quantity_errors",
    "quota_resource_name",
    "requirement_errors",
    "resource_name",
]

ResourceNameRule: TypeAlias = Callable[[str, str], Iterator[FieldError]]
"""Yields the errors of the name of a resource at a path."""

_HUGE: Final = "hugepages-"
_REQUESTS: Final = "requests."
_NATIVE: Final = "kubernetes.io/"
_INTEGERS: Final = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_STANDARD: Final = (
    _INTEGERS
    | {"storage", "requests.storage"}
    | {f"{prefix}{name}" for name in _COMPUTE for prefix in ("", "requests.", "limits.")}
)
_POD_LEVEL: Final = ("cpu", _HUGE, "memory")


def container_resource_name(name: str, path: str) -> Iterator[FieldError]:
    """Yield the errors of the name of a resource of a container."""
    yield from resource_name(name, path)
    if "/" not in name:
        if name not in _COMPUTE and not name.startswith(_HUGE):
            yield _invalid_name(name, path, "must be a standard resource for containers")
    elif not _is_native(name) and not _is_extended(name):
        yield _invalid_name(name, path, "doesn't follow extended resource name standard")


def pod_resource_name(name: str, path: str) -> Iterator[FieldError]:
    """Yield the errors of the name of a resource of a pod as a whole."""
    found = list(resource_name(name, path))
    yield from found
    if not found and name not in ("cpu", "memory") and not name.startswith(_HUGE):
        yield not_supported(path, name, _POD_LEVEL)


def quota_resource_name(name: str, path: str) -> Iterator[FieldError]:
    """Yield the errors of the name of a resource that a quota limits."""
    yield from resource_name(name, path)
    if "/" not in name and (name == "storage" or not _is_standard(name)):
        yield _invalid_name(name, path, "must be a standard resource for quota")


def resource_name(name: str, path: str) -> Iterator[FieldError]:
    """Yield the errors of the name of a resource."""
    problems = qualified_name(name)
    yield from (_invalid_name(name, path, problem) for problem in problems)
    if not problems and "/" not in name and not _is_standard(name):
        yield _invalid_name(name, path, "must be a standard resource type or fully qualified")


def _invalid_name(name: str, path: str, detail: str) -> FieldError:
    return invalid(path, name, detail, as_json=True)


def _is_standard(name: str) -> bool:
    return name in _STANDARD or name.startswith((_HUGE, _REQUESTS + _HUGE))


def _is_native(name: str) -> bool:
    return "/" not in name or _NATIVE in name


def _is_extended(name: str) -> bool:
    if _is_native(name) or name.startswith(_REQUESTS):
        return False
    return not qualified_name(_REQUESTS + name)


def may_be_overcommitted(name: str) -> bool:
    """Return whether the requests of a resource may be lower than its limits."""
    return _is_native(name) and not name.startswith(_HUGE)


def quantity_errors(name: str, value: str | float, path: str) -> Iterator[FieldError]:
    """Yield the errors of the amount of a resource.

    Args:
        name: Name of the resource, `cpu`.
    """
    yield from quantity_not_negative(value, path)
    quantity = Quantity.parse(value)
    if (name in _INTEGERS or _is_extended(name)) and quantity.milli % 1000:
        yield invalid(path, str(quantity), "must be an integer")


def requirement_errors(
    requirements: Mapping[str, Any],
    path: str,
    *,
    name_rule: ResourceNameRule = container_resource_name,
    claims: Collection[str] = (),
) -> Iterator[FieldError]:
    """Yield the errors of requests, limits and claims.

    Args:
        claims: Names of the resource claims of the pod.

    Yields:
        The errors; of resources sorted by name, since the API server has no order.
    """
    limits, requests = requirements.get("limits") or {}, requirements.get("requests") or {}
    for name, value in sorted(limits.items()):
        yield from _amount_errors(name, value, f"{path}.limits[{name}]", name_rule)
    for name, value in sorted(requests.items()):
        yield from name_rule(name, f"{path}.requests[{name}]")
        yield from quantity_errors(name, value, f"{path}.requests[{name}]")
        yield from _limit_errors(name, value, limits.get(name), path)
        yield from _page_errors(name, value, f"{path}.requests[{name}]")
    names = {*limits, *requests}
    if any(name.startswith(_HUGE) for name in names) and not names & {"cpu", "memory"}:
        yield forbidden(path, "HugePages require cpu or memory")
    yield from _claim_errors(requirements.get("claims") or (), claims, f"{path}.claims")


def _amount_errors(name: str, value: str | float, path: str, name_rule: ResourceNameRule) -> Iterator[FieldError]:
    yield from name_rule(name, path)
    yield from quantity_errors(name, value, path)
    yield from _page_errors(name, value, path)


def _limit_errors(name: str, value: str | float, limit: str | float | None, path: str) -> Iterator[FieldError]:
    if limit is None:
        if not may_be_overcommitted(name):
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        return
    asked, most = Quantity.parse(value), Quantity.parse(limit)
    if asked != most and not may_be_overcommitted(name):
        yield invalid(f"{path}.requests", str(asked), f"must be equal to {name} limit of {most}")
    elif asked > most:
        yield invalid(f"{path}.requests", str(asked), f"must be less than or equal to {name} limit of {most}")


def _page_errors(name: str, value: str | float, path: str) -> Iterator[FieldError]:
    if name.startswith(_HUGE) and not _is_whole_pages(Quantity.parse(value), name.removeprefix(_HUGE)):
        text = str(Quantity.parse(value))
        yield invalid(path, text, f"{text} is not positive integer multiple of {name}")


def _is_whole_pages(quantity: Quantity, size: str) -> bool:
    try:
        page = Quantity.parse(size)
    except QuantityError:
        return False
    return page.nano > 0 and page.milli % 1000 == 0 and quantity.value % page.value == 0


def _claim_errors(entries: Sequence[Mapping[str, Any]], claims: Collection[str], path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        name, request, place = entry.get("name", ""), entry.get("request", ""), f"{path}[{index}]"
        if not name:
            yield required(place)
            continue
        if name in seen:
            yield duplicate(place, name)
        else:
            yield from _request_errors(name, request, seen, place)
            seen.add(f"{name}/{request}" if request else name)
        if name not in claims:
            known = f": {', '.join(sorted(claims))}" if claims else " which is empty"
            yield not_found(place, name)._replace(detail=f"must be one of the names in pod.spec.resourceClaims{known}")


def _request_errors(name: str, request: str, seen: set[str], path: str) -> Iterator[FieldError]:
    if request:
        yield from each_problem(dns_label, request, f"{path}.request")
        if f"{name}/{request}" in seen:
            yield duplicate(path, f"{name}/{request}")
    else:
        yield from (duplicate(path, name) for key in seen if key.startswith(f"{name}/"))
