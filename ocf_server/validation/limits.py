"""Validation of LimitRanges and ResourceQuotas.

Source: `ValidateLimitRange` and `ValidateResourceQuota` in `pkg/apis/core/validation/validation.go` of Kubernetes.
Errors of resources are sorted by name, since the API server has no order.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocf.cluster.protocol import Subresource
from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, duplicate, forbidden, invalid, required
from ocf.objects.name_validation import qualified_name
from ocf.objects.quantity import Quantity
from ocf_server.validation.metadata import metadata_errors, metadata_update_errors
from ocf_server.validation.resources import (
    container_resource_name,
    may_be_overcommitted,
    quantity_errors,
    quota_resource_name,
    resource_name,
)
from ocf_server.validation.validation import Validation

__all__ = ["VALIDATIONS"]

_TYPES: Final = frozenset({"Pod", "Container", "PersistentVolumeClaim"})
_SCOPES: Final = frozenset(
    {
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        "PriorityClass",
        "VolumeAttributesClass",
        "CrossNamespacePodAffinity",
    }
)
_ONLY_EXISTS: Final = _SCOPES - {"PriorityClass", "VolumeAttributesClass"}
_COMPUTE: Final = frozenset({"cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})
_SCOPE_RESOURCES: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(_SCOPES - {"BestEffort", "VolumeAttributesClass"}, _COMPUTE | {"pods"}),
    "BestEffort": frozenset({"pods"}),
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
_DEFAULTS: Final = ("default", "defaultRequest")
_CONFLICTS: Final = (frozenset({"BestEffort", "NotBestEffort"}), frozenset({"Terminating", "NotTerminating"}))

_Amounts = dict[str, Quantity]


def _range_errors(manifest: Manifest) -> Iterator[FieldError]:
    yield from metadata_errors(manifest["metadata"])
    seen: set[str] = set()
    for index, limit in enumerate((manifest.get("spec") or {}).get("limits") or ()):
        path, kind = f"spec.limits[{index}]", limit.get("type", "")
        yield from _type_errors(kind, f"{path}.type")
        if kind in seen:
            yield duplicate(f"{path}.type", kind)
        seen.add(kind)
        yield from _limit_errors(limit, kind, path)


def _range_update_errors(new: Manifest, _: Manifest) -> Iterator[FieldError]:
    return _range_errors(new)


def _type_errors(kind: str, path: str) -> Iterator[FieldError]:
    problems = qualified_name(kind)
    if not problems and "/" not in kind and kind not in _TYPES:
        problems = ["must be a standard limit type or fully qualified"]
    yield from (invalid(path, kind, problem, as_json=True) for problem in problems)


def _limit_errors(limit: Mapping[str, Any], kind: str, path: str) -> Iterator[FieldError]:
    fields = {
        name: {key: Quantity.parse(value) for key, value in sorted((limit.get(name) or {}).items())}
        for name in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
    }
    rule = container_resource_name if kind in ("Pod", "Container") else resource_name
    for name, amounts in fields.items():
        if name in _DEFAULTS and kind == "Pod":
            if amounts:
                yield forbidden(f"{path}.{name}", "may not be specified when `type` is 'Pod'")
            amounts.clear()
        if name == "maxLimitRequestRatio" and kind == "PersistentVolumeClaim":
            yield from _storage_errors(fields, path)
        for key in amounts:
            yield from rule(key, f"{path}.{name}[{key}]")
    for key in sorted({key for amounts in fields.values() for key in amounts}):
        yield from _order_errors(fields, key, path)
        yield from _ratio_errors(fields, key, path)
        yield from _overcommit_errors(fields, key, path)


def _storage_errors(fields: Mapping[str, _Amounts], path: str) -> Iterator[FieldError]:
    if "storage" not in fields["min"] and "storage" not in fields["max"]:
        detail = "either minimum or maximum storage value is required, but neither was provided"
        yield required(f"{path}.limits", detail)


# The smaller and the larger of two fields, the field of the error, and the field whose value the error shows.
_ORDER: Final = (
    ("min", "max", "min", "min"),
    ("min", "defaultRequest", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "max", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "default", "defaultRequest", "defaultRequest"),
    ("min", "default", "default", "min"),
    ("default", "max", "default", "max"),
)
_WORDS: Final = {"min": "min", "max": "max", "default": "default", "defaultRequest": "default request"}


def _order_errors(fields: Mapping[str, _Amounts], key: str, path: str) -> Iterator[FieldError]:
    for low, high, field, shown in _ORDER:
        lower, upper = fields[low].get(key), fields[high].get(key)
        if lower is not None and upper is not None and lower > upper:
            larger = "default limit" if (low, high) == ("defaultRequest", "default") else _WORDS[high]
            detail = f"{_WORDS[low]} value {lower} is greater than {larger} value {upper}"
            yield invalid(f"{path}.{field}[{key}]", str(fields[shown][key]), detail)


def _ratio_errors(fields: Mapping[str, _Amounts], key: str, path: str) -> Iterator[FieldError]:
    ratio, low, high = (fields[name].get(key) for name in ("maxLimitRequestRatio", "min", "max"))
    if ratio is None:
        return
    place = f"{path}.maxLimitRequestRatio[{key}]"
    if ratio < Quantity.parse("1"):
        yield invalid(place, str(ratio), f"ratio {ratio} is less than 1")
    if low is not None and high is not None and low.nano:
        largest = high.milli / low.milli
        if ratio.milli / 1000 > largest:
            yield invalid(place, str(ratio), f"ratio {ratio} is greater than max/min = {largest:f}")


def _overcommit_errors(fields: Mapping[str, _Amounts], key: str, path: str) -> Iterator[FieldError]:
    default, request = fields["default"].get(key), fields["defaultRequest"].get(key)
    if default is not None and request is not None and default != request and not may_be_overcommitted(key):
        detail = f"default value {default} must equal to defaultRequest value {request} in {key}"
        yield invalid(f"{path}.defaultRequest[{key}]", str(request), detail)


def _quota_errors(manifest: Manifest) -> Iterator[FieldError]:
    yield from metadata_errors(manifest["metadata"])
    yield from _quota_spec_errors(manifest.get("spec") or {})


def _quota_spec_errors(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    hard = spec.get("hard") or {}
    for name, value in sorted(hard.items()):
        yield from quota_resource_name(name, f"spec.hard[{name}]")
        yield from quantity_errors(name, value, f"spec.hard[{name}]")
    scopes = spec.get("scopes") or ()
    for scope in scopes:
        if scope not in _SCOPES:
            yield invalid("spec.scopes", scopes, "unsupported scope")
        # The API server reports the scope once for each resource.
        for _ in _unsuitable(scope, hard):
            yield invalid("spec.scopes", scopes, "unsupported scope applied to resource")
    yield from _conflict_errors(scopes, scopes, "spec.scopes")
    if spec.get("scopeSelector") is not None:
        yield from _selector_errors(spec, "spec.scopeSelector.matchExpressions")


def _unsuitable(scope: str, hard: Mapping[str, Any]) -> Iterator[str]:
    """Yield the standard resources that a scope does not apply to."""
    suitable = _SCOPE_RESOURCES.get(scope)
    if suitable is not None:
        standard = (name for name in sorted(hard) if "/" not in name and not list(quota_resource_name(name, "")))
        yield from (name for name in standard if name not in suitable)


def _conflict_errors(found: Any, scopes: Any, path: str) -> Iterator[FieldError]:
    for pair in _CONFLICTS:
        if pair <= set(found):
            yield invalid(path, scopes or None, "conflicting scopes")


def _selector_errors(spec: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    expressions = spec["scopeSelector"].get("matchExpressions") or ()
    for expression in expressions:
        scope, operator = expression.get("scopeName", ""), expression.get("operator", "")
        if scope not in _SCOPES:
            yield invalid(f"{path}.scopeName", scope, "unsupported scope", as_json=True)
        for _ in _unsuitable(scope, spec.get("hard") or {}):
            yield invalid(path, _shown_selector(spec["scopeSelector"]), "unsupported scope applied to resource")
        if scope in _ONLY_EXISTS and operator != "Exists":
            yield invalid(f"{path}.operator", operator, _MUST_EXIST, as_json=True)
        yield from _operator_errors(operator, expression.get("values") or (), path)
    yield from _conflict_errors({each.get("scopeName") for each in expressions}, spec.get("scopes"), path)


_MUST_EXIST: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


def _operator_errors(operator: str, values: Any, path: str) -> Iterator[FieldError]:
    if operator in ("In", "NotIn"):
        if not values:
            detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            yield required(f"{path}.values", detail)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            yield invalid(f"{path}.values", values, detail)
    else:
        yield invalid(f"{path}.operator", operator, "not a valid selector operator", as_json=True)


def _shown_selector(selector: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scope selector with the names of the internal Go type."""
    return {
        "MatchExpressions": [
            {
                "ScopeName": each.get("scopeName", ""),
                "Operator": each.get("operator", ""),
                "Values": each.get("values"),
            }
            for each in selector.get("matchExpressions") or ()
        ]
    }


def _quota_update_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], old["metadata"])
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    yield from _quota_spec_errors(spec)
    if set(spec.get("scopes") or ()) != set(before.get("scopes") or ()):
        yield invalid("spec.scopes", spec.get("scopes"), "field is immutable")


def _quota_status_errors(new: Manifest, old: Manifest) -> Iterator[FieldError]:
    yield from metadata_update_errors(new["metadata"], old["metadata"])
    status = new.get("status") or {}
    for field in ("hard", "used"):
        for name, value in sorted((status.get(field) or {}).items()):
            yield from quota_resource_name(name, f"status.{field}[{name}]")
            yield from quantity_errors(name, value, f"status.{field}[{name}]")


VALIDATIONS: Final = {
    "LimitRange": Validation(_range_errors, _range_update_errors),
    "ResourceQuota": Validation(_quota_errors, _quota_update_errors, {Subresource.STATUS: _quota_status_errors}),
}
