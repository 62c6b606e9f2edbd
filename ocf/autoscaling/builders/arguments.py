"""Checks of the arguments of the factories."""

from typing import Any

from ocf.errors import ConfigError, QuantityError
from ocf.objects import Quantity
from ocf.objects.name_validation import NameRule

__all__ = ["check_integer", "check_name", "check_quantity"]


def check_integer(subject: str, value: Any, least: int, most: int, unit: str = "") -> int:
    """Return an integer, checked to be within bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        counted = f", {unit}" if unit else ""
        raise ConfigError(f"{subject} must be an integer from {least} to {most}{counted}, not {value!r:.60}")
    return value


def check_quantity(subject: str, value: Any, *, zero_allowed: bool = False) -> str:
    """Return a quantity as it was written, checked to be positive.

    Args:
        zero_allowed: Whether it may be zero.
    """
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ConfigError(f"{subject} must be a text or an integer, not {value!r:.60}")
    try:
        quantity = Quantity.parse(value)
    except QuantityError as error:
        raise ConfigError(f"{subject}: {error}") from None
    if quantity.nano < 0 or not (quantity.nano or zero_allowed):
        raise ConfigError(f"{subject} must be {'zero or more' if zero_allowed else 'positive'}, not {value!r:.60}")
    return str(value)


def check_name(subject: str, value: Any, rule: NameRule) -> str:
    """Return a text, checked by a name rule."""
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{subject} must be a text that is not empty, not {value!r:.60}")
    problems = rule(value)
    if problems:
        raise ConfigError(f"{subject} {value!r:.60}: {'; '.join(problems)}")
    return value
