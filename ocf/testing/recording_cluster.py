"""Cluster that records its requests, for clusters without a request log."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from ocf.cluster import ApplyCache, Cluster, Request
from ocf.cluster.interceptor import InterceptingCluster, is_write
from ocf.cluster.request_log import RequestLog
from ocf.errors import ApiError

__all__ = ["RecordingCluster"]


class RecordingCluster(InterceptingCluster):
    """A cluster that wraps any other one and records the requests to it.

    Args:
        cluster: The wrapped cluster.
        apply_cache: The apply cache of the operator that uses this cluster; None shares that of `cluster`.

    Attributes:
        requests: The requests, oldest first. A wrapper cannot see whether a request changed an object, so `changed` and
            `changes` are never set.

    Example:
        >>> import asyncio
        >>> from ocf_server import EmbeddedCluster
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
        """The write requests, including rejected ones and without dry runs."""
        return tuple(request for request in self.requests if is_write(request))

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        """Send a request and record it with the status code of the response."""
        try:
            answer = await send()
        except ApiError as error:
            self.requests.record(replace(request, code=error.code))
            raise
        self.requests.record(request)
        return answer
