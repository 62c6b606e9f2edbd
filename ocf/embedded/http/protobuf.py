"""Reading objects in protobuf, which clients written in Go send for built-in kinds.

What arrives is an envelope that names the kind, around the object itself
(https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding). The wire format knows numbers, not
names; which number is which field stands in a table beside this module, written by `scripts/generate_protobuf.py`.
Answers are never written in protobuf: every client that speaks it reads JSON as well.
"""

import base64
import gzip
import json
import math
import struct
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.timestamps import Fraction, format_time

__all__ = ["MEDIA_TYPE", "ProtobufError", "read_protobuf"]

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_MAX_DEPTH: Final = 100
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES: Final = {_FIXED64: 8, _FIXED32: 4}

_Message = Mapping[str, list[str]]


class ProtobufError(ValueError):
    """The bytes are no object; says why."""


@cache
def _table() -> dict[str, Any]:
    packed = resources.files("ocf.embedded.http").joinpath("protobuf.json.gz").read_bytes()
    table: dict[str, Any] = json.loads(gzip.decompress(packed))
    return table


def read_protobuf(body: bytes) -> Manifest:
    """Read an object.

    Args:
        body: The bytes, envelope included.

    Returns:
        The object as it would be in JSON.

    Raises:
        ProtobufError: If the bytes are no object of a kind that is known.
    """
    if not body.startswith(_MAGIC):
        raise ProtobufError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = dict(_fields(body[len(_MAGIC) :]))
    head = {number: _text(value) for number, value in _fields(_bytes(envelope.get(1, b"")))}
    api_version, kind = head.get(1, ""), head.get(2, "")
    name = _table()["kinds"].get(f"{api_version} {kind}")
    if name is None and kind == "DeleteOptions":
        name = _table()["kinds"]["v1 DeleteOptions"]
    if name is None:
        raise ProtobufError(f'no kind "{kind}" is registered for version "{api_version}"')
    found = _message(_bytes(envelope.get(2, b"")), name, 0)
    return {"apiVersion": api_version, "kind": kind, **found}


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Walk through the fields of a message: number and raw value."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        wire = tag & 7
        if wire == _VARINT:
            value, position = _varint(data, position)
            yield tag >> 3, value
            continue
        if wire == _BYTES:
            size, position = _varint(data, position)
        elif wire in _SIZES:
            size = _SIZES[wire]
        else:
            raise ProtobufError(f"illegal wireType {wire}")
        if position + size > len(data):
            raise ProtobufError("unexpected EOF")
        yield tag >> 3, data[position : position + size]
        position += size


_LONGEST_VARINT: Final = 10


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for count in range(_LONGEST_VARINT):
        if position >= len(data):
            raise ProtobufError("unexpected EOF")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:  # noqa: PLR2004 (the bit that says that another byte follows)
            return value, position
    raise ProtobufError("integer overflow")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    raise ProtobufError("wrong wireType")


def _text(value: int | bytes) -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError as error:
        raise ProtobufError("invalid UTF-8") from error


def _integer(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ProtobufError("wrong wireType")
    return value - (1 << 64) if value >> 63 else value


def _number(value: int | bytes) -> float:
    packed = _bytes(value)
    if len(packed) != _SIZES[_FIXED64]:
        raise ProtobufError("wrong wireType")
    found: float = struct.unpack("<d", packed)[0]
    if not math.isfinite(found):
        raise ProtobufError("a number is not finite")
    return found


def _message(data: bytes, name: str, depth: int) -> dict[str, Any]:
    if depth > _MAX_DEPTH:
        raise ProtobufError("exceeded max depth")
    known: _Message = _table()["messages"][name]
    out: dict[str, Any] = {}
    for number, value in _fields(data):
        declared = known.get(str(number))
        if declared is None:
            continue
        field, kind = declared
        if kind.startswith("[]"):
            out.setdefault(field, []).append(_value(value, kind[2:], depth))
        elif kind.startswith("{}"):
            key, item = _entry(_bytes(value), kind[2:], depth)
            out.setdefault(field, {})[key] = item
        elif not field:
            out.update(_message(_bytes(value), kind[1:], depth + 1))
        elif (found := _value(value, kind, depth)) is not None:
            out[field] = found
    return out


def _entry(data: bytes, kind: str, depth: int) -> tuple[str, Any]:
    pair = dict(_fields(data))
    return _text(pair.get(1, b"")), _value(pair.get(2, 0 if kind in "ib" else b""), kind, depth)


def _value(value: int | bytes, kind: str, depth: int) -> Any:
    code, _, name = kind.partition("#")
    if not code:
        return _message(_bytes(value), name, depth + 1)
    if code == "L":
        return _message(_bytes(value), name, depth + 1).get("items", [])
    if code == "O":
        return _either(_message(_bytes(value), name, depth + 1))
    return _SCALARS[code](value)


def _either(found: dict[str, Any]) -> Any:
    """Return what a type that is one thing or the other holds."""
    for name in ("schema", "jSONSchemas", "property"):
        if found.get(name):
            return found[name]
    return found.get("allows", {})


def _time(value: int | bytes, fraction: Fraction) -> str | None:
    parts = dict(_fields(_bytes(value)))
    if not parts:
        return None
    try:
        instant = datetime.fromtimestamp(_integer(parts.get(1, 0)), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise ProtobufError("a time is out of range") from error
    instant = instant.replace(microsecond=_integer(parts.get(2, 0)) // 1000 % 1_000_000)
    return format_time(instant, fraction)


def _raw(value: int | bytes) -> Any:
    text = dict(_fields(_bytes(value))).get(1, b"")
    try:
        return json.loads(_bytes(text)) if text else None
    except (ValueError, RecursionError) as error:
        raise ProtobufError("an embedded object is no JSON") from error


def _int_or_text(value: int | bytes) -> int | str:
    parts = dict(_fields(_bytes(value)))
    return _text(parts.get(3, b"")) if parts.get(1) else _integer(parts.get(2, 0))


_SCALARS: Final[Mapping[str, Callable[[int | bytes], Any]]] = {
    "s": _text,
    "y": lambda value: base64.b64encode(_bytes(value)).decode(),
    "b": lambda value: bool(_integer(value)),
    "i": _integer,
    "d": _number,
    "T": lambda value: _time(value, Fraction.NONE),
    "U": lambda value: _time(value, Fraction.MICROSECONDS),
    "R": _raw,
    "Q": lambda value: _text(dict(_fields(_bytes(value))).get(1, b"")),
    "X": _int_or_text,
}
