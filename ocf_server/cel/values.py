"""Values of CEL, converted from manifests by their schemas.

Numbers, strings and booleans are those of Python, a timestamp is an aware `datetime`, a duration a `timedelta`, a list
a `list`, and a map or an object a `dict`. A value that does not match its schema becomes an `InvalidValue`; an
expression that uses it fails.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ocf.objects.data_validation import decode_base64
from ocf.objects.timestamps import parse_rfc3339
from ocf_server.cel.types import with_head

__all__ = [
    "EvaluationError",
    "InvalidValue",
    "Items",
    "Opaque",
    "StructValue",
    "TypeName",
    "Uint",
    "equal",
    "kind_name",
    "read_duration",
    "read_instant",
    "require_valid",
    "value_of",
]

_Schema = Mapping[str, Any]


class EvaluationError(Exception):
    """An expression cannot be evaluated; the text is that of a real API server."""


@dataclass(frozen=True, slots=True)
class InvalidValue:
    """A value that does not match its schema."""

    text: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that expressions can only pass to the functions of its library."""

    kind: str


class Uint(int):
    """An unsigned integer."""


@dataclass(frozen=True, slots=True)
class TypeName(Opaque):
    """A type as a value."""

    name: str
    kind: str = field(default="type", init=False)


def require_valid(value: Any) -> Any:
    """Return a value after a check that it matches its schema.

    Raises:
        EvaluationError: If it does not match.
    """
    if isinstance(value, InvalidValue):
        raise EvaluationError(value.text)
    return value


class StructValue(dict[str, Any]):
    """The value of an object literal."""

    def __init__(self, kind: str, fields: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self.kind = kind


class Items(list[Any]):
    """The items of a list with `x-kubernetes-list-type` `set` or `map`.

    Args:
        keys: The key fields of a `map`; empty for a `set`.
    """

    def __init__(self, values: list[Any], keys: tuple[str, ...] = ()) -> None:
        super().__init__(values)
        self.keys = keys

    def key(self, item: Any) -> str:
        """Return the key of an item."""
        if self.keys and isinstance(item, dict):
            return repr([item.get(name) for name in self.keys])
        return repr(item)

    def joined(self, others: list[Any]) -> "Items":
        """Return the list with more items; an item with an existing key replaces the value at its position."""
        found = {self.key(item): item for item in self}
        return Items([*(found | {self.key(item): item for item in others}).values()], self.keys)

    def same(self, others: list[Any]) -> bool:
        """Return whether another list contains the same items in any order."""
        by_key = {self.key(item): item for item in self}
        keyed = [(self.key(item), item) for item in others]
        return len(self) == len(others) and all(key in by_key and equal(by_key[key], item) for key, item in keyed)


def kind_name(value: Any) -> str:
    """Return the name of a value's type."""
    if isinstance(value, Opaque | StructValue):
        return value.kind
    return _NAMES.get(type(value), "map" if isinstance(value, dict) else "list")


_NAMES: Final[Mapping[type, str]] = {
    bool: "bool",
    int: "int",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    datetime: "timestamp",
    timedelta: "duration",
    Uint: "uint",
}


def equal(left: Any, right: Any) -> bool:
    """Return whether two values are equal; numbers of different types are compared by value.

    Raises:
        EvaluationError: If one of them does not match its schema.
    """
    for side in (left, right):
        if isinstance(side, InvalidValue):
            raise EvaluationError(side.text)
    if isinstance(left, Items) and isinstance(right, list):
        return left.same(right)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        if kind_name(left) != kind_name(right):
            return False
        return left.keys() == right.keys() and all(equal(value, right[name]) for name, value in left.items())
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def value_of(given: Any, schema: _Schema) -> Any:
    """Convert a value of a manifest to a value of CEL.

    Example:
        >>> value_of({"wait": "90s", "share": 1}, {"type": "object", "properties": {
        ...     "wait": {"type": "string", "format": "duration"}, "share": {"type": "number"}}})
        {'wait': datetime.timedelta(seconds=90), 'share': 1.0}
    """
    if given is None:
        return None if schema.get("nullable") else InvalidValue("invalid data, got null for schema with nullable=false")
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(given, str) or (isinstance(given, int) and not isinstance(given, bool)):
            return given
        return InvalidValue("invalid data, expected XIntOrString value to be either a string or integer")
    kind = schema.get("type")
    return _READERS[kind](given, schema) if kind in _READERS else given


def _object(given: Any, schema: _Schema) -> Any:
    if not isinstance(given, dict):
        return InvalidValue("invalid data, expected a map for the provided schema with type=object")
    if schema.get("x-kubernetes-embedded-resource"):
        schema = with_head(schema)
    known, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    other = extra if isinstance(extra, dict) else None
    if known:
        # A null field of an object counts as absent.
        given = {name: item for name, item in given.items() if item is not None}
    below = {name: known.get(name, other) for name in given}
    return {name: item if (under := below[name]) is None else value_of(item, under) for name, item in given.items()}


def _array(given: Any, schema: _Schema) -> Any:
    if not isinstance(given, list):
        return InvalidValue("invalid data, expected an array for the provided schema with type=array")
    items = [value_of(item, schema.get("items") or {}) for item in given]
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return Items(items)
        case "map":
            return Items(items, tuple(schema.get("x-kubernetes-list-map-keys") or ()))
        case _:
            return items


def _string(given: Any, schema: _Schema) -> Any:
    if not isinstance(given, str):
        return InvalidValue(
            f"invalid data, expected string, got {_GO_NAMES.get(type(given), 'map[string]interface {}')}"
        )
    form = schema.get("format") or ""
    if form not in _FORMS:
        return given
    description, read = _FORMS[form]
    try:
        return read(given)
    except ValueError as error:
        return InvalidValue(f"Invalid {description} {given}: {error}")


def _number(given: Any, _: _Schema) -> Any:
    if isinstance(given, bool) or not isinstance(given, int | float):
        return InvalidValue(
            f"invalid data, expected float, got {_GO_NAMES.get(type(given), 'map[string]interface {}')}"
        )
    return float(given)


def _integer(given: Any, _: _Schema) -> Any:
    if isinstance(given, bool) or not isinstance(given, int):
        return InvalidValue(f"invalid data, expected int, got {_GO_NAMES.get(type(given), 'map[string]interface {}')}")
    return given


def _boolean(given: Any, _: _Schema) -> Any:
    return given if isinstance(given, bool) else InvalidValue("invalid data, expected bool")


_GO_NAMES: Final = {bool: "bool", int: "int64", float: "float64", str: "string", list: "[]interface {}"}
_READERS: Final[Mapping[Any, Callable[[Any, _Schema], Any]]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "number": _number,
    "integer": _integer,
    "boolean": _boolean,
}

_UNITS: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
    "sec": 1.0,
    "min": 60.0,
    "hour": 3600.0,
    "day": 86400.0,
    "week": 604800.0,
}
_PART: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-zµ]+)\s*")
_WHOLE: Final = re.compile(rf"[+-]?(0|({_PART.pattern})+)")


def read_instant(text: str) -> datetime:
    """Parse a timestamp in the format of RFC 3339.

    Raises:
        ValueError: If the text is not a timestamp.
    """
    return parse_rfc3339(text, lower_case=True, optional_seconds=True).astimezone(UTC)


def read_duration(text: str) -> timedelta:
    """Parse a duration, `1h30m` or `2 days`, with an optional sign.

    Raises:
        ValueError: If the text is not a duration.
    """
    if not _WHOLE.fullmatch(text):
        raise ValueError(f'invalid duration "{text}"')
    seconds = 0.0
    for number, unit in _PART.findall(text):
        size = _UNITS.get(unit, _UNITS.get(unit.removesuffix("s")))
        if size is None:
            raise ValueError(f'unknown unit "{unit}" in duration "{text}"')
        seconds += float(number) * size
    if seconds > timedelta.max.total_seconds():
        raise ValueError(f'invalid duration "{text}": longer than {timedelta.max.days} days')
    return timedelta(seconds=-seconds if text.startswith("-") else seconds)


def _date(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise ValueError(f'parsing time "{text}" as "2006-01-02": cannot parse "{text}" as "2006"') from None


_FORMS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "byte": ("byte formatted string", decode_base64),
    "date": ("date formatted string", _date),
    "date-time": ("date-time formatted string", read_instant),
    "duration": ("duration", read_duration),
}
