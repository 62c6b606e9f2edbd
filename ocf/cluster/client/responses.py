"""Parsing of the answers of an API server into manifests and errors.

All functions are pure: they take bytes and headers and return manifests or an `ApiError`. An error is identified by the
HTTP status and the `Status` object in the body
(https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/). A body that is not a Status comes from
a proxy, a load balancer or an aggregated server; it may contain anything, so no message repeats it.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic_core import from_json

from ocf.cluster.protocol import EventType, ObjectList, WatchEvent
from ocf.cluster.server_errors import as_client_error
from ocf.errors import ApiError, NoKindMatchError, ServerError, StatusCause, api_error
from ocf.objects import Manifest

__all__ = [
    "NO_STATUS_MESSAGE",
    "LineBuffer",
    "UnknownPathError",
    "answer_error",
    "read_event",
    "read_list",
    "read_object",
    "read_warnings",
    "status_error",
]

NO_STATUS_MESSAGE: Final = "without a Status that gives the reason"
"""End of the message of an error for which the server sent no message."""

_NOT_FOUND = 404
_SUBJECT: Final = ("name", "group", "kind", "uid")
_EVENT_TYPES: Final[Mapping[str, EventType]] = EventType.__members__


# RFC 7234, section 5.5: code, agent, text in quotes, and a date that API servers never send; several in one header are
# separated by commas. Others than 299 are of proxies.
_WARNING: Final = re.compile(r'(?:^|,)\s*(\d{3}) \S+ "((?:[^"\\]|\\.)*)"')
_OF_SERVER: Final = "299"
_ESCAPED: Final = re.compile(r"\\(.)")


def read_warnings(headers: Iterable[str]) -> Iterator[str]:
    r"""Yield the warnings of an API server; what is not a warning is left out.

    Args:
        headers: The values of the `Warning` headers of an answer.

    Example:
        >>> [*read_warnings([r'299 - "unknown field \"spec.x\"", 299 - "deprecated"', "garbage"])]
        ['unknown field "spec.x"', 'deprecated']
    """
    for header in headers:
        for code, quoted in _WARNING.findall(header):
            text = "".join(filter(str.isprintable, _ESCAPED.sub(r"\1", quoted)))
            if code == _OF_SERVER and text:
                yield text


class UnknownPathError(NoKindMatchError):
    """The path does not exist on the server (404), as opposed to the object.

    The discovered resources are out of date.
    """


def answer_error(code: int, headers: Mapping[str, str], body: bytes, *, request_line: str) -> ApiError:
    """Build the error for an answer outside 2xx.

    Args:
        request_line: The request line, for the message of an answer that is not a Status.
    """
    status = _parsed(body)
    retry_after = _seconds(headers.get("Retry-After"))
    if not isinstance(status, dict) or status.get("kind") != "Status":
        status = {}
    error = status_error(status, code=code, retry_after=retry_after, request_line=request_line)
    if code == _NOT_FOUND and not _mapping(status.get("details")).get("name"):
        return UnknownPathError(
            f"{request_line}: {error.message}" if status else error.message, code=code, reason=error.reason
        )
    return error


def status_error(
    status: Mapping[str, Any], *, request_line: str, code: int | None = None, retry_after: float | None = None
) -> ApiError:
    """Build the error that a Status describes.

    Args:
        status: The Status; missing and malformed fields are ignored.
        code: HTTP status of the answer; None takes the one in the Status, as for an error inside a watch.
        retry_after: Seconds of the `Retry-After` header; None takes `details.retryAfterSeconds`.
    """
    details = _mapping(status.get("details"))
    stated_code = status.get("code")
    if code is None:
        code = stated_code if isinstance(stated_code, int) else 0
    if retry_after is None:
        retry_after = _seconds(details.get("retryAfterSeconds"))
    error = api_error(
        str(status.get("message") or f"{request_line}: HTTP {code} {NO_STATUS_MESSAGE}"),
        code=code,
        reason=str(status.get("reason") or ""),
        causes=_causes(details.get("causes")),
        retry_after=retry_after,
        subject={name: value for name in _SUBJECT if isinstance(value := details.get(name), str) and value},
    )
    return as_client_error(error)


def read_object(body: bytes, *, code: int, request_line: str) -> Manifest:
    """Read the JSON object in a successful answer."""
    value = _parsed(body)
    if isinstance(value, dict):
        return value
    raise ServerError(
        f"{request_line}: HTTP {code}, but the body is not a JSON object; is this an API server?", code=code
    )


def read_list(answer: Manifest, api_version: str, kind: str) -> ObjectList:
    """Read one page of a list.

    The server states the kind once, on the list; here every item has it. The server sorts by its storage key, where
    `a-b/x` comes before `a/x`; here a page is sorted by namespace and name.
    """
    metadata = _mapping(answer.get("metadata"))
    items = [{"apiVersion": api_version, "kind": kind, **item} for item in answer.get("items") or ()]
    return ObjectList(
        items=tuple(sorted(items, key=_name_of)),
        resource_version=str(metadata.get("resourceVersion") or ""),
        continue_token=str(metadata.get("continue") or ""),
        remaining_item_count=metadata.get("remainingItemCount"),
        shard_selector=str(_mapping(metadata.get("shardInfo")).get("selector") or ""),
    )


def read_event(line: bytes, *, request_line: str) -> WatchEvent:
    """Read one line of a watch.

    Args:
        line: A JSON object with `type` and `object`.
    """
    event = _parsed(line)
    kind, content = (event.get("type"), event.get("object")) if isinstance(event, dict) else (None, None)
    if kind == "ERROR":
        raise status_error(_mapping(content), request_line=request_line)
    event_type = _EVENT_TYPES.get(kind) if isinstance(kind, str) else None
    if event_type is None or not isinstance(content, dict):
        raise ServerError(f"{request_line}: a line of the watch is not an event; is this an API server?")
    return WatchEvent(event_type, content)


def _parsed(body: bytes) -> Any:
    try:
        return from_json(body)
    except ValueError:
        # It rejects nesting beyond 200 levels and surrogates without a partner, which are valid JSON.
        return _parsed_slowly(body)


def _parsed_slowly(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):  # a UnicodeDecodeError is a ValueError, too
        return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _seconds(value: Any) -> float | None:
    """Parse a number of seconds; a `Retry-After` may also be a date, which API servers never send."""
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


def _name_of(item: Manifest) -> tuple[str, str]:
    metadata = _mapping(item.get("metadata"))
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


# A chunk may end anywhere in a line. A line may be as long as the largest object (megabytes), so chunks are kept and
# joined once, at the end of their line.
@dataclass(slots=True)
class LineBuffer:
    r"""Assembles lines from chunks.

    Example:
        >>> lines = LineBuffer()
        >>> lines.feed(b'{"type":'), lines.unfinished, lines.pending
        ([], True, 8)
        >>> lines.feed(b'"ADDED"}\n\n'), lines.unfinished
        ([b'{"type":"ADDED"}'], False)
    """

    pending: int = field(default=0, init=False)
    """The number of bytes of the incomplete line."""
    _chunks: list[bytes] = field(default_factory=list, init=False, repr=False)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add a chunk and return the lines that it completes.

        Args:
            chunk: The next bytes of the stream.
        """
        first, *others = chunk.split(b"\n")
        self._chunks.append(first)
        if not others:
            self.pending += len(first)
            return []
        lines = [b"".join(self._chunks), *others[:-1]]
        self._chunks = others[-1:]
        self.pending = len(others[-1])
        return [line for line in lines if line.strip()]

    @property
    def unfinished(self) -> bool:
        """Whether the last line is incomplete."""
        return any(chunk.strip() for chunk in self._chunks)
