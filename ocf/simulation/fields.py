"""Field types of the models of a scenario."""

from datetime import timedelta
from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ocf.objects import Quantity
from ocf.objects.durations import parse_duration

__all__ = ["Fraction", "Milli", "Model", "Period", "Positive", "PositivePeriod", "Rate"]

_ZERO: Final = timedelta()


class Model(BaseModel):
    """Base of all models of a scenario: immutable, camelCase keys, no unknown fields."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True, frozen=True)


def _period(value: object) -> object:
    return parse_duration(value) if isinstance(value, str) else value


def _milli(value: object) -> object:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return Quantity.parse(value).milli
    return value


Period = Annotated[timedelta, BeforeValidator(_period), Field(ge=_ZERO)]
"""A duration in Go's format, such as `1m30s`; not negative."""
PositivePeriod = Annotated[timedelta, BeforeValidator(_period), Field(gt=_ZERO)]
"""A duration in Go's format, more than 0."""
Milli = Annotated[int, BeforeValidator(_milli), Field(ge=0)]
"""A quantity, such as `250m` or `1Gi`, in thousandths; not negative."""
Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A finite number that is not negative."""
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""A finite number of more than 0."""
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A number between 0 and 1."""
