"""Responses of handlers, and their conversion to bytes.

A list is written in pieces, between which other requests run. Objects of the store never change, so each state of an
object is encoded once, and all later lists and watches join the same bytes.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Protocol, TypeAlias

from ocf.cluster.protocol import EventType, WatchEvent
from ocf.errors import ApiError
from ocf.objects import Manifest, dump_document
from ocf.schema.builtin import ApiResource
from ocf_server.http.media import Encoding, Form, Media
from ocf_server.http.resource_catalog import ServedResource
from ocf_server.http.status import status_of
from ocf_server.registry.encodings import EncodingCache
from ocf_server.registry.registry import Registry, kind_of, place_of
from ocf_server.watch import StoredEvent

__all__ = [
    "JSON",
    "PIECE",
    "Event",
    "ObjectEncoder",
    "Pieces",
    "Response",
    "Serializer",
    "StoredObjectEncoder",
    "encode",
    "error_response",
    "metadata_of",
    "serializer_of",
    "warning_headers",
    "without_kind",
    "write_body",
]

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
        """Return an event of a watch."""
        ...

    async def list(self, head: Manifest, items: Iterable[bytes]) -> tuple[bytes, ...]:
        """Return a list, in pieces of about the size `PIECE`; other requests run between two pieces.

        Args:
            head: The list without its items; its last entry is the empty list of items.
        """
        ...


def _grouped(parts: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield parts of a response in groups of about the size `PIECE`."""
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


async def _yielding(items: Iterable[bytes]) -> AsyncIterator[list[bytes]]:
    """Yield groups of items, as `grouped`; other requests run between two of them."""
    for group in _grouped(items):
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
        async for group in _yielding(items):
            pieces.append(opening + b",".join(group))
            opening = b","
        return (*pieces[:-1], pieces[-1] + b"]}") if pieces else (opening + b"]}",)


JSON: Final[Serializer] = _Json()
"""Writes JSON."""


Json = dict[str, Any]


class _Protobuf:
    """Protobuf, of built-in kinds; each event has its length before it."""

    name = "protobuf"
    stream_type = f"{Encoding.PROTOBUF.value};stream=watch"

    def __init__(self) -> None:
        # Imported here, because few clients ask for it.
        from ocf_server.http import protobuf_writer

        self._writer = protobuf_writer

    def document(self, manifest: Manifest) -> bytes:
        api_version, kind = manifest.get("apiVersion", ""), manifest["kind"]
        if self._writer.is_known(api_version, kind):
            return self._writer.write_protobuf(manifest)
        entry = kind.removesuffix("List")
        items = (self._writer.write_item(api_version, entry, item) for item in manifest["items"])
        return b"".join(self._writer.write_list(manifest, items))

    def item(self, kind: ServedResource, manifest: Manifest) -> bytes:
        return self._writer.write_item(kind.api_version, kind.kind, manifest)

    def metadata(self, manifest: Manifest) -> bytes:
        return self._writer.write_item(manifest["apiVersion"], manifest["kind"], manifest)

    def whole(self, kind: ServedResource, item: bytes) -> bytes:
        return self._writer.write_envelope(kind.api_version, kind.kind, item)

    def event(self, event: str, document: bytes) -> bytes:
        return self._writer.write_event(event, document)

    async def list(self, head: Manifest, items: Iterable[bytes]) -> tuple[bytes, ...]:
        # The length of the list stands before its items.
        known = [item async for group in _yielding(items) for item in group]
        return tuple(b"".join(group) for group in _grouped(self._writer.write_list(head, known)))


@cache
def _protobuf() -> Serializer:
    return _Protobuf()


@dataclass(frozen=True, slots=True)
class Pieces:
    """A list that is sent piece by piece, so that other requests run in between."""

    pieces: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Response:
    """A response.

    Args:
        body: JSON values, `Pieces`, or text or bytes to send unchanged.
    """

    body: Any
    code: int = 200
    media: Media = field(default_factory=Media)
    headers: Mapping[str, str] = field(default_factory=dict)


def error_response(error: ApiError, media: Media | None = None) -> Response:
    """Return the response for an error.

    Args:
        error: The error; its code is the HTTP status.
        media: Media type of the response; None for JSON.
    """
    headers = {} if error.retry_after is None else {"Retry-After": str(max(1, round(error.retry_after)))}
    return Response(status_of(error), code=error.code, media=media or Media(), headers=headers)


def serializer_of(media: Media) -> Serializer:
    """Return the serializer of a response."""
    if media.encoding is not Encoding.PROTOBUF:
        return JSON
    return _protobuf()


def write_body(response: Response) -> tuple[bytes, str]:
    """Write the body of a response.

    Returns:
        The bytes and their content type.
    """
    if isinstance(response.body, str):
        return response.body.encode(), "text/plain; charset=utf-8"
    if isinstance(response.body, bytes):
        return response.body, "application/octet-stream"
    content_type = response.media.content_type
    if isinstance(response.body, Pieces):
        return b"".join(response.body.pieces), content_type
    if response.media.encoding is Encoding.YAML:
        return dump_document(response.body).encode(), content_type
    return serializer_of(response.media).document(response.body), content_type


def metadata_of(manifest: Manifest, media: Media) -> Manifest:
    """Return the `PartialObjectMetadata` of an object, in the version that a client asks for."""
    return {"kind": Form.METADATA.value, "apiVersion": media.meta_version, "metadata": manifest["metadata"]}


def without_kind(manifest: Manifest) -> Manifest:
    """Return an object without `kind` and `apiVersion`, as in lists of built-in kinds."""
    return {key: value for key, value in manifest.items() if key not in ("kind", "apiVersion")}


# The recorder of a real API server (k8s.io/apiserver/pkg/endpoints/filters/warning.go) counts characters: once the
# warnings of a response are longer than this together, each is cut, and those after the limit are dropped.
_ALL_WARNINGS: Final = 4096
_CUT_WARNING: Final = 256
_CONTROL_CHARACTER: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def warning_headers(warnings: Iterable[str]) -> list[str]:
    """Return the values of the headers `Warning` of a response.

    Example:
        >>> warning_headers(["v1 Shop is deprecated", "", "v1 Shop is deprecated"])
        ['299 - "v1 Shop is deprecated"']
    """
    given = list(dict.fromkeys(filter(None, warnings)))
    sent = [warning for warning in given if _is_sendable(warning)]
    if sum(map(len, sent)) > _ALL_WARNINGS:
        sent = list(_cut(given))
    return [f'299 - "{_quoted(warning)}"' for warning in sent]


def _is_sendable(warning: str) -> bool:
    return not _CONTROL_CHARACTER.search(warning)


def _cut(warnings: Iterable[str]) -> Iterator[str]:
    whole = written = 0
    for warning in warnings:
        # The warning that exceeds the limit is still sent, as are those before it.
        if whole > _ALL_WARNINGS and written >= _ALL_WARNINGS:
            return
        whole += len(warning) if _is_sendable(warning) else 0
        cut = warning[:_CUT_WARNING]
        if _is_sendable(cut):
            written += len(cut)
            yield cut


def _quoted(warning: str) -> str:
    return warning.replace("\\", "\\\\").replace('"', '\\"')


Event: TypeAlias = WatchEvent | StoredEvent
"""Event of a watch, of a wrapper around the cluster or of the cluster itself."""


@dataclass(frozen=True, slots=True)
class ObjectEncoder:
    """Encoder of the objects of one list or watch."""

    kind: ServedResource
    serializer: Serializer

    def shown(self, manifest: Manifest) -> Manifest:
        """Return an object in the requested version; it must not be changed."""
        return manifest

    def item(self, manifest: Manifest) -> bytes:
        """Return the bytes of an object in a list."""
        return self.serializer.item(self.kind, self.shown(manifest))

    def line(self, event: Event) -> bytes:
        """Return the bytes of an event."""
        return self.serializer.event(event.type.value, self.serializer.document(event.object))


@dataclass(frozen=True, slots=True)
class StoredObjectEncoder(ObjectEncoder):
    """Encoder of objects of the store, as they are stored.

    Args:
        encodings: The encodings for the present schema of the kind.
    """

    registry: Registry
    resource: ApiResource
    encodings: EncodingCache

    @classmethod
    def of(cls, kind: ServedResource, serializer: Serializer, registry: Registry) -> "StoredObjectEncoder":
        """Return the encoder for objects that are read now.

        Raises:
            NotFoundError: If the kind is not served.
        """
        resource = registry.resource(kind.api_version, kind.kind)
        return cls(kind, serializer, registry, resource, registry.store.encodings)

    def shown(self, manifest: Manifest) -> Manifest:
        """Return an object in the requested version; it must not be changed."""
        return self.registry.shown(manifest, self.resource)

    def item(self, manifest: Manifest) -> bytes:
        """Return the bytes of an object in a list."""
        version, form = manifest["metadata"]["resourceVersion"], self._form()
        found = self.encodings.find(version, form)
        if found is None:
            found = ObjectEncoder.item(self, manifest)
            self.encodings.add(version, form, found, present=self._is_present(manifest))
        return found

    def _form(self, event: str = "") -> str:
        """Return the name of an encoding for the cache."""
        return f"{self.kind.api_version} {self.serializer.name} {event}"

    def _is_present(self, manifest: Manifest) -> bool:
        store = self.registry.store
        # After a change of the schemas, the store does not retire the encodings of before.
        return store.encodings is self.encodings and store.get(kind_of(self.resource), place_of(manifest)) is manifest

    def line(self, event: Event) -> bytes:
        """Return the bytes of an event; events of changes are encoded once for all watches."""
        if not isinstance(event, StoredEvent) or event.type is EventType.BOOKMARK:
            return ObjectEncoder.line(self, event)
        if not event.version:
            return self._line(event)
        version, form = str(event.version), self._form(event.type.value)
        found = self.encodings.find(version, form)
        if found is None:
            found = self._line(event)
            self.encodings.add(version, form, found, present=False)
        return found

    def _line(self, event: StoredEvent) -> bytes:
        # The last state of a deleted object has the resource version of the deletion.
        if event.type is EventType.DELETED:
            return ObjectEncoder.line(self, event)
        item = self.item(event.stored)
        return self.serializer.event(event.type.value, self.serializer.whole(self.kind, item))
