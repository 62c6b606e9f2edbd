"""OpenAPI 2.0 as protobuf, which clients written in Go ask for.

The messages are those of `openapi.v2` in github.com/google/gnostic-models. A document of this server contains schemas
and no paths, so only the messages of schemas are written.
"""

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

__all__ = ["CONTENT_TYPE", "write_document"]

CONTENT_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_VARINT, _FIXED64, _BYTES = 0, 1, 2
_TEXTS: Final = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13, "discriminator": 26}
_DOUBLES: Final = {"multipleOf": 6, "maximum": 7, "minimum": 9}
_INTEGERS: Final = {
    "exclusiveMaximum": 8,
    "exclusiveMinimum": 10,
    "maxLength": 11,
    "minLength": 12,
    "maxItems": 14,
    "minItems": 15,
    "uniqueItems": 16,
    "maxProperties": 17,
    "minProperties": 18,
    "readOnly": 27,
}
_DEFAULT, _REQUIRED, _ENUM, _ADDITIONAL, _TYPE, _ITEMS, _ALL_OF, _PROPERTIES, _EXAMPLE, _EXTENSION = (
    5,
    19,
    20,
    21,
    22,
    23,
    24,
    25,
    29,
    31,
)
_SWAGGER, _INFO, _PATHS, _DEFINITIONS = 1, 2, 8, 9

Json = Mapping[str, Any]


def write_document(document: Json) -> bytes:
    """Encode a document.

    Args:
        document: OpenAPI 2.0, with definitions and without paths.

    Returns:
        The message `openapi.v2.Document`.

    Example:
        >>> write_document({"swagger": "2.0", "info": {}, "definitions": {}}).hex()
        '0a03322e30120042004a00'
    """
    info = document["info"]
    titles = _text(1, info.get("title", "")) + _text(2, info.get("version", ""))
    definitions = b"".join(_named(1, name, _schema(schema)) for name, schema in document["definitions"].items())
    parts = (_nested(_INFO, titles), _nested(_PATHS, b""), _nested(_DEFINITIONS, definitions))
    return _text(_SWAGGER, document["swagger"]) + b"".join(parts)


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:  # noqa: PLR2004 (seven bits in each byte)
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _nested(number: int, body: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(body)) + body


def _text(number: int, text: str) -> bytes:
    return _nested(number, text.encode()) if text else b""


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(value) if value else b""


def _double(number: int, value: float) -> bytes:
    return _varint(number << 3 | _FIXED64) + struct.pack("<d", value) if value else b""


def _any(number: int, value: Any) -> bytes:
    """Encode any value; the message has it as YAML, of which JSON is a part."""
    return _nested(number, _text(2, json.dumps(value, separators=(",", ":")) + "\n"))


def _named(number: int, name: str, body: bytes) -> bytes:
    return _nested(number, _text(1, name) + _nested(2, body))


def _schema(schema: Json) -> bytes:
    return b"".join(_fields(schema))


def _fields(schema: Json) -> Iterator[bytes]:
    for key, value in schema.items():
        if key in _TEXTS and isinstance(value, str):
            yield _text(_TEXTS[key], value)
        elif key in _DOUBLES:
            yield _double(_DOUBLES[key], value)
        elif key in _INTEGERS:
            yield _integer(_INTEGERS[key], int(value))
        elif key.startswith("x-"):
            yield _nested(_EXTENSION, _text(1, key) + _any(2, value))
        elif key in _STRUCTURED:
            yield _STRUCTURED[key](value)


def _texts(number: int, values: Iterable[str]) -> bytes:
    return b"".join(_nested(number, value.encode()) for value in values)


def _additional(value: Any) -> bytes:
    body = _varint(2 << 3 | _VARINT) + _varint(int(value)) if isinstance(value, bool) else _nested(1, _schema(value))
    return _nested(_ADDITIONAL, body)


def _properties(value: Json) -> bytes:
    return _nested(_PROPERTIES, b"".join(_named(1, name, _schema(schema)) for name, schema in value.items()))


_STRUCTURED: Final[Mapping[str, Callable[[Any], bytes]]] = {
    "default": lambda value: _any(_DEFAULT, value),
    "required": lambda value: _texts(_REQUIRED, value),
    "enum": lambda value: b"".join(_any(_ENUM, one) for one in value),
    "additionalProperties": _additional,
    "type": lambda value: _nested(_TYPE, _texts(1, [value] if isinstance(value, str) else value)),
    "items": lambda value: _nested(_ITEMS, _nested(1, _schema(value))),
    "allOf": lambda value: b"".join(_nested(_ALL_OF, _schema(one)) for one in value),
    "properties": _properties,
    "example": lambda value: _any(_EXAMPLE, value),
}
