"""Decoding of a definition by the types of the API server, so that each field has the form that its reader expects."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from ocf.errors import ConfigError
from ocf.objects.document_limits import MAX_DEPTH
from ocf.schema.builtin import Anything, ListType, MapType, Scalar, StructType, Type, struct

__all__ = ["decode_schema", "decode_spec"]

_SCHEMA: Final = "JSONSchemaProps"
_SHOWN: Final = 60
_INT64: Final = 2**63


def decode_spec(value: object, place: str) -> dict[str, Any]:
    """Return the spec of a CustomResourceDefinition with the fields that the API server knows, without nulls.

    Args:
        value: The spec.
        place: Where it is, for errors.

    Raises:
        ConfigError: If a value has another type than that of its field, or is not a value of JSON.

    Example:
        >>> decode_spec({"group": 3}, "spec")
        Traceback (most recent call last):
        ocf.errors.ConfigError: spec.group: must be a text, got 3
    """
    found: dict[str, Any] = _decode(value, struct("apiextensions.v1.CustomResourceDefinitionSpec"), place, 0)
    return found


def decode_schema(value: object, place: str) -> dict[str, Any]:
    """Return a structural schema with the keywords that the API server knows, without nulls.

    Args:
        value: The schema.
        place: Where it is, for errors.

    Raises:
        ConfigError: If a value has another type than that of its keyword, or is not a value of JSON.

    Example:
        >>> decode_schema({"type": "integer", "minimum": None, "unknown": 1}, "schema")
        {'type': 'integer'}
    """
    found: dict[str, Any] = _decode(value, struct(f"apiextensions.v1.{_SCHEMA}"), place, 0)
    return found


def _decode(value: Any, kind: Type, place: str, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ConfigError(f"{place[:_SHOWN]}...: must be nested at most {MAX_DEPTH} levels deep")
    if isinstance(kind, StructType):
        # Go decodes null into a struct as a struct without fields.
        given = {} if value is None else _mapping(value, place)
        known = {name: each for name, each in given.items() if name in kind.fields}
        return {
            name: _member(each, name, kind, f"{place}.{name}", depth)
            for name, each in known.items()
            if each is not None
        }
    if isinstance(kind, MapType):
        found = _mapping(value, place)
        return {name: _decode(each, kind.value, f"{place}.{name}", depth + 1) for name, each in found.items()}
    if isinstance(kind, ListType):
        return [_decode(each, kind.item, f"{place}[{at}]", depth + 1) for at, each in enumerate(_list(value, place))]
    return _json(value, place, depth) if isinstance(kind, Anything) else _scalar(value, kind, place)


def _member(value: Any, name: str, kind: StructType, place: str, depth: int) -> Any:
    """Decode a field; the types of the API server do not say that these three of a schema are schemas, too."""
    if kind.name == _SCHEMA and name in {"items", "additionalItems", "additionalProperties"}:
        return value if isinstance(value, bool) and name != "items" else _decode(value, kind, place, depth + 1)
    return _decode(value, kind.fields[name].type, place, depth + 1)


def _json(value: Any, place: str, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ConfigError(f"{place[:_SHOWN]}...: must be nested at most {MAX_DEPTH} levels deep")
    if isinstance(value, Mapping):
        return {name: _json(each, f"{place}.{name}", depth + 1) for name, each in _mapping(value, place).items()}
    if isinstance(value, list | tuple):
        return [_json(each, f"{place}[{at}]", depth + 1) for at, each in enumerate(value)]
    if value is None or isinstance(value, bool):
        return value
    return _text(value, place) if isinstance(value, str) else _number(value, place)


def _scalar(value: Any, kind: Scalar, place: str) -> Any:
    if kind in {Scalar.INT32, Scalar.INT64}:
        if isinstance(value, bool) or not isinstance(value, int) or not -_INT64 <= value < _INT64:
            raise _error(place, "an integer of 64 bits", value)
        return value
    if kind is Scalar.NUMBER:
        return _number(value, place)
    if kind is Scalar.BOOLEAN:
        if not isinstance(value, bool):
            raise _error(place, "true or false", value)
        return value
    return _text(value, place)


def _number(value: Any, place: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _error(place, "a number", value)
    try:
        finite = math.isfinite(value)
    except OverflowError:
        finite = False
    if not finite:
        raise _error(place, "a finite number of 64 bits", value)
    return value


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise _error(place, "a text", value)
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise _error(place, "a text without halves of surrogate pairs", value)
    return value


def _mapping(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _error(place, "an object", value)
    for name in value:
        _text(name, f"{place}: name of a field")
    return value


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise _error(place, "a list", value)
    return list(value)


def _error(place: str, wanted: str, value: Any) -> ConfigError:
    return ConfigError(f"{place}: must be {wanted}, got {_shown(value)}")


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}...")
    if isinstance(value, int) and abs(value) >= 10**_SHOWN:
        return f"a number of {value.bit_length()} bits"
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    return "an object" if isinstance(value, Mapping) else f"a {type(value).__name__}"
