"""What an API server answered, as values and errors.

Everything here is pure: bytes and headers in, manifests or an `ApiError` out. An error is told by the HTTP status and
the `Status` object in the body (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/). A
body that is no Status comes from something in between (a proxy, a load balancer, an aggregated server); it may hold
anything, so no message repeats it.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from ocf.cluster.protocol import EventType, ObjectList, WatchEvent
from ocf.cluster.server_errors import as_client_error
from ocf.errors import ApiError, NotFoundError, ServerError, StatusCause, api_error
from ocf.objects import Manifest

__all__ = ["UNTOLD", "UnknownPathError", "answer_error", "read_event", "read_list", "read_object", "status_error"]

UNTOLD: Final = "and no Status that says why"
"""How the message ends of an error that the server gave no message for."""

_NOT_FOUND = 404


class UnknownPathError(NotFoundError):
    """The server has no such path at all, as opposed to no such object behind it (404).

    Whatever told us that the path exists is out of date.
    """


def answer_error(code: int, headers: Mapping[str, str], body: bytes, *, asked: str) -> ApiError:
    """Build the error for an answer outside 2xx.

    Args:
        code: HTTP status.
        headers: Headers of the answer; names in any case the mapping understands.
        body: The body, a Status or anything else.
        asked: The request line, for messages of answers that are no Status.

    Returns:
        The error to raise.
    """
    status = _parsed(body)
    retry_after = _seconds(headers.get("Retry-After"))
    if not isinstance(status, dict) or status.get("kind") != "Status":
        status = {}
    error = status_error(status, code=code, retry_after=retry_after, asked=asked)
    if code == _NOT_FOUND and not _mapping(status.get("details")).get("name"):
        return UnknownPathError(
            f"{asked}: {error.message}" if status else error.message, code=code, reason=error.reason
        )
    return error


def status_error(
    status: Mapping[str, Any], *, asked: str, code: int | None = None, retry_after: float | None = None
) -> ApiError:
    """Build the error that a Status describes.

    Args:
        status: The Status; missing or misshapen fields are passed over.
        asked: The request line, for a Status without a message.
        code: HTTP status of the answer; None takes the one in the Status, as for an error inside a watch.
        retry_after: Seconds of the `Retry-After` header; None takes `details.retryAfterSeconds`.

    Returns:
        The error to raise.
    """
    details = _mapping(status.get("details"))
    told = status.get("code")
    if code is None:
        code = told if isinstance(told, int) else 0
    if retry_after is None:
        retry_after = _seconds(details.get("retryAfterSeconds"))
    error = api_error(
        str(status.get("message") or f"{asked}: HTTP {code}, {UNTOLD}"),
        code=code,
        reason=str(status.get("reason") or ""),
        causes=_causes(details.get("causes")),
        retry_after=retry_after,
    )
    return as_client_error(error)


def read_object(body: bytes, *, code: int, asked: str) -> Manifest:
    """Read the JSON object in a successful answer.

    Args:
        body: The body.
        code: HTTP status.
        asked: The request line, for the message.

    Returns:
        The object, with every field the server sent.

    Raises:
        ServerError: If the body is no JSON object.
    """
    value = _parsed(body)
    if isinstance(value, dict):
        return value
    raise ServerError(f"{asked}: HTTP {code}, but the body is no JSON object; is this an API server?", code=code)


def read_list(answer: Manifest, api_version: str, kind: str) -> ObjectList:
    """Read one page of a list.

    The server names the kind of a list once, on the list; here every item carries it. A server sorts by its storage
    key, where `a-b/x` comes before `a/x`; a page is put in order of namespace and name.

    Args:
        answer: The list object.
        api_version: What was asked for.
        kind: What was asked for.

    Returns:
        The page.
    """
    metadata = _mapping(answer.get("metadata"))
    items = [{"apiVersion": api_version, "kind": kind, **item} for item in answer.get("items") or ()]
    return ObjectList(
        items=tuple(sorted(items, key=_place)),
        resource_version=str(metadata.get("resourceVersion") or ""),
        continue_token=str(metadata.get("continue") or ""),
    )


def read_event(line: bytes, *, asked: str) -> WatchEvent:
    """Read one line of a watch.

    Args:
        line: A JSON object with `type` and `object`.
        asked: The request line, for messages.

    Returns:
        The event.

    Raises:
        ApiError: If the line is an `ERROR`: the error of its Status, `ExpiredError` for 410.
        ServerError: If the line is no event.
    """
    event = _parsed(line)
    kind, content = (event.get("type"), event.get("object")) if isinstance(event, dict) else (None, None)
    if kind == "ERROR":
        raise status_error(_mapping(content), asked=asked)
    if not isinstance(kind, str) or kind not in EventType.__members__ or not isinstance(content, dict):
        raise ServerError(f"{asked}: a line of the watch is no event; is this an API server?")
    return WatchEvent(EventType(kind), content)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):  # a UnicodeDecodeError is a ValueError, too
        return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _seconds(value: Any) -> float | None:
    """Read seconds; a `Retry-After` may also be a date, which no API server sends."""
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return None
    return seconds if 0 <= seconds < float("inf") else None


def _causes(value: Any) -> tuple[StatusCause, ...]:
    causes = map(_mapping, value if isinstance(value, list) else ())
    return tuple(
        StatusCause(*(str(cause.get(name) or "") for name in ("reason", "message", "field"))) for cause in causes
    )


def _place(item: Manifest) -> tuple[str, str]:
    metadata = _mapping(item.get("metadata"))
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
