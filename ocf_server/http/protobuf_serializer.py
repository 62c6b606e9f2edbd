"""Serializer of responses in protobuf."""

from collections.abc import Iterable
from typing import Final

from ocf.objects import Manifest
from ocf_server.http import protobuf_writer
from ocf_server.http.content_negotiation import Encoding
from ocf_server.http.resource_catalog import ServedResource
from ocf_server.http.serializers import Serializer, grouped, yielding

__all__ = ["PROTOBUF"]


class _Protobuf:
    """Protobuf, of built-in kinds; each event has its length before it."""

    name = "protobuf"
    stream_type = f"{Encoding.PROTOBUF.value};stream=watch"

    def document(self, manifest: Manifest) -> bytes:
        api_version, kind = manifest.get("apiVersion", ""), manifest["kind"]
        if protobuf_writer.is_known(api_version, kind):
            return protobuf_writer.write_protobuf(manifest)
        entry = kind.removesuffix("List")
        items = (protobuf_writer.write_item(api_version, entry, item) for item in manifest["items"])
        return b"".join(protobuf_writer.write_list(manifest, items))

    def item(self, kind: ServedResource, manifest: Manifest) -> bytes:
        return protobuf_writer.write_item(kind.api_version, kind.kind, manifest)

    def metadata(self, manifest: Manifest) -> bytes:
        return protobuf_writer.write_item(manifest["apiVersion"], manifest["kind"], manifest)

    def whole(self, kind: ServedResource, item: bytes) -> bytes:
        return protobuf_writer.write_envelope(kind.api_version, kind.kind, item)

    def event(self, event: str, document: bytes) -> bytes:
        return protobuf_writer.write_event(event, document)

    async def list(self, head: Manifest, items: Iterable[bytes]) -> tuple[bytes, ...]:
        # The length of the list stands before its items.
        known = [item async for group in yielding(items) for item in group]
        return tuple(b"".join(group) for group in grouped(protobuf_writer.write_list(head, known)))


PROTOBUF: Final[Serializer] = _Protobuf()
"""Writes protobuf."""
