"""Short factories for how fast an autoscaler may scale: policies, rules, behavior.

The models of the client take any number and any text; a policy of no pods or a window of a day is refused by the API
server, far from the line that was wrong. A factory refuses at the call.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, cast

from ocf.autoscaling.builders.arguments import check_integer, check_quantity
from ocf.autoscaling.validation.behavior import MAX_PERIOD, MAX_WINDOW
from ocf.errors import ConfigError
from ocf.objects import Manifest, client_model, write_model

if TYPE_CHECKING:
    from kubernetes.client import V2HorizontalPodAutoscalerBehavior, V2HPAScalingPolicy, V2HPAScalingRules

__all__ = ["Select", "behavior", "disabled", "percent", "pods", "rules"]

_INT32_MAX: Final = 2**31 - 1
_DEFAULT_PERIOD: Final = 15
"""What the API server's own policies use."""


class Select(StrEnum):
    """Which of several policies counts."""

    MAX = "Max"
    """The one that allows the largest change; the default."""

    MIN = "Min"
    """The one that allows the smallest change."""

    DISABLED = "Disabled"
    """None: no scaling in this direction."""


def pods(count: int, *, period_seconds: int = _DEFAULT_PERIOD) -> V2HPAScalingPolicy:
    """Allow a change by a number of pods.

    Source: https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#scaling-policies.

    Args:
        count: Number of pods, 1 or more.
        period_seconds: Within how many seconds, 1 to 1800.

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
    """Allow a change by a share of the pods that there are; 100 percent up is doubling.

    Source: https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#scaling-policies.

    Args:
        share: Percent, 1 or more.
        period_seconds: Within how many seconds, 1 to 1800.

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
    """Make the rules for one direction; what is not given is left to the API server's defaults.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/.

    Args:
        policies: The policies; without any, the server's own apply.
        select: Which of them counts.
        stabilization_window_seconds: How far back recommendations are looked at, 0 to 3600.
        tolerance: How far the metric may be from its target before anything happens, as a quantity: `"0.05"` is five
            percent. Without one, the controller's setting applies. Needs Kubernetes 1.35, or its feature gate.

    Returns:
        The rules.

    Raises:
        ConfigError: If a value is out of its range, or a policy is none.

    Example:
        >>> rules(pods(2), percent(10), select=Select.MIN, stabilization_window_seconds=300).select_policy
        'Min'
    """
    found: Manifest = {}
    if policies:
        found["policies"] = [_written("scaling.rules: policies", "V2HPAScalingPolicy", each) for each in policies]
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
    """Forbid scaling in one direction.

    Example:
        >>> disabled().select_policy
        'Disabled'
    """
    return rules(select=Select.DISABLED)


def behavior(
    *, up: V2HPAScalingRules | None = None, down: V2HPAScalingRules | None = None
) -> V2HorizontalPodAutoscalerBehavior:
    """Put the rules for both directions together.

    Args:
        up: The rules for scaling up; None for the API server's defaults.
        down: The rules for scaling down; None for the API server's defaults.

    Returns:
        The behavior.

    Raises:
        ConfigError: If one of them is no set of rules.

    Example:
        >>> behavior(down=disabled()).scale_up is None
        True
    """
    given = {"scaleUp": up, "scaleDown": down}
    found = {
        field: _written(f"scaling.behavior: {field}", "V2HPAScalingRules", each)
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


def _written(subject: str, model: str, value: Any) -> Manifest:
    if not isinstance(value, client_model(model)):
        raise ConfigError(f"{subject}: must be a {model}, not {value!r:.60}")
    return write_model(value)
