"""Field types of the models of a scenario.

Each has bounds beyond which a number means nothing in a simulation, and would overflow somewhere in it.
"""

from datetime import datetime, timedelta
from typing import Annotated, Final

from pydantic import AfterValidator, AwareDatetime, Field

from ocf.objects.field_types import FileModel
from ocf.objects.field_types import Milli as _SignedMilli
from ocf.objects.field_types import Period as _Period
from ocf.objects.field_types import PositivePeriod as _PositivePeriod

__all__ = ["Fraction", "Instant", "Milli", "Model", "Period", "Positive", "PositivePeriod", "Rate"]

_MOST: Final = 1e12
_LEAST: Final = 1e-6
_LONGEST: Final = timedelta(days=3650)
_SHORTEST: Final = timedelta(milliseconds=1)
_YEARS: Final = (1970, 2200)


class Model(FileModel):
    """Base of all models of a scenario."""


def _not_too_long(period: timedelta) -> timedelta:
    if period > _LONGEST:
        raise ValueError(f"must be a duration of at most {_LONGEST.days * 24}h")
    return period


def _not_too_short(period: timedelta) -> timedelta:
    if period < _SHORTEST:
        raise ValueError("must be a duration of at least 1ms")
    return period


def _not_too_small(number: float) -> float:
    if number < _LEAST:
        raise ValueError(f"must be at least {_LEAST:f}")
    return number


def _of_these_years(instant: datetime) -> datetime:
    first, last = _YEARS
    if not first <= instant.year <= last:
        raise ValueError(f"must be an instant of the years {first} to {last}")
    return instant


Milli = Annotated[_SignedMilli, Field(ge=0, le=10**18)]
"""A quantity, such as `250m` or `1Gi`, in thousandths; not negative."""
Rate = Annotated[float, Field(ge=0, le=_MOST, allow_inf_nan=False)]
"""A number that is not negative, of at most 10^12."""
Positive = Annotated[float, Field(gt=0, le=_MOST, allow_inf_nan=False), AfterValidator(_not_too_small)]
"""A number from 10^-6 to 10^12."""
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A number between 0 and 1."""
Period = Annotated[_Period, AfterValidator(_not_too_long)]
"""A duration in Go's format, such as `1m30s`, or a number of seconds; not negative, and at most ten years."""
PositivePeriod = Annotated[_PositivePeriod, AfterValidator(_not_too_long), AfterValidator(_not_too_short)]
"""A duration in Go's format, or a number of seconds; from a millisecond to ten years."""
Instant = Annotated[AwareDatetime, AfterValidator(_of_these_years)]
"""An instant with a time zone, in the years 1970 to 2200."""
