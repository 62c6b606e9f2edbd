"""Decoding of built-in objects as the Go structs of the API server decode them.

The API server does not store a built-in object as it was sent: it decodes the object into structs and encodes the
structs again. Undeclared fields are dropped, nulls count as unset, empty values vanish where the struct cannot
distinguish them from unset ones, and fields without `omitempty` appear. Quantities and times get their canonical text.
This module does the same, driven by the types; defaults are set later.
"""

import base64
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from ocf.objects import copy_json
from ocf.objects.data_validation import decode_base64
from ocf.objects.timestamps import format_micro_time, format_time, parse_micro_time, parse_rfc3339
from ocf.schema.builtin import Anything, EmptyValue, Field, ListType, MapType, Scalar, StructType, Type
from ocf_server.api.status_errors import go_shape

__all__ = ["DecodeError", "decode", "unknown_fields"]

_INT_LIMITS: Final = {Scalar.INT32: 2**31, Scalar.INT64: 2**63}
_GO_NAMES: Final = {
    Scalar.TEXT: "string",
    Scalar.INT32: "int32",
    Scalar.INT64: "int64",
    Scalar.NUMBER: "float64",
    Scalar.BOOLEAN: "bool",
    Scalar.BYTES: "[]uint8",
}
_GO_NUMBERS: Final = frozenset({"int32", "int64", "float64"})


class DecodeError(ValueError):
    """A value is of a JSON type that its field cannot hold.

    Args:
        wanted: The Go type of the field; empty if the JSON type is right and only the text is invalid.
        unstructured: The message for a decoded value, where the API server has another one than for JSON; else empty.
    """

    def __init__(self, message: str, wanted: str = "", unstructured: str = "", value: Any = None) -> None:
        super().__init__(message)
        self.wanted = wanted
        self.unstructured = unstructured
        self.value = value


def decode(value: Any, kind: StructType, live: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Decode an object as the structs of the API server would.

    Args:
        value: The object; it is not changed.
        live: An object of the type that is decoded already; parts that the value shares with it are not decoded again.

    Returns:
        A new object that shares nothing with the given one, except the parts taken from `live`.

    Raises:
        DecodeError: If a value is of a wrong JSON type.

    Example:
        >>> from ocf.schema.builtin import struct
        >>> decode({"metadata": {}, "spec": {"replicas": 0, "colour": "red"}}, struct("autoscaling.v1.Scale"))
        {'metadata': {}, 'spec': {}, 'status': {'replicas': 0}}
    """
    if live is None:
        return _struct(value, kind, kind.name, "")
    return _struct_sharing(value, kind, live, "")


def _struct_sharing(value: Any, kind: StructType, live: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Decode an object; parts that are identical with those of a decoded object are taken over."""
    shared: dict[str, Any] = {}
    fresh: dict[str, Any] = {}
    prefix = f"{path}." if path else ""
    for name, item in value.items():
        known, field = live.get(name), kind.fields.get(name)
        if field is None or item is None or not known:
            fresh[name] = item
        # The server changes the metadata of the result, so they must never be shared.
        elif item is known and (path or name != "metadata"):
            shared[name] = item
        elif item and isinstance(item, dict) and isinstance(known, dict) and isinstance(field.type, StructType):
            part = _struct_sharing(item, field.type, known, prefix + name)
            if part or field.presence in _KEEPS_EMPTY:
                shared[name] = part
        else:
            fresh[name] = item
    decoded = _struct(fresh, kind, kind.name, path)
    return {**decoded, **shared}


def _fail(value: Any, owner: str, path: str, wanted: str) -> DecodeError:
    shape = go_shape(value)
    shape = f"number {value}" if shape == "number" and wanted in _GO_NUMBERS else shape
    return DecodeError(
        f"json: cannot unmarshal {shape} into Go struct field {owner}.{path} of type {wanted}", wanted, "", value
    )


def _struct(value: Any, kind: StructType, owner: str, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _fail(value, owner, path, f"v1.{kind.name}")
    out: dict[str, Any] = {}
    prefix = f"{path}." if path else ""
    fields = kind.fields
    for name, item in value.items():
        field = fields.get(name)
        if field is None:
            if kind.extra is not None:
                out[name] = copy_json(item)
        elif item is not None:
            # Most values are texts of text fields, which need no function.
            decoded = item if item.__class__ is field.exact else _member(item, name, kind, prefix + name)
            # An empty text of a number or a text is not its zero, which is a number.
            if decoded or field.presence in _KEEPS_EMPTY or field.type is Scalar.INT_OR_TEXT:
                out[name] = decoded
    for name, field in _always(kind):
        if name not in out:
            out[name] = _absent(field)
    return out


_SCHEMA_UNIONS: Final = frozenset({"items", "additionalItems", "additionalProperties"})
"""Fields of a JSONSchemaProps whose value is a schema, or something else: a list of schemas, or a boolean."""


def _member(value: Any, name: str, kind: StructType, path: str) -> Any:
    """Decode the value of a field."""
    if name not in _SCHEMA_UNIONS or kind.name != "JSONSchemaProps":
        return _value(value, kind.fields[name].type, kind.name, path)
    if isinstance(value, dict):
        return _struct(value, kind, kind.name, path)
    return [_struct(item, kind, kind.name, path) for item in value] if isinstance(value, list) else value


def unknown_fields(value: Any, kind: Type, path: str = "") -> list[str]:
    """Return the paths of fields that a type does not declare.

    Returns:
        The paths, for example `spec.template.spec.containers[0].colour`, in the order of the fields in the value.

    Example:
        >>> from ocf.schema.builtin import struct
        >>> unknown_fields({"spec": {"colour": "red"}}, struct("apps.v1.Deployment"))
        ['spec.colour']
    """
    if isinstance(kind, ListType) and isinstance(value, list):
        pairs = ((f"{path}[{index}]", item, kind.item) for index, item in enumerate(value))
    elif isinstance(kind, MapType) and isinstance(value, dict):
        pairs = ((f"{path}.{name}", item, kind.value) for name, item in value.items())
    elif isinstance(kind, StructType) and isinstance(value, dict):
        return _unknown_in_struct(value, kind, f"{path}." if path else "")
    else:
        return []
    return [found for where, item, below in pairs for found in unknown_fields(item, below, where)]


def _unknown_in_struct(value: dict[str, Any], kind: StructType, prefix: str) -> list[str]:
    found: list[str] = []
    for name, item in value.items():
        field = kind.fields.get(name)
        if field is not None:
            found.extend(unknown_fields(item, field.type, prefix + name))
        elif kind.extra is None:
            found.append(prefix + name)
    return found


@lru_cache(maxsize=1024)
def _always(kind: StructType) -> tuple[tuple[str, Field], ...]:
    return tuple((name, field) for name, field in kind.fields.items() if field.presence in _ALWAYS_PRESENT)


_ALWAYS_PRESENT: Final = frozenset({EmptyValue.ALWAYS, EmptyValue.NULL})
_KEEPS_EMPTY: Final = frozenset({EmptyValue.AS_SENT, EmptyValue.NULL})


def _absent(field: Field) -> Any:
    """Return the value of a field that is always present and was not sent."""
    return None if field.presence is EmptyValue.NULL else _zero(field.type)


def _zero(kind: Type) -> Any:
    """Return the empty value of a type."""
    if isinstance(kind, StructType):
        return {name: _absent(field) for name, field in _always(kind)}
    return _ZEROS.get(kind) if isinstance(kind, Scalar) else None


_ZEROS: Final = {
    Scalar.TEXT: "",
    Scalar.INT32: 0,
    Scalar.INT64: 0,
    Scalar.NUMBER: 0,
    Scalar.BOOLEAN: False,
    Scalar.QUANTITY: "0",
    Scalar.INT_OR_TEXT: 0,
}


def _value(value: Any, kind: Type, owner: str, path: str) -> Any:
    if isinstance(kind, Scalar):
        return _SCALARS[kind](value, kind, owner, path)
    if isinstance(kind, StructType):
        return _struct(value, kind, owner, path)
    if isinstance(kind, ListType):
        if not isinstance(value, list):
            raise _fail(value, owner, path, f"[]{_go_name(kind.item)}")
        # An empty list counts as none, which is dropped or written as null.
        return [_item(item, kind.item, owner, path) for item in value] or None
    if isinstance(kind, MapType):
        if not isinstance(value, dict):
            raise _fail(value, owner, path, f"map[string]{_go_name(kind.value)}")
        return {name: _item(item, kind.value, owner, path) for name, item in value.items()}
    return copy_json(value)


def _item(value: Any, kind: Type, owner: str, path: str) -> Any:
    if value is None and kind is Scalar.BYTES:
        return ""
    # In Go, a null in a list leaves the zero of the item there.
    return _zero(kind) if value is None and not isinstance(kind, Anything) else _value(value, kind, owner, path)


def _go_name(kind: Type) -> str:
    if isinstance(kind, StructType):
        return f"v1.{kind.name}"
    return _GO_NAMES.get(kind, "string") if isinstance(kind, Scalar) else "interface {}"


def _text(value: Any, kind: Scalar, owner: str, path: str) -> Any:
    if isinstance(value, str):
        return value
    raise _fail(value, owner, path, _GO_NAMES[kind])


def _bytes(value: Any, kind: Scalar, owner: str, path: str) -> Any:
    text = _text(value, kind, owner, path)
    try:
        return base64.b64encode(decode_base64(text)).decode()
    except ValueError as error:
        raise DecodeError(str(error), unstructured=f"error decoding from json: {error}") from error


def _integer(value: Any, kind: Scalar, owner: str, path: str) -> Any:
    limit = _INT_LIMITS[kind]
    if isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit:
        return value
    raise _fail(value, owner, path, _GO_NAMES[kind])


def _number(value: Any, kind: Scalar, owner: str, path: str) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    raise _fail(value, owner, path, _GO_NAMES[kind])


def _boolean(value: Any, kind: Scalar, owner: str, path: str) -> Any:
    if isinstance(value, bool):
        return value
    raise _fail(value, owner, path, _GO_NAMES[kind])


def _int_or_text(value: Any, _kind: Scalar, owner: str, path: str) -> Any:
    if isinstance(value, str):
        return value
    return _integer(value, Scalar.INT32, owner, path)


def _quantity(value: Any, _kind: Scalar, owner: str, path: str) -> Any:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise _fail(value, owner, path, "resource.Quantity")
    try:
        return canonical_quantity(str(value))
    except ValueError as error:
        raise DecodeError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ) from error


@lru_cache(maxsize=4096)
def canonical_quantity(text: str) -> str:
    """Return the canonical text of a quantity.

    Args:
        text: A quantity, for example `0.5`.

    Returns:
        The same quantity as the API server writes it, for example `500m`.

    Raises:
        ValueError: If the text is not a quantity.
    """
    from ocf.objects.quantity import Quantity

    return str(Quantity.parse(text))


def _time(value: Any, kind: Scalar, owner: str, path: str) -> Any:
    if not isinstance(value, str):
        error = _fail(value, owner, path, "string")
        error.unstructured = f"json: cannot unmarshal {go_shape(value)} into Go value of type string"
        raise error
    if not value:
        return None
    try:
        if kind is Scalar.TIME:
            return format_time(parse_rfc3339(value, comma=True))
        return format_micro_time(parse_micro_time(value))
    except ValueError as error:
        raise DecodeError(str(error), unstructured=str(error)) from error


_SCALARS: Final[Mapping[Scalar, Callable[[Any, Scalar, str, str], Any]]] = {
    Scalar.TEXT: _text,
    Scalar.INT32: _integer,
    Scalar.INT64: _integer,
    Scalar.NUMBER: _number,
    Scalar.BOOLEAN: _boolean,
    Scalar.BYTES: _bytes,
    Scalar.TIME: _time,
    Scalar.MICRO_TIME: _time,
    Scalar.QUANTITY: _quantity,
    Scalar.INT_OR_TEXT: _int_or_text,
}
