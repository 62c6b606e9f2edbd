"""Settings of the controller, and the overrides of a single autoscaler.

`ocf.autoscaling.algorithm.Settings` only rejects what no computation can use. A running controller needs more: periods
and windows of zero are rejected, too.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from ocf.autoscaling.algorithm import Settings
from ocf.errors import ConfigError, QuantityError
from ocf.objects import Quantity

__all__ = ["check_settings", "override_settings"]

_POSITIVE: Final = ("sync_period", "downscale_stabilization", "cpu_initialization_period", "initial_readiness_delay")
_NANO: Final = 10**9


def check_settings(settings: Settings) -> Settings:
    """Check that every period is positive.

    Args:
        settings: The settings.

    Returns:
        The same settings.

    Raises:
        ConfigError: If a period is not positive; the message has all of them.

    Example:
        >>> check_settings(Settings(downscale_stabilization=timedelta(0)))
        Traceback (most recent call last):
        ocf.errors.ConfigError: downscale_stabilization must be more than 0 s, got 0 s
    """
    wrong = [name for name in _POSITIVE if getattr(settings, name) <= timedelta(0)]
    if wrong:
        problems = [
            f"{name} must be more than 0 s, got {getattr(settings, name).total_seconds():g} s" for name in wrong
        ]
        raise ConfigError("; ".join(problems))
    return settings


def override_settings(settings: Settings, overrides: Mapping[str, Any] | None) -> Settings:
    """Return the settings of one autoscaler.

    Args:
        settings: The settings of the controller.
        overrides: `spec.settings` of an autoscaler of our own kind; None if it has none.

    Returns:
        The settings of the controller with the overrides.

    Raises:
        ConfigError: If a value is out of range, or not a number.

    Example:
        >>> override_settings(Settings(), {"syncPeriodSeconds": 5, "tolerance": "50m"}).tolerance
        0.05
    """
    if not overrides:
        return settings
    changes = {}
    for field, (name, read) in _FIELDS.items():
        value = overrides.get(field)
        if value is not None:
            try:
                changes[name] = read(value)
            except (QuantityError, TypeError) as error:
                raise ConfigError(f"spec.settings.{field}: {error}") from error
    return check_settings(replace(settings, **changes))


def _seconds(value: Any) -> timedelta:
    return timedelta(seconds=value)


def _number(value: Any) -> float:
    return Quantity.parse(value).nano / _NANO


_FIELDS: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "syncPeriodSeconds": ("sync_period", _seconds),
    "tolerance": ("tolerance", _number),
    "downscaleStabilizationSeconds": ("downscale_stabilization", _seconds),
    "cpuInitializationPeriodSeconds": ("cpu_initialization_period", _seconds),
    "initialReadinessDelaySeconds": ("initial_readiness_delay", _seconds),
    "scaleUpLimitFactor": ("scale_up_limit_factor", _number),
    "scaleUpLimitMinimum": ("scale_up_limit_minimum", _number),
}
