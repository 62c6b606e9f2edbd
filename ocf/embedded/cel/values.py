"""The values that rules work on: those of manifests, as their schema reads them.

Numbers, texts and truth values are Python's, a moment is an aware `datetime`, a duration a `timedelta`, a list a `list`
and a map or an object a `dict`. What does not fit its schema becomes `Broken`, and a rule that touches it fails.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ocf.embedded.cel.types import with_head
from ocf.objects.quantity import Quantity
from ocf.objects.timestamps import parse_rfc3339

__all__ = ["Broken", "EvaluationError", "Items", "equal", "kind_name", "read_duration", "read_instant", "value_of"]

_Schema = Mapping[str, Any]


class EvaluationError(Exception):
    """A rule cannot be evaluated; its text is what a server says."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A value that is not what its schema says.

    Args:
        text: What is wrong with it.
    """

    text: str


class Items(list[Any]):
    """The items of a list that its schema makes a set, or a map by some of their fields.

    Args:
        values: The items.
        keys: Of a map, the fields that tell them apart; of a set, none.
    """

    def __init__(self, values: list[Any], keys: tuple[str, ...] = ()) -> None:
        super().__init__(values)
        self.keys = keys

    def key(self, item: Any) -> str:
        """Return what tells an item apart."""
        if self.keys and isinstance(item, dict):
            return repr([item.get(name) for name in self.keys])
        return repr(item)

    def joined(self, others: list[Any]) -> "Items":
        """Add items: those that are there already stay where they are, and take the value of the new ones."""
        found = {self.key(item): item for item in self}
        return Items([*(found | {self.key(item): item for item in others}).values()], self.keys)

    def same(self, others: list[Any]) -> bool:
        """Say whether others are the same items, in whatever order."""
        mine = {self.key(item): item for item in self}
        theirs = [(self.key(item), item) for item in others]
        return len(self) == len(others) and all(key in mine and equal(mine[key], item) for key, item in theirs)


def kind_name(value: Any) -> str:
    """Return the name of a value's type."""
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
    Quantity: "kubernetes.Quantity",
}


def equal(left: Any, right: Any) -> bool:
    """Compare two values; numbers of different types are equal if they are the same number.

    Raises:
        EvaluationError: If one of them is not what its schema says.
    """
    for side in (left, right):
        if isinstance(side, Broken):
            raise EvaluationError(side.text)
    if isinstance(left, Items) and isinstance(right, list):
        return left.same(right)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(value, right[name]) for name, value in left.items())
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def value_of(given: Any, schema: _Schema) -> Any:
    """Return a value of a manifest as rules see it.

    Args:
        given: The value.
        schema: Its schema.

    Returns:
        The value for CEL.

    Example:
        >>> value_of({"wait": "90s", "share": 1}, {"type": "object", "properties": {
        ...     "wait": {"type": "string", "format": "duration"}, "share": {"type": "number"}}})
        {'wait': datetime.timedelta(seconds=90), 'share': 1.0}
    """
    if given is None:
        return None if schema.get("nullable") else Broken("invalid data, got null for schema with nullable=false")
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(given, str) or (isinstance(given, int) and not isinstance(given, bool)):
            return given
        return Broken("invalid data, expected XIntOrString value to be either a string or integer")
    kind = schema.get("type")
    return _READERS[kind](given, schema) if kind in _READERS else given


def _object(given: Any, schema: _Schema) -> Any:
    if not isinstance(given, dict):
        return Broken("invalid data, expected a map for the provided schema with type=object")
    if schema.get("x-kubernetes-embedded-resource"):
        schema = with_head(schema)
    known, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    other = extra if isinstance(extra, dict) else None
    if known:
        # Of an object, a field that is null is none.
        given = {name: item for name, item in given.items() if item is not None}
    below = {name: known.get(name, other) for name in given}
    return {name: item if (under := below[name]) is None else value_of(item, under) for name, item in given.items()}


def _array(given: Any, schema: _Schema) -> Any:
    if not isinstance(given, list):
        return Broken("invalid data, expected an array for the provided schema with type=array")
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
        return Broken(f"invalid data, expected string, got {_GO_NAMES.get(type(given), 'map[string]interface {}')}")
    form = schema.get("format") or ""
    if form not in _FORMS:
        return given
    said, read = _FORMS[form]
    try:
        return read(given)
    except (ValueError, OverflowError, binascii.Error) as error:
        return Broken(f"Invalid {said} {given}: {error}")


def _number(given: Any, _: _Schema) -> Any:
    if isinstance(given, bool) or not isinstance(given, int | float):
        return Broken(f"invalid data, expected float, got {_GO_NAMES.get(type(given), 'map[string]interface {}')}")
    return float(given)


def _integer(given: Any, _: _Schema) -> Any:
    if isinstance(given, bool) or not isinstance(given, int):
        return Broken(f"invalid data, expected int, got {_GO_NAMES.get(type(given), 'map[string]interface {}')}")
    return given


def _boolean(given: Any, _: _Schema) -> Any:
    return given if isinstance(given, bool) else Broken("invalid data, expected bool")


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
    """Read a moment as RFC 3339 writes it.

    Raises:
        ValueError: If it is none.
    """
    return parse_rfc3339(text, lower_case=True, optional_seconds=True).astimezone(UTC)


def read_duration(text: str) -> timedelta:
    """Read a duration, `1h30m` or `2 days`; one with a sign as well.

    Raises:
        ValueError: If it is none.
    """
    if not _WHOLE.fullmatch(text):
        raise ValueError(f'invalid duration "{text}"')
    seconds = 0.0
    for number, unit in _PART.findall(text):
        size = _UNITS.get(unit, _UNITS.get(unit.removesuffix("s")))
        if size is None:
            raise ValueError(f'unknown unit "{unit}" in duration "{text}"')
        seconds += float(number) * size
    return timedelta(seconds=-seconds if text.startswith("-") else seconds)


def _date(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)


_FORMS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "byte": ("byte formatted string", base64.b64decode),
    "date": ("date formatted string", _date),
    "date-time": ("date-time formatted string", read_instant),
    "duration": ("duration", read_duration),
}
