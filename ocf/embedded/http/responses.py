"""Responses of handlers, and their conversion to bytes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ocf.embedded.http.content_negotiation import Form, Media
from ocf.embedded.http.status import status_of
from ocf.errors import ApiError
from ocf.objects import Manifest, dump_document

__all__ = ["Response", "error_response", "metadata_of", "without_kind", "write_body"]

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Response:
    """A response.

    Args:
        body: JSON values, or text to send unchanged.
        code: HTTP status.
        media: Media type of the body.
        headers: Additional headers.
    """

    body: Any
    code: int = 200
    media: Media = field(default_factory=Media)
    headers: Mapping[str, str] = field(default_factory=dict)


def error_response(error: ApiError) -> Response:
    """Return the response for an error.

    Args:
        error: The error; its code is the HTTP status.
    """
    headers = {} if error.retry_after is None else {"Retry-After": str(max(1, round(error.retry_after)))}
    return Response(status_of(error), code=error.code, headers=headers)


def write_body(response: Response) -> tuple[bytes, str]:
    """Write the body of a response.

    Args:
        response: The response.

    Returns:
        The bytes and their content type.
    """
    if isinstance(response.body, str):
        return response.body.encode(), "text/plain; charset=utf-8"
    if response.media.yaml and isinstance(response.body, dict):
        return dump_document(response.body).encode(), response.media.content_type
    return json.dumps(response.body, separators=(",", ":")).encode(), "application/json"


def metadata_of(manifest: Manifest) -> Manifest:
    """Return the `PartialObjectMetadata` of an object."""
    return {"kind": Form.METADATA.value, "apiVersion": "meta.k8s.io/v1", "metadata": manifest["metadata"]}


def without_kind(manifest: Manifest) -> Manifest:
    """Return an object without `kind` and `apiVersion`, as in lists of built-in kinds."""
    return {key: value for key, value in manifest.items() if key not in ("kind", "apiVersion")}
