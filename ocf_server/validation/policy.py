"""Validation of PodDisruptionBudgets.

Source: `pkg/apis/policy/validation/validation.go` and `pkg/registry/policy/poddisruptionbudget` of Kubernetes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocf.cluster.protocol import Subresource
from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, invalid
from ocf_server.validation.fields import (
    enumeration,
    label_selector,
    nonnegative,
    percent,
    positive_int_or_percent,
    shown_selector,
)
from ocf_server.validation.validation import Validation

__all__ = ["VALIDATIONS"]

_EVICTION_POLICIES: Final = ("AlwaysAllow", "IfHealthyBudget")
_COUNTS: Final = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_WHOLE: Final = 100


def _budget_errors(budget: Manifest) -> Iterator[FieldError]:
    spec: Mapping[str, Any] = budget.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield invalid("spec", _shown(spec), "minAvailable and maxUnavailable cannot be both set")
    for name in ("minAvailable", "maxUnavailable"):
        value = spec.get(name)
        if value is not None:
            yield from positive_int_or_percent(value, f"spec.{name}")
            yield from _at_most_all(value, f"spec.{name}")
    yield from label_selector(spec.get("selector") or {}, "spec.selector")
    yield from enumeration(
        spec.get("unhealthyPodEvictionPolicy"), _EVICTION_POLICIES, "spec.unhealthyPodEvictionPolicy"
    )


def _shown(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec as the API server prints it: with the names of the internal Go type."""
    selector = spec.get("selector")
    return {
        "MinAvailable": spec.get("minAvailable"),
        "Selector": None if selector is None else shown_selector(selector),
        "MaxUnavailable": spec.get("maxUnavailable"),
        "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
    }


def _at_most_all(value: int | str, path: str) -> Iterator[FieldError]:
    if isinstance(value, str) and not percent(value) and int(value.removesuffix("%")) > _WHOLE:
        yield invalid(path, value, "must not be greater than 100%", as_json=True)


def _budget_update_errors(new: Manifest, _: Manifest) -> Iterator[FieldError]:
    return _budget_errors(new)


def _budget_status_errors(new: Manifest, _: Manifest) -> Iterator[FieldError]:
    for name in _COUNTS:
        yield from nonnegative((new.get("status") or {}).get(name), f"status.{name}")


VALIDATIONS: Final = {
    "PodDisruptionBudget.policy": Validation(
        _budget_errors, _budget_update_errors, {Subresource.STATUS: _budget_status_errors}
    )
}
