"""Settings that a search varies: a field of the HPA or of the scenario, and the values that it may have."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from ocf.errors import ConfigError
from ocf.objects.paths import FieldPath, format_path
from ocf.objects.yaml_places import split_path

__all__ = ["TunedSetting", "choice_setting", "range_setting"]

_HPA: Final = "spec"
_FIXED: Final = frozenset(
    {"apiVersion", "duration", "hpa", "kind", "load", "metadata", "name", "objectives", "seed", "start"}
)
_MOST_VALUES: Final = 10_000
_PARTS: Final = 20
_NUMBER: Final = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)([A-Za-z]*)")


@dataclass(frozen=True, slots=True)
class TunedSetting:
    """A field and the values that it may have.

    Args:
        path: The field: a path that begins with `spec` is one of the HPA, any other one is of the scenario.
        values: The values, JSON values; None removes the field.
        is_ordered: Whether neighbours in `values` are similar, as in a range of numbers.

    Raises:
        ConfigError: If the path is invalid, the field is an input that all candidates share, or there is no value.

    Example:
        >>> TunedSetting("spec.behavior.scaleUp.selectPolicy", ("Max", "Min")).is_of_hpa
        True
    """

    path: str
    values: tuple[Any, ...]
    is_ordered: bool = False

    def __post_init__(self) -> None:
        steps = split_path(self.path)
        if not steps or format_path(steps) != self.path or not isinstance(steps[0], str):
            raise ConfigError(f"invalid field path {self.path!r}: write for example spec.metrics[0].resource.target")
        if steps[0] in _FIXED:
            example = ": write spec.… for a field of the HPA" if steps[0] == "hpa" else ""
            raise ConfigError(
                f"{self.path}: cannot be searched: all candidates have the same {steps[0]}, or they cannot be"
                f" compared{example}"
            )
        if not self.values:
            raise ConfigError(f"{self.path}: no value given: write at least one")
        if len(self.values) > _MOST_VALUES:
            raise ConfigError(
                f"{self.path}: must have at most {_MOST_VALUES} values, got {len(self.values)}: set a larger step"
            )

    @property
    def steps(self) -> FieldPath:
        """Keys and list positions of the field."""
        return split_path(self.path)

    @property
    def is_of_hpa(self) -> bool:
        """Whether the field is one of the HPA."""
        return self.steps[0] == _HPA


def choice_setting(path: str, values: Iterable[Any]) -> TunedSetting:
    """Return a setting with a list of values.

    Args:
        path: The field.
        values: The values; equal ones count once.

    Raises:
        ConfigError: If the path is invalid, or there is no value.
    """
    found: list[Any] = []
    for each in values:
        # 1 and True are equal in Python, and not in JSON.
        if not any(each == other and type(each) is type(other) for other in found):
            found.append(each)
    return TunedSetting(path, tuple(found))


def range_setting(path: str, first: float | str, last: float | str, step: float | str | None = None) -> TunedSetting:
    """Return a setting with a range of numbers, which may have a unit, such as `15s` or `250m`.

    Args:
        path: The field.
        first: The lowest value.
        last: The highest value, if it is a number of steps from `first`.
        step: The distance of two values; None: 1 between whole numbers, otherwise a twentieth of the range.

    Raises:
        ConfigError: If the path or a number is invalid, units differ, or the range is empty.

    Example:
        >>> range_setting("spec.minReplicas", 2, 8, 2).values
        (2, 4, 6, 8)
        >>> range_setting("controller.tolerance", 0.05, 0.15, 0.05).values
        (0.05, 0.1, 0.15)
        >>> range_setting("controller.downscaleStabilization", "60s", "180s", "60s").values
        ('60s', '120s', '180s')
    """
    low, unit = _number(path, first)
    high, other = _number(path, last)
    if unit != other:
        raise ConfigError(f"{path}: both ends of a range must have the same unit, got {first} and {last}")
    if high < low:
        raise ConfigError(f"{path}: the range is empty: {first} is more than {last}")
    if step is None:
        is_whole = low == low.to_integral_value() and high == high.to_integral_value()
        width = Decimal(1) if is_whole else (high - low) / _PARTS or Decimal(1)
    else:
        width, other = _number(path, step)
        if other not in {unit, ""} or width <= 0:
            raise ConfigError(f"{path}: the step must be more than 0, in the unit of the range, got {step}")
    # In decimal numbers, so that a step of 0.05 leads to 0.15.
    count = int((high - low) / width) + 1
    if count > _MOST_VALUES:
        raise ConfigError(f"{path}: must have at most {_MOST_VALUES} values, got {count}: set a larger step")
    return TunedSetting(path, tuple(_value(low + width * number, unit) for number in range(count)), is_ordered=True)


def _number(path: str, value: float | str) -> tuple[Decimal, str]:
    found = None if isinstance(value, bool) else _NUMBER.fullmatch(str(value))
    if found is None:
        raise ConfigError(
            f"{path}: must be a number, with or without a unit, such as 60, 0.1, 15s or 250m, got {value!r}"
        )
    return Decimal(found[1]), found[2]


def _value(number: Decimal, unit: str) -> Any:
    is_whole = number == number.to_integral_value()
    if unit:
        return f"{number.normalize():f}{unit}"
    return int(number) if is_whole else float(number)
