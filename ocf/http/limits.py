"""Limits of an HTTP server, and which connections they close.

A connection costs the process a file, and files are what its own connections to the API server need as well. So a
server holds a share of the files that the process may open, and no client can keep one without using it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from ocf.concepts.open_files import open_files_limit

__all__ = ["Limits", "Waiting", "WaitsFor", "connections_within", "longest_waiting"]

T = TypeVar("T")

# So that a server works at all where a process may open very few files.
_FEWEST: Final = 8


class WaitsFor(StrEnum):
    """What the server needs from a client before it can go on."""

    HEADERS = "headers"
    """The TLS handshake and the headers of the first request, or the rest of the headers of a later one."""
    REQUEST = "request"
    """The next request."""
    BODY = "body"
    """The body of a request."""
    READING = "reading"
    """That the client reads the response."""


_REASONS: Final[Mapping[WaitsFor, str]] = {
    WaitsFor.HEADERS: "without complete headers after {:g} s",
    WaitsFor.REQUEST: "without a request for {:g} s",
    WaitsFor.BODY: "without a complete body after {:g} s",
    WaitsFor.READING: "that did not read a response for {:g} s",
}


@dataclass(frozen=True, slots=True)
class Waiting:
    """That a server waits for a client.

    Args:
        what: What it waits for.
        since: Since when, in seconds of the clock of the event loop.
        progress: When the client was last seen to read a part of its response.
    """

    what: WaitsFor
    since: float
    progress: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of an HTTP server; times are in seconds, and None is without limit.

    The defaults for headers and idle connections are those of controller-runtime and of the API server.

    Args:
        connections: Maximum number of open connections.
        headers: How long a TLS handshake and the headers of the first request may take, or those of a later request.
        idle: How long a connection without a request stays open.
        body: How long a client may take to send a body.
        reading: How long a client may read nothing of a response that it was sent.
        line_bytes: Maximum size of the request line, and of a header.
        half_closed: Whether a client that sends nothing more keeps its connection until it has its response. A client
            that is gone looks the same until something is sent to it, so its request is not cancelled.
    """

    connections: int
    headers: float = 32.0
    idle: float = 90.0
    body: float | None = 60.0
    reading: float | None = 60.0
    line_bytes: int = 8190
    half_closed: bool = False

    def is_overdue(self, waiting: Waiting, now: float) -> bool:
        """Return whether a client has let the server wait for too long.

        Args:
            waiting: What the server waits for.
            now: The time of the event loop.

        Example:
            >>> limits = Limits(connections=8)
            >>> [limits.is_overdue(Waiting(WaitsFor.HEADERS, 10.0), now) for now in (41.9, 42.0)]
            [False, True]
        """
        longest = self._times[waiting.what]
        return longest is not None and now - max(waiting.since, waiting.progress) >= longest

    def reason(self, what: WaitsFor) -> str:
        """Return a description of the connections that are closed because a client has let the server wait too long.

        Args:
            what: What the server waited for.

        Example:
            >>> Limits(connections=8).reason(WaitsFor.HEADERS)
            'without complete headers after 32 s'
        """
        return _REASONS[what].format(self._times[what])

    @property
    def _times(self) -> Mapping[WaitsFor, float | None]:
        return {
            WaitsFor.HEADERS: self.headers,
            WaitsFor.REQUEST: self.idle,
            WaitsFor.BODY: self.body,
            WaitsFor.READING: self.reading,
        }


def longest_waiting(connections: Iterable[tuple[T, Waiting | None]]) -> T | None:
    """Return the connection whose client has let the server wait for longest; None if it waits for no client.

    A client that reads a long response keeps the server waiting since it has read the last part of it.

    Args:
        connections: Connections, and what the server waits for; None while it processes a request.

    Example:
        >>> watch = ("a watch", None)
        >>> longest_waiting([watch, ("old", Waiting(WaitsFor.REQUEST, 1.0)), ("new", Waiting(WaitsFor.HEADERS, 2.0))])
        'old'
        >>> longest_waiting([watch])
    """
    found = [
        (max(waiting.since, waiting.progress), position, one)
        for position, (one, waiting) in enumerate(connections)
        if waiting
    ]
    return min(found, key=lambda each: each[:2])[2] if found else None


def connections_within(share: float, most: int | None = None, *, files: int | None = None) -> int:
    """Return how many connections a server may hold.

    Args:
        share: The share of the files that the process may open.
        most: Maximum, whatever the share is; None for no other maximum.
        files: How many files the process may open; None asks the operating system.

    Example:
        >>> connections_within(1 / 8, 128, files=1024), connections_within(1 / 4, 512, files=1024)
        (128, 256)
        >>> connections_within(1 / 4, 512, files=1_048_576), connections_within(1 / 4, 512, files=16)
        (512, 8)
    """
    files = open_files_limit() if files is None else files
    shared = max(_FEWEST, int(files * share))
    return shared if most is None else min(shared, most)
