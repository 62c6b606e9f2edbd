"""Retry of a write that names the resourceVersion that was read, after another writer was faster.

Source: `retry.RetryOnConflict` of client-go, https://pkg.go.dev/k8s.io/client-go/util/retry.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from ocf.errors import ConflictError

__all__ = ["MOST_TRIES", "retry_on_conflict"]

# That of client-go's `DefaultRetry`, for writers that do not all change the same object at once.
MOST_TRIES: Final = 5
"""The number of writes before the conflict is raised."""

_Read = TypeVar("_Read")
_Written = TypeVar("_Written")


async def retry_on_conflict(
    read: Callable[[], Awaitable[_Read]],
    write: Callable[[_Read], Awaitable[_Written]],
    *,
    live: _Read | None = None,
    tries: int = MOST_TRIES,
) -> _Written:
    """Read and write; after a conflict, read and write again. Only a `ConflictError` of a write is retried.

    Args:
        read: Reads what the write is computed from; every retry reads, or it would send the same resourceVersion.
        live: What was read before, for the first write; None reads it.
        tries: The number of writes; the conflict of the last one is raised.
    """
    seen = await read() if live is None else live
    for _ in range(tries - 1):
        try:
            return await write(seen)
        except ConflictError:
            seen = await read()
    return await write(seen)
