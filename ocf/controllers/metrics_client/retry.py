"""Reads of API server paths, retried if the server asks for it.

The built-in controller's client retries every read, so a short overload of a server does not make a metric fail.
Source: client-go, `rest/with_retry.go`.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, Protocol

from ocf.errors import ApiError
from ocf.objects import Manifest

__all__ = ["PathReader", "RetryingReader"]

_RETRIES: Final = 10
# As long as a reader waits for the response itself.
_LONGEST: Final = timedelta(minutes=1)
_TOO_MANY: Final = 429
_FIRST_SERVER_CODE: Final = 500


class PathReader(Protocol):
    """Reads any path of an API server, as `ApiServerCluster` does."""

    async def read_path(
        self, path: str, query: Sequence[tuple[str, str]] = (), *, most_bytes: int | None = None
    ) -> Manifest:
        """Return the JSON object at a path; raise `ApiError`, without a `reason` if the response is not a Status."""
        ...


class RetryingReader:
    """Retries a read up to ten times if the response is 429 or at least 500, and has a `Retry-After`.

    Args:
        reader: The API server.
        longest: The total time to wait. The built-in controller's client has no such limit; it waits as long as the
            server asks, and blocks one of its workers.

    Example:
        >>> from ocf.cluster.client import ApiServerCluster
        >>> async def version(cluster: ApiServerCluster) -> str:
        ...     return str((await RetryingReader(cluster).read_path("/version"))["gitVersion"])
    """

    def __init__(self, reader: PathReader, *, longest: timedelta = _LONGEST) -> None:
        self._reader = reader
        self._longest = longest.total_seconds()

    async def read_path(
        self, path: str, query: Sequence[tuple[str, str]] = (), *, most_bytes: int | None = None
    ) -> Manifest:
        """Return the JSON object at a path; as `PathReader`."""
        left = self._longest
        for _ in range(_RETRIES):
            try:
                return await self._reader.read_path(path, query, most_bytes=most_bytes)
            except ApiError as error:
                pause = _pause(error)
                if pause is None or pause > left:
                    raise
            await asyncio.sleep(pause)
            left -= pause
        return await self._reader.read_path(path, query, most_bytes=most_bytes)


def _pause(error: ApiError) -> float | None:
    """Return how many seconds to wait; None if the error must not be retried."""
    asked = error.code == _TOO_MANY or error.code >= _FIRST_SERVER_CODE
    return error.retry_after if asked else None
