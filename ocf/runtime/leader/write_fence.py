"""A cluster that only a leader can write to.

Cancelling the leader's work is not enough: work may go on for a while before it notices, or hold a loop for so long
that a write is the first thing it does after its lease has run out. So every write asks first.
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
    """A cluster that refuses writes while a question is answered with no; reads pass.

    Args:
        cluster: The cluster.
        allowed: The question.
        lease: What is said to be lost.
    """

    def __init__(self, cluster: Cluster, allowed: Callable[[], bool], lease: ObjectKey) -> None:
        super().__init__(cluster)
        self._allowed = allowed
        self._lease = lease

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        """Send a read, and a write while it is allowed."""
        if not (request.verb.is_read or self._allowed()):
            raise ForbiddenError(
                f"the lease {self._lease.namespace}/{self._lease.name} is lost, and with it the right to write",
                code=_FORBIDDEN,
                reason="LeaseLost",
            )
        return await send()
