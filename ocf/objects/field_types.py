"""Field types and the base of the models of files that users write."""

import inspect
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from ocf.objects.durations import format_duration, parse_duration
from ocf.objects.quantity import Quantity

__all__ = ["Amount", "Count", "FileModel", "Milli", "Period", "PositivePeriod"]

_ZERO: Final = timedelta()
_ARGUMENT: Final = re.compile(r"^    (\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)


class FileModel(BaseModel):
    """Base of the models of a file: immutable, camelCase keys, no unknown fields.

    The JSON schema of a model has the descriptions of its docstring, and no titles, which would only repeat names.
    """

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True, frozen=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the JSON schema, see the class."""
        schema = handler.resolve_ref_schema(handler(core_schema))
        texts = {
            name: text for each in reversed(cls.__mro__) for name, text in _arguments(each.__dict__.get("__doc__"))
        }
        schema.pop("title", None)
        schema["description"] = _plain(inspect.cleandoc(cls.__doc__ or "").split("\n\n", 1)[0])
        for name, field in cls.model_fields.items():
            described = schema["properties"][field.alias or name]
            described.pop("title", None)
            if name in texts:
                described["description"] = texts[name]
            if isinstance(field.default, timedelta):
                described["default"] = format_duration(field.default)
        return schema


def _arguments(docstring: str | None) -> Iterator[tuple[str, str]]:
    for name, text in _ARGUMENT.findall(inspect.cleandoc(docstring or "")):
        yield name, _plain(text)


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("`", "")


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
