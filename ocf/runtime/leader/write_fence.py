"""`FencedCluster`: a cluster that only the leader can write to.

Cancelling the work of a leader is not enough: the work may handle the cancellation late, or block the event loop for so
long that it writes after the lease has expired. So the lease is checked before every write.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from ocf.cluster import Cluster, InterceptingCluster, Request
from ocf.errors import ForbiddenError
from ocf.objects import ObjectKey

__all__ = ["FencedCluster"]

_FORBIDDEN: Final = 403


class FencedCluster(InterceptingCluster):
    """A cluster that rejects writes while they are not allowed; reads are always allowed.

    Args:
        cluster: The cluster.
        allowed: Returns whether writes are allowed.
        lease: The key of the lease, for the message.
    """

    def __init__(self, cluster: Cluster, allowed: Callable[[], bool], lease: ObjectKey) -> None:
        super().__init__(cluster)
        self._allowed = allowed
        self._lease = lease

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        """Send the request if it is a read, or if writes are allowed."""
        if not (request.verb.is_read or self._allowed()):
            raise ForbiddenError(
                f"the lease {self._lease.namespace}/{self._lease.name} is lost, so this process must not write",
                code=_FORBIDDEN,
                reason="LeaseLost",
            )
        return await send()
