"""Reading any path of an API server, and again where it asks for a little time.

The controller's client does so with every read, so a moment in which a server has too much to do fails no metric.
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
_LONGEST: Final = timedelta(seconds=10)
_TOO_MANY: Final = 429
_FIRST_SERVER_CODE: Final = 500


class PathReader(Protocol):
    """Reads any path of an API server, as `ApiServerCluster` does."""

    async def read_path(
        self, path: str, query: Sequence[tuple[str, str]] = (), *, most_bytes: int | None = None
    ) -> Manifest:
        """Return the JSON object at a path; raises `ApiError`, with an empty `reason` where the answer is no Status."""
        ...


class RetryingReader:
    """Reads again where the answer is 429, or 500 and above, and says when to come back; ten times at the most.

    Args:
        reader: The API server.
        longest: For how long to wait in all. The controller's client waits for as long as it is told to, and keeps one
            of its workers waiting with it.

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
    """Return for how many seconds to wait; None where nobody asks for that."""
    asked = error.code == _TOO_MANY or error.code >= _FIRST_SERVER_CODE
    return error.retry_after if asked else None
