"""Encoder of protobuf objects, for responses to clients that prefer them to JSON, such as operators written in Go.

The table of `ocf_server.http.protobuf` gives numbers and types of the fields. The type of a field is a letter, after
`[]` in a list and `{}` in a map: `s`, `y`, `b`, `i` and `d` for text, bytes, booleans, integers and floating-point
numbers; `T` and `U` for times without and with microseconds, `Q` for quantities, `X` for integers or text, `R` for any
JSON; `#name` for a message, `L#name` for a message around a list, and `O#name` for one of several types.

Unlike Go, it leaves out fields that an object does not have, which a client reads as the zero value, and writes the
fields in the order of the object.
"""

import base64
import json
import struct
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cache, cached_property, lru_cache
from typing import Any, Final, TypeAlias

from ocf.objects import Manifest
from ocf.objects.timestamps import parse_rfc3339
from ocf_server.http.protobuf import MAGIC, message_fields, message_of

__all__ = ["is_known", "write_envelope", "write_event", "write_item", "write_list", "write_protobuf"]

_VARINT, _FIXED64, _BYTES = 0, 1, 2
_CONTINUED: Final = 0x80
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LIST_META: Final = "meta.v1.ListMeta"

_Write: TypeAlias = Callable[[Any], bytes]
"""Returns the bytes of a value."""


def is_known(api_version: str, kind: str) -> bool:
    """Return whether a kind has a protobuf encoding."""
    return message_of(api_version, kind) is not None


def write_protobuf(manifest: Manifest) -> bytes:
    """Encode an object.

    Args:
        manifest: An object of a built-in kind, or a document of discovery.

    Returns:
        The bytes, including the envelope.

    Raises:
        LookupError: If the kind has no protobuf encoding.

    Example:
        >>> from ocf_server.http.protobuf import read_protobuf
        >>> read_protobuf(write_protobuf({"kind": "ConfigMap", "apiVersion": "v1", "data": {"a": "b"}}))
        {'apiVersion': 'v1', 'kind': 'ConfigMap', 'data': {'a': 'b'}}
    """
    api_version, kind = manifest.get("apiVersion", ""), manifest["kind"]
    return write_envelope(api_version, kind, write_item(api_version, kind, manifest))


def write_item(api_version: str, kind: str, manifest: Manifest) -> bytes:
    """Encode an object without the envelope, as in a list.

    Raises:
        LookupError: If the kind has no protobuf encoding.
    """
    name = message_of(api_version, kind)
    if name is None:
        raise LookupError(f"{kind} of {api_version} has no protobuf encoding")
    return _message(name).write(manifest)


def write_envelope(api_version: str, kind: str, item: bytes) -> bytes:
    """Return an object with its envelope.

    Args:
        item: The object without the envelope.
    """
    return b"%b%b" % (_opening(api_version, kind, len(item)), item + _CLOSING)


def _opening(api_version: str, kind: str, size: int) -> bytes:
    head = _delimited(b"\x0a", api_version.encode()) + _delimited(b"\x12", kind.encode())
    return MAGIC + _delimited(b"\x0a", head) + b"\x12" + _varint(size)


# Content encoding and type of the object, which are empty.
_CLOSING: Final = b"\x1a\x00\x22\x00"


def write_list(head: Manifest, items: Iterable[bytes]) -> list[bytes]:
    """Return the parts of a list; joined, they are its bytes.

    Args:
        head: The list; its items are not read.
        items: The items, without envelopes.
    """
    metadata = _delimited(b"\x0a", _message(_LIST_META).write(head["metadata"]))
    parts = [_delimited(b"\x12", item) for item in items]
    size = len(metadata) + sum(map(len, parts))
    return [_opening(head["apiVersion"], head["kind"], size) + metadata, *parts, _CLOSING]


def write_event(kind: str, document: bytes) -> bytes:
    """Return an event of a watch, with its length before it.

    Args:
        document: The object with its envelope.
    """
    raw = _delimited(b"\x0a", document)
    event = _delimited(b"\x0a", kind.encode()) + _delimited(b"\x12", raw)
    return struct.pack(">I", len(event)) + event


class _MessageWriter:
    """Encodes the messages of one type."""

    def __init__(self, name: str) -> None:
        self._declared = message_fields(name)

    # Types contain themselves, so their fields are looked up on the first use.
    @cached_property
    def _fields(self) -> Mapping[str, _Write]:
        return {name: _field(int(number), kind) for number, (name, kind) in self._declared.items() if name}

    @cached_property
    def _inlined(self) -> tuple[tuple[bytes, "_MessageWriter"], ...]:
        return tuple(
            (_tag(int(number), _BYTES), _message(kind[1:]))
            for number, (name, kind) in self._declared.items()
            if not name
        )

    def write(self, manifest: Mapping[str, Any]) -> bytes:
        """Return the bytes of a message."""
        fields = self._fields
        parts = [fields[name](value) for name, value in manifest.items() if value is not None and name in fields]
        for tag, inlined in self._inlined:
            if body := inlined.write(manifest):
                parts.append(_delimited(tag, body))
        return b"".join(parts)


_message: Final = cache(_MessageWriter)


def _field(number: int, kind: str) -> _Write:
    """Return the encoder of a field with its tag."""
    if kind.startswith("[]"):
        one = _field(number, kind[2:])
        return lambda values: b"".join(map(one, values))
    if kind.startswith("{}"):
        return _map(number, _field(2, kind[2:]))
    wire, encode = _scalar(kind)
    tag = _tag(number, wire)
    if wire == _BYTES:
        return lambda value: _delimited(tag, encode(value))
    return lambda value: tag + encode(value)


def _map(number: int, item: _Write) -> _Write:
    tag = _tag(number, _BYTES)

    def write(values: Mapping[str, Any]) -> bytes:
        return b"".join(
            _delimited(tag, _delimited(b"\x0a", key.encode()) + item(value)) for key, value in values.items()
        )

    return write


def _scalar(kind: str) -> tuple[int, _Write]:
    code, _, name = kind.partition("#")
    if not code:
        return _BYTES, _message(name).write
    if code == "L":
        return _BYTES, lambda values: _message(name).write({"items": values})
    if code == "O":
        return _BYTES, lambda value: _message(name).write(_either(value, name))
    return _SCALARS[code]


def _either(value: Any, name: str) -> Mapping[str, Any]:
    """Return the message of a union type."""
    if isinstance(value, bool):
        return {"allows": value}
    if isinstance(value, list):
        return {next(field for field, kind in message_fields(name).values() if kind.startswith("[]")): value}
    # Go reads the schema only if the union is allowed.
    return {"allows": True, "schema": value}


def _varint(value: int) -> bytes:
    if value < _CONTINUED:
        return _SMALL[value]
    parts = bytearray()
    while value >= _CONTINUED:
        parts.append(value & 0x7F | _CONTINUED)
        value >>= 7
    parts.append(value)
    return bytes(parts)


_SMALL: Final = [bytes([number]) for number in range(_CONTINUED)]


def _tag(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _delimited(tag: bytes, body: bytes) -> bytes:
    return b"%b%b%b" % (tag, _varint(len(body)), body)


def _integer(value: int) -> bytes:
    return _varint(value & 0xFFFF_FFFF_FFFF_FFFF)


@lru_cache(maxsize=1024)
def _time(text: str) -> bytes:
    since = parse_rfc3339(text) - _EPOCH
    seconds = since.days * 86_400 + since.seconds
    return b"\x08%b\x10%b" % (_integer(seconds), _integer(since.microseconds * 1000))


def _raw(value: Any) -> bytes:
    return _delimited(b"\x0a", json.dumps(value, separators=(",", ":")).encode())


def _int_or_text(value: int | str) -> bytes:
    if isinstance(value, str):
        return b"\x08\x01" + _delimited(b"\x1a", value.encode())
    return b"\x08\x00\x10" + _integer(value)


_SCALARS: Final[Mapping[str, tuple[int, _Write]]] = {
    "s": (_BYTES, str.encode),
    "y": (_BYTES, base64.b64decode),
    "b": (_VARINT, lambda value: _SMALL[value]),
    "i": (_VARINT, _integer),
    "d": (_FIXED64, lambda value: struct.pack("<d", value)),
    "T": (_BYTES, _time),
    "U": (_BYTES, _time),
    "R": (_BYTES, _raw),
    "Q": (_BYTES, lambda value: _delimited(b"\x0a", value.encode())),
    "X": (_BYTES, _int_or_text),
}
