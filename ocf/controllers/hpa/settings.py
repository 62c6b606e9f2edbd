"""Settings of a single autoscaler: those of the controller, with its own overrides."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from ocf.autoscaling.algorithm import Settings
from ocf.errors import ConfigError, QuantityError
from ocf.objects import Quantity

__all__ = ["override_settings"]

_NANO: Final = 10**9


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
            except QuantityError as error:
                raise ConfigError(f"spec.settings.{field}: {error}") from error
            except TypeError as error:
                seen = type(value).__name__
                raise ConfigError(f"spec.settings.{field}: must be a number, got a value of type {seen}") from error
    return replace(settings, **changes)


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
