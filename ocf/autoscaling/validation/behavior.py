"""Validation rules of the `behavior` of an HPA."""

from collections.abc import Iterator
from typing import Final

from ocf.autoscaling.api.decoders import parse_quantity
from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, invalid, not_supported, required

__all__ = ["MAX_PERIOD", "MAX_WINDOW", "POLICY_TYPES", "SELECTIONS", "behavior_errors"]

MAX_WINDOW: Final = 3600
"""The longest stabilization window, in seconds."""

MAX_PERIOD: Final = 1800
"""The longest period of a policy, in seconds."""

SELECTIONS: Final = ("Disabled", "Max", "Min")
POLICY_TYPES: Final = ("Percent", "Pods")


def behavior_errors(behavior: Manifest, path: str) -> Iterator[FieldError]:
    """Validate a behavior with its defaults."""
    for direction in ("scaleUp", "scaleDown"):
        if direction in behavior:
            yield from _rules_errors(behavior[direction], f"{path}.{direction}")


def _rules_errors(rules: Manifest, path: str) -> Iterator[FieldError]:
    window = rules.get("stabilizationWindowSeconds", 0)
    if window < 0:
        yield invalid(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero")
    if window > MAX_WINDOW:
        yield invalid(f"{path}.stabilizationWindowSeconds", window, f"must be less than or equal to {MAX_WINDOW}")
    selection = rules.get("selectPolicy")
    if selection is not None and selection not in SELECTIONS:
        yield not_supported(f"{path}.selectPolicy", selection, SELECTIONS)
    if not rules.get("policies"):
        yield required(f"{path}.policies", "must specify at least one Policy")
    for position, policy in enumerate(rules.get("policies", [])):
        yield from _policy_errors(policy, f"{path}.policies[{position}]")
    if "tolerance" in rules:
        tolerance = parse_quantity(rules["tolerance"])
        if tolerance.nano < 0:
            yield invalid(f"{path}.tolerance", str(tolerance), "must be greater than or equal to 0")


def _policy_errors(policy: Manifest, path: str) -> Iterator[FieldError]:
    kind = policy.get("type", "")
    if kind not in POLICY_TYPES:
        yield not_supported(f"{path}.type", kind, POLICY_TYPES)
    value = policy.get("value", 0)
    if value <= 0:
        yield invalid(f"{path}.value", value, "must be greater than zero")
    period = policy.get("periodSeconds", 0)
    if period <= 0:
        yield invalid(f"{path}.periodSeconds", period, "must be greater than zero")
    if period > MAX_PERIOD:
        yield invalid(f"{path}.periodSeconds", period, f"must be less than or equal to {MAX_PERIOD}")
