"""Field types and the base of the models of files that users write."""

from datetime import timedelta
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema
from pydantic.alias_generators import to_camel

from ocf.objects.durations import format_duration, parse_duration
from ocf.objects.quantity import Quantity

__all__ = ["Amount", "Count", "FileModel", "Milli", "Period", "PositivePeriod"]

_ZERO: Final = timedelta()


class FileModel(BaseModel):
    """Base of the models of a file: immutable, camelCase keys, no unknown fields."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True, frozen=True)


def _period(value: object) -> object:
    return parse_duration(value) if isinstance(value, str) else value


def _not_negative(period: timedelta) -> timedelta:
    if period < _ZERO:
        raise ValueError("must be a duration of at least 0s")
    return period


def _positive(period: timedelta) -> timedelta:
    if period <= _ZERO:
        raise ValueError("must be a duration of more than 0s")
    return period


def _milli(value: object) -> int:
    return _quantity(value).milli


def _text_of_milli(value: int) -> str:
    return str(Quantity.parse(f"{value}m"))


def _amount(value: object) -> str:
    return str(_quantity(value))


def _quantity(value: object) -> Quantity:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return Quantity.parse(value)
    raise ValueError(f"must be a quantity such as 250m or 1Gi, not {type(value).__name__}")


_PERIOD_SCHEMA: Final = WithJsonSchema(
    {
        "anyOf": [
            {"type": "string", "pattern": r"^(0|([0-9.]+(h|ms|m|s|us|µs|ns))+)$"},
            {"type": "number", "minimum": 0, "description": "Seconds."},
        ],
        "examples": ["15s", "1m30s", "2h"],
    }
)
_QUANTITY_SCHEMA: Final = WithJsonSchema(
    {
        "anyOf": [
            {"type": "string", "pattern": r"^[+-]?[0-9.]+([eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?$"},
            {"type": "number"},
        ],
        "examples": ["250m", "1.5", "512Mi"],
    }
)

_AS_TEXT: Final = PlainSerializer(format_duration, return_type=str, when_used="json")
_AS_QUANTITY: Final = PlainSerializer(_text_of_milli, return_type=str, when_used="json")

Period = Annotated[timedelta, BeforeValidator(_period), AfterValidator(_not_negative), _AS_TEXT, _PERIOD_SCHEMA]
"""A duration in Go's format, such as `1m30s`, or a number of seconds; not negative."""
PositivePeriod = Annotated[timedelta, BeforeValidator(_period), AfterValidator(_positive), _AS_TEXT, _PERIOD_SCHEMA]
"""A duration in Go's format, or a number of seconds; more than 0."""
Milli = Annotated[int, BeforeValidator(_milli), _AS_QUANTITY, _QUANTITY_SCHEMA]
"""A quantity, such as `250m` or `1Gi`, in thousandths."""
Amount = Annotated[str, BeforeValidator(_amount), _QUANTITY_SCHEMA]
"""A quantity, such as `250m` or `1Gi`, as text in the notation of the API server."""
Count = Annotated[int, Field(ge=0)]
"""A whole number that is not negative."""
