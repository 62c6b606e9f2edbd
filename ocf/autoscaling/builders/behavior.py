"""Factories for the `behavior` of an HPA: policies, rules, behavior.

The models of the client accept any number and any text, and the API server rejects the object later. A factory rejects
a wrong value at the call.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, cast

from ocf.autoscaling.builders.arguments import check_integer, check_quantity
from ocf.autoscaling.validation.behavior import MAX_PERIOD, MAX_WINDOW
from ocf.errors import ConfigError
from ocf.lazy_types.kubernetes import V2HorizontalPodAutoscalerBehavior, V2HPAScalingPolicy, V2HPAScalingRules
from ocf.objects import Manifest, write_model
from ocf.objects.model_fields import client_model

__all__ = ["Select", "behavior", "disabled", "percent", "pods", "rules"]

_INT32_MAX: Final = 2**31 - 1
_DEFAULT_PERIOD: Final = 15
"""The period of the API server's default policies."""


class Select(StrEnum):
    """The policy that applies if there are several."""

    MAX = "Max"
    """The policy that allows the largest change; the default."""

    MIN = "Min"
    """The policy that allows the smallest change."""

    DISABLED = "Disabled"
    """No policy: no scaling in this direction."""


def pods(count: int, *, period_seconds: int = _DEFAULT_PERIOD) -> V2HPAScalingPolicy:
    """Allow a change by a number of pods.

    Source: https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#scaling-policies.

    Args:
        count: Number of pods, 1 or more.
        period_seconds: The period in seconds, 1 to 1800.

    Returns:
        A policy of type `Pods`.

    Raises:
        ConfigError: If a number is out of its range.

    Example:
        >>> pods(4, period_seconds=60).value
        4
    """
    return _policy("Pods", "pods", count, period_seconds)


def percent(share: int, *, period_seconds: int = _DEFAULT_PERIOD) -> V2HPAScalingPolicy:
    """Allow a change by a percentage of the current pods; 100 percent up doubles them.

    Source: https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#scaling-policies.

    Args:
        share: Percent, 1 or more.
        period_seconds: The period in seconds, 1 to 1800.

    Returns:
        A policy of type `Percent`.

    Raises:
        ConfigError: If a number is out of its range.

    Example:
        >>> percent(100).period_seconds
        15
    """
    return _policy("Percent", "percent", share, period_seconds)


def rules(
    *policies: V2HPAScalingPolicy,
    select: Select | None = None,
    stabilization_window_seconds: int | None = None,
    tolerance: str | int | None = None,
) -> V2HPAScalingRules:
    """Return the scaling rules of one direction; arguments that are not given keep the API server's defaults.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/.

    Args:
        policies: The policies; without any, the API server's default policies apply.
        select: The policy that applies.
        stabilization_window_seconds: The stabilization window, 0 to 3600.
        tolerance: How far the metric may differ from its target without a rescale, as a quantity: `"0.05"` is five
            percent. By default the controller's setting applies. Needs Kubernetes 1.35, or its feature gate.

    Returns:
        The rules.

    Raises:
        ConfigError: If a value is out of its range, or a policy is not a V2HPAScalingPolicy.

    Example:
        >>> rules(pods(2), percent(10), select=Select.MIN, stabilization_window_seconds=300).select_policy
        'Min'
    """
    found: Manifest = {}
    if policies:
        found["policies"] = [_to_manifest("scaling.rules: policies", "V2HPAScalingPolicy", each) for each in policies]
    if select is not None:
        if not isinstance(select, Select):
            raise ConfigError(f"scaling.rules: select must be one of {', '.join(map(repr, Select))}, not {select!r}")
        found["selectPolicy"] = select.value
    if stabilization_window_seconds is not None:
        subject = "scaling.rules: stabilization_window_seconds"
        found["stabilizationWindowSeconds"] = check_integer(subject, stabilization_window_seconds, 0, MAX_WINDOW)
    if tolerance is not None:
        found["tolerance"] = check_quantity("scaling.rules: tolerance", tolerance, zero_allowed=True)
    return cast("V2HPAScalingRules", client_model("V2HPAScalingRules").model_validate(found))


def disabled() -> V2HPAScalingRules:
    """Return rules that disable scaling in one direction.

    Example:
        >>> disabled().select_policy
        'Disabled'
    """
    return rules(select=Select.DISABLED)


def behavior(
    *, up: V2HPAScalingRules | None = None, down: V2HPAScalingRules | None = None
) -> V2HorizontalPodAutoscalerBehavior:
    """Return a behavior with the rules of both directions.

    Args:
        up: The rules for scaling up; None for the API server's defaults.
        down: The rules for scaling down; None for the API server's defaults.

    Returns:
        The behavior.

    Raises:
        ConfigError: If one of them is not a V2HPAScalingRules.

    Example:
        >>> behavior(down=disabled()).scale_up is None
        True
    """
    given = {"scaleUp": up, "scaleDown": down}
    found = {
        field: _to_manifest(f"scaling.behavior: {field}", "V2HPAScalingRules", each)
        for field, each in given.items()
        if each is not None
    }
    model = client_model("V2HorizontalPodAutoscalerBehavior")
    return cast("V2HorizontalPodAutoscalerBehavior", model.model_validate(found))


def _policy(kind: str, factory: str, value: int, period: int) -> V2HPAScalingPolicy:
    found = {
        "type": kind,
        "value": check_integer(f"scaling.{factory}: the value", value, 1, _INT32_MAX),
        "periodSeconds": check_integer(f"scaling.{factory}: period_seconds", period, 1, MAX_PERIOD),
    }
    return cast("V2HPAScalingPolicy", client_model("V2HPAScalingPolicy").model_validate(found))


def _to_manifest(subject: str, model: str, value: Any) -> Manifest:
    if not isinstance(value, client_model(model)):
        raise ConfigError(f"{subject}: must be a {model}, not {value!r:.60}")
    return write_model(value)
