"""Encoding of objects in lists and watches.

Objects of the store never change, so each state of an object is encoded once, and all later lists and watches join the
same bytes.
"""

from dataclasses import dataclass
from typing import TypeAlias

from ocf.cluster.protocol import EventType, WatchEvent
from ocf.objects import Manifest
from ocf.schema.builtin import ApiResource
from ocf_server.http.resource_catalog import ServedResource
from ocf_server.http.serializers import Serializer
from ocf_server.registry.encodings import EncodingCache
from ocf_server.registry.registry import Registry, kind_of, place_of
from ocf_server.watch import StoredEvent

__all__ = ["Event", "ObjectEncoder", "StoredObjectEncoder"]

Event: TypeAlias = WatchEvent | StoredEvent
"""Event of a watch, of a wrapper around the cluster or of the cluster itself."""


@dataclass(frozen=True, slots=True)
class ObjectEncoder:
    """Encoder of the objects of one list or watch.

    Args:
        kind: Their kind, in the requested version.
        serializer: Writes them.
    """

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
        registry: The registry of the server.
        resource: The kind, in the requested version.
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
