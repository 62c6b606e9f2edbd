"""A cluster that writes down what is asked of it, for clusters that keep no log of their own."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from ocf.cluster import ApplyCache, Cluster, Request, RequestLog
from ocf.cluster.interceptor import InterceptingCluster, is_write
from ocf.errors import ApiError

__all__ = ["RecordingCluster"]


class RecordingCluster(InterceptingCluster):
    """A cluster that keeps a log of the requests to another one, whatever that is.

    Args:
        cluster: The cluster that does the work.
        apply_cache: The memory of the operator that uses this one; None shares that of `cluster`.

    Attributes:
        requests: What was asked, oldest first. Whether a request changed something cannot be seen from outside, so
            `changed` and `changes` stay off.

    Example:
        >>> import asyncio
        >>> from ocf.embedded import EmbeddedCluster
        >>> cluster = RecordingCluster(EmbeddedCluster())
        >>> _ = asyncio.run(cluster.list("v1", "Namespace"))
        >>> cluster.requests.reads, cluster.writes
        (1, ())
    """

    def __init__(self, cluster: Cluster, *, apply_cache: ApplyCache | None = None) -> None:
        super().__init__(cluster, apply_cache=apply_cache)
        self.requests = RequestLog()

    @property
    def writes(self) -> tuple[Request, ...]:
        """The requests that may have changed something, refused ones included and dry runs left out."""
        return tuple(request for request in self.requests if is_write(request))

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        """Send a request and note it with the code that came back."""
        try:
            answer = await send()
        except ApiError as error:
            self.requests.record(replace(request, code=error.code))
            raise
        self.requests.record(request)
        return answer
