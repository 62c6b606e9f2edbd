"""Responses of handlers, and their conversion to bytes."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ocf.errors import ApiError
from ocf.objects import Manifest, dump_document
from ocf_server.http.content_negotiation import Encoding, Form, Media
from ocf_server.http.serializers import JSON, Serializer
from ocf_server.http.status import status_of

__all__ = [
    "Pieces",
    "Response",
    "error_response",
    "metadata_of",
    "serializer_of",
    "warning_headers",
    "without_kind",
    "write_body",
]

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pieces:
    """A list that is sent piece by piece, so that other requests run in between.

    Args:
        pieces: The bytes.
    """

    pieces: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Response:
    """A response.

    Args:
        body: JSON values, `Pieces`, or text or bytes to send unchanged.
        code: HTTP status.
        media: Media type of the body.
        headers: Additional headers.
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
    """Return the serializer of a response.

    Args:
        media: Its media type, in JSON or protobuf.
    """
    if media.encoding is not Encoding.PROTOBUF:
        return JSON
    # Imported here, because few clients ask for it.
    from ocf_server.http.protobuf_serializer import PROTOBUF

    return PROTOBUF


def write_body(response: Response) -> tuple[bytes, str]:
    """Write the body of a response.

    Args:
        response: The response.

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
