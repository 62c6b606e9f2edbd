"""JSON of objects in lists and watches.

Objects of the store never change, so each state of an object is encoded once, and all later lists and watches join the
same bytes.
"""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ocf.cluster.protocol import EventType, WatchEvent
from ocf.embedded.http.resource_catalog import ServedResource
from ocf.embedded.registry.encodings import EncodingCache
from ocf.embedded.registry.registry import Registry, kind_of, place_of
from ocf.embedded.watch import StoredEvent
from ocf.objects import Manifest
from ocf.schema.builtin import ApiResource

__all__ = ["PIECE", "Event", "ObjectEncoder", "StoredObjectEncoder", "encode", "encode_list", "event_line"]

PIECE: Final = 2**18
"""Number of bytes of a long response after which other requests run."""

Event: TypeAlias = WatchEvent | StoredEvent
"""Event of a watch, of a wrapper around the cluster or of the cluster itself."""

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


@dataclass(frozen=True, slots=True)
class ObjectEncoder:
    """Encoder of the objects of one list or watch.

    Args:
        kind: Their kind, in the requested version.
    """

    kind: ServedResource

    def shown(self, manifest: Manifest) -> Manifest:
        """Return an object in the requested version; it must not be changed."""
        return manifest

    def item(self, manifest: Manifest) -> bytes:
        """Return the JSON of an object in a list; of a built-in kind without `kind` and `apiVersion`."""
        shown = self.shown(manifest)
        if self.kind.custom:
            return encode(shown)
        return encode({key: value for key, value in shown.items() if key not in ("kind", "apiVersion")})

    def line(self, event: Event) -> bytes:
        """Return the line of an event."""
        return event_line(event.type.value, encode(event.object))

    def _whole(self, item: bytes) -> bytes:
        """Return the JSON of an object from that of the object in a list."""
        if self.kind.custom:
            return item
        head = encode({"kind": self.kind.kind, "apiVersion": self.kind.api_version})
        return b"%b,%b" % (head[:-1], item[1:])


@dataclass(frozen=True, slots=True)
class StoredObjectEncoder(ObjectEncoder):
    """Encoder of objects of the store, as they are stored.

    Args:
        registry: The registry of the server.
        resource: The kind, in the requested version.
        encodings: The encodings for the present schema of the kind.
    """

    registry: Registry
    resource: ApiResource
    encodings: EncodingCache

    @classmethod
    def of(cls, kind: ServedResource, registry: Registry) -> "StoredObjectEncoder":
        """Return the encoder for objects that are read now.

        Raises:
            NotFoundError: If the kind is not served.
        """
        resource = registry.resource(kind.api_version, kind.kind)
        return cls(kind, registry, resource, registry.store.encodings)

    def shown(self, manifest: Manifest) -> Manifest:
        """Return an object in the requested version; it must not be changed."""
        return self.registry.shown(manifest, self.resource)

    def item(self, manifest: Manifest) -> bytes:
        """Return the JSON of an object in a list; of a built-in kind without `kind` and `apiVersion`."""
        version, form = manifest["metadata"]["resourceVersion"], self.kind.api_version
        found = self.encodings.find(version, form)
        if found is None:
            found = ObjectEncoder.item(self, manifest)
            self.encodings.add(version, form, found, present=self._is_present(manifest))
        return found

    def _is_present(self, manifest: Manifest) -> bool:
        store = self.registry.store
        # After a change of the schemas, the store does not retire the encodings of before.
        return store.encodings is self.encodings and store.get(kind_of(self.resource), place_of(manifest)) is manifest

    def line(self, event: Event) -> bytes:
        """Return the line of an event; events of changes are encoded once for all watches."""
        if not isinstance(event, StoredEvent) or event.type is EventType.BOOKMARK:
            return ObjectEncoder.line(self, event)
        if not event.version:
            return self._line(event)
        version, form = str(event.version), f"{self.kind.api_version} {event.type.value}"
        found = self.encodings.find(version, form)
        if found is None:
            found = self._line(event)
            self.encodings.add(version, form, found, present=False)
        return found

    def _line(self, event: StoredEvent) -> bytes:
        # The last state of a deleted object has the resource version of the deletion.
        if event.type is EventType.DELETED:
            return ObjectEncoder.line(self, event)
        return event_line(event.type.value, self._whole(self.item(event.stored)))


def event_line(kind: str, encoded: bytes) -> bytes:
    """Return the line of a watch event.

    Args:
        kind: What happened.
        encoded: The JSON of the object.

    Example:
        >>> event_line("ADDED", b"{}").decode().splitlines()
        ['{"type":"ADDED","object":{}}']
    """
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), encoded)


async def encode_list(head: Manifest, items: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return the JSON of a list, in pieces of about the size `PIECE`; other requests run between two pieces.

    Args:
        head: The list without its items; its last entry is the empty list of items.
        items: The JSON of each item.

    Example:
        >>> asyncio.run(encode_list({"kind": "List", "items": []}, [b"1", b"2"]))
        (b'{"kind":"List","items":[1,2]}',)
    """
    pieces: list[bytes] = []
    opening, size = encode(head)[:-2], 0
    batch: list[bytes] = []
    for item in items:
        batch.append(item)
        size += len(item)
        if size > PIECE:
            pieces.append(opening + b",".join(batch))
            batch, size, opening = [], 0, b","
            await asyncio.sleep(0)
    rest = b",".join(batch)
    # The last piece has no item if the one before it was just full.
    return (*pieces, (opening if batch or not pieces else b"") + rest + b"]}")
