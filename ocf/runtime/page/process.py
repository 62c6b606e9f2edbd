"""The page of one process: what it records, and where it is served."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Final

from ocf.runtime.page.timeline import OperatorTimeline, Timeline
from ocf.runtime.page.view import ProcessView, RequestCounter

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.concepts import Clock
    from ocf.objects import ObjectKey
    from ocf.runtime.monitoring.http_server import Endpoints
    from ocf.runtime.page.options import PageOptions

__all__ = ["Page"]


class Page:
    """The page of a process.

    Attributes:
        view: What it shows of the owners.
        timeline: What it shows of reconciles.
        address: Its address; None before it is served.
    """

    def __init__(self, options: PageOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._counter = RequestCounter()
        self.view: Final = ProcessView(clock)
        self.timeline: Final = Timeline()
        self.address: Endpoints | None = None

    def counting(self, cluster: Cluster) -> Cluster:
        """Return the cluster of the process, whose requests are counted."""
        return self._counter.counting(cluster)

    def recorder(
        self, operator: str, within: Callable[[ObjectKey], AbstractContextManager[object]]
    ) -> OperatorTimeline:
        """Return what records the reconciles of an operator, each in another block."""
        return OperatorTimeline(self.timeline, operator, self._clock, within)

    @asynccontextmanager
    async def serving(self, cluster: Cluster) -> AsyncIterator[None]:
        """Serve the page for as long as the block runs."""
        # The server is loaded only where there is a page.
        from ocf.runtime.page.server import serving_page

        served = serving_page(self._options, cluster, self.view, self.timeline, self._counter)
        async with served as self.address:
            yield
