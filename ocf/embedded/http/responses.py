"""What a handler answers with, before it is bytes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ocf.embedded.http.content_negotiation import Form, Media
from ocf.embedded.http.status import status_of
from ocf.errors import ApiError
from ocf.objects import Manifest, dump_document

__all__ = ["Answer", "error_answer", "metadata_of", "without_kind", "write_body"]

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer.

    Args:
        body: JSON values, or text as it is.
        code: HTTP status.
        media: In which form the body is written.
        headers: Further headers.
    """

    body: Any
    code: int = 200
    media: Media = field(default_factory=Media)
    headers: Mapping[str, str] = field(default_factory=dict)


def error_answer(error: ApiError) -> Answer:
    """Return the answer for an error.

    Args:
        error: The error; it has an HTTP status.
    """
    headers = {} if error.retry_after is None else {"Retry-After": str(max(1, round(error.retry_after)))}
    return Answer(status_of(error), code=error.code, headers=headers)


def write_body(answer: Answer) -> tuple[bytes, str]:
    """Write the body of an answer.

    Args:
        answer: The answer.

    Returns:
        The bytes and their content type.
    """
    if isinstance(answer.body, str):
        return answer.body.encode(), "text/plain; charset=utf-8"
    if answer.media.yaml and isinstance(answer.body, dict):
        return dump_document(answer.body).encode(), answer.media.content_type
    return json.dumps(answer.body, separators=(",", ":")).encode(), "application/json"


def metadata_of(manifest: Manifest) -> Manifest:
    """Return an object reduced to its metadata, as clients may ask for it."""
    return {"kind": Form.METADATA.value, "apiVersion": "meta.k8s.io/v1", "metadata": manifest["metadata"]}


def without_kind(manifest: Manifest) -> Manifest:
    """Return an object as it stands in a list of a built-in kind, which does not repeat what all of them are."""
    return {key: value for key, value in manifest.items() if key not in ("kind", "apiVersion")}
