"""Settings: what an operator of the controller may set, and what one autoscaler says instead.

The pure settings (`ocf.autoscaling.algorithm.Settings`) only refuse what no computation can use. A controller that runs
is held to more: a window or a period of nothing is refused, as it would never hold or always suspect.
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
    """Demand what a controller that runs needs: every period is more than nothing.

    Args:
        settings: The settings.

    Returns:
        The same settings.

    Raises:
        ConfigError: If a period is not positive; names all of them.

    Example:
        >>> check_settings(Settings(downscale_stabilization=timedelta(0)))
        Traceback (most recent call last):
        ocf.errors.ConfigError: downscale_stabilization must be more than 0 s, got 0 s
    """
    wrong = [name for name in _POSITIVE if getattr(settings, name) <= timedelta(0)]
    if wrong:
        told = (f"{name} must be more than 0 s, got {getattr(settings, name).total_seconds():g} s" for name in wrong)
        raise ConfigError("; ".join(told))
    return settings


def override_settings(settings: Settings, said: Mapping[str, Any] | None) -> Settings:
    """Return the settings for one autoscaler.

    Args:
        settings: The controller's.
        said: `spec.settings` of an autoscaler of our own kind; None where it has none.

    Returns:
        The controller's settings with what the autoscaler says instead.

    Raises:
        ConfigError: If a value is out of its range, or no number.

    Example:
        >>> override_settings(Settings(), {"syncPeriodSeconds": 5, "tolerance": "50m"}).tolerance
        0.05
    """
    if not said:
        return settings
    changes = {}
    for field, (name, read) in _FIELDS.items():
        value = said.get(field)
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
