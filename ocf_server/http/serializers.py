"""Serializers of responses, and the one for JSON.

A list is written in pieces, between which other requests run, and an object of a list or a watch from the bytes of the
object as an item, which are kept for all responses.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, Final, Protocol

from ocf.objects import Manifest
from ocf_server.http.resource_catalog import ServedResource

__all__ = ["JSON", "PIECE", "Serializer", "encode", "grouped", "yielding"]

PIECE: Final = 2**18
"""Number of bytes of a long response after which other requests run."""

# JSON values of the server do not contain themselves; to check that takes a fifth of the time.
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False)


def encode(value: Any) -> bytes:
    """Return the JSON of a value.

    Args:
        value: JSON values; must not contain itself.

    Example:
        >>> encode({"a": [1, None]})
        b'{"a":[1,null]}'
    """
    return _ENCODER.encode(value).encode()


class Serializer(Protocol):
    """Writes objects, lists of them, and events of watches."""

    name: str
    """A name that differs from those of the others."""
    stream_type: str
    """The content type of a watch."""

    def document(self, manifest: Manifest) -> bytes:
        """Return the bytes of a whole response."""
        ...

    def item(self, kind: ServedResource, manifest: Manifest) -> bytes:
        """Return the bytes of an object in a list of its kind."""
        ...

    def metadata(self, manifest: Manifest) -> bytes:
        """Return the bytes of a `PartialObjectMetadata` in a list."""
        ...

    def whole(self, kind: ServedResource, item: bytes) -> bytes:
        """Return the bytes of an object from those of the object in a list."""
        ...

    def event(self, event: str, document: bytes) -> bytes:
        """Return an event of a watch.

        Args:
            event: What happened.
            document: The bytes of the object.
        """
        ...

    async def list(self, head: Manifest, items: Iterable[bytes]) -> tuple[bytes, ...]:
        """Return a list, in pieces of about the size `PIECE`; other requests run between two pieces.

        Args:
            head: The list without its items; its last entry is the empty list of items.
            items: The bytes of each item.
        """
        ...


def grouped(parts: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield parts of a response in groups of about the size `PIECE`.

    Args:
        parts: The parts.
    """
    group: list[bytes] = []
    size = 0
    for part in parts:
        group.append(part)
        size += len(part)
        if size > PIECE:
            yield group
            group, size = [], 0
    if group:
        yield group


async def yielding(items: Iterable[bytes]) -> AsyncIterator[list[bytes]]:
    """Yield groups of items, as `grouped`; other requests run between two of them.

    Args:
        items: The items.
    """
    for group in grouped(items):
        yield group
        await asyncio.sleep(0)


class _Json:
    """JSON; items of built-in kinds are written without `kind` and `apiVersion`, and each event on a line."""

    name = "json"
    stream_type = "application/json"

    def document(self, manifest: Manifest) -> bytes:
        return encode(manifest)

    def item(self, kind: ServedResource, manifest: Manifest) -> bytes:
        if kind.custom:
            return encode(manifest)
        return encode({key: value for key, value in manifest.items() if key not in ("kind", "apiVersion")})

    def metadata(self, manifest: Manifest) -> bytes:
        return encode(manifest)

    def whole(self, kind: ServedResource, item: bytes) -> bytes:
        if kind.custom:
            return item
        head = encode({"kind": kind.kind, "apiVersion": kind.api_version})
        return b"%b,%b" % (head[:-1], item[1:])

    def event(self, event: str, document: bytes) -> bytes:
        return b'{"type":"%b","object":%b}\n' % (event.encode(), document)

    async def list(self, head: Manifest, items: Iterable[bytes]) -> tuple[bytes, ...]:
        opening, pieces = encode(head)[:-2], list[bytes]()
        async for group in yielding(items):
            pieces.append(opening + b",".join(group))
            opening = b","
        return (*pieces[:-1], pieces[-1] + b"]}") if pieces else (opening + b"]}",)


JSON: Final[Serializer] = _Json()
"""Writes JSON."""
