"""Shared reads: several autoscalers use the result of one request."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any, TypeVar

from ocf.controllers.hpa.snapshot.namespace_usage import NamespaceUsage
from ocf.controllers.metrics_client import MetricsClient
from ocf.controllers.metrics_client.usage import PodUsage
from ocf.errors import ServerError
from ocf.objects import Manifest
from ocf.objects.selectors import LabelSelector

__all__ = ["SharedMetrics", "SingleFlight", "parse_label_selector", "with_timeout"]

T = TypeVar("T")


class SingleFlight:
    """Runs each piece of work once, and shares its result or error with all callers.

    The work runs in its own task, so it goes on if one of the callers is cancelled.
    """

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[Any]] = {}

    async def do(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of some work; start it if no caller has yet.

        Args:
            key: Identifies the work.
            work: Starts the work.

        Raises:
            Exception: The error of `work`.
            ServerError: If `close` cancelled it.
        """
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.create_task(work())
            task.add_done_callback(_seen)
        if not task.done():
            await asyncio.wait([task])  # unlike `await task`, does not propagate cancellation in either direction
        if task.cancelled():
            # A CancelledError would cancel the caller, which has not been cancelled.
            raise ServerError("the read was cancelled: the snapshot reader was closed")
        result: T = task.result()
        return result

    @property
    def busy(self) -> bool:
        """Whether work is running."""
        return not all(task.done() for task in self._tasks.values())

    async def close(self) -> None:
        """Cancel running work, and wait until it has ended."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


class SharedMetrics:
    """A client of the metrics APIs that sends each request once.

    Resource usage is read once for a whole namespace, and selectors are applied here to the labels of each entry; an
    API that gets a selector applies it to the same labels. If an entry has no labels, as with some implementations of
    the API, the request is sent with the selector. All other requests are sent unchanged, each once.

    Args:
        api: The client that sends the requests.
        flight: The requests sent so far.
        timeout: How long to wait for each response; None for no limit. A later one is an error.
    """

    def __init__(self, api: MetricsClient, flight: SingleFlight, *, timeout: timedelta | None = None) -> None:
        self._api = api
        self._flight = flight
        self._timeout = timeout

    async def usage(self, namespace: str, selector: str) -> Sequence[PodUsage]:
        """Return the usage of resources by pod; as `UsageClient`."""
        found = await self._flight.do(("usage", namespace), lambda: self._usage(namespace))
        if found is None:
            entries = await self._ask(
                ("usage", namespace, selector), lambda: self._api.pod_metrics(namespace, selector)
            )
            return [PodUsage(entry) for entry in entries]
        return found.select(parse_label_selector(selector))

    async def pod_metrics(self, namespace: str, selector: str = "") -> Sequence[Any]:
        """Return the usage of resources by pod; as `MetricsClient`."""
        return [usage.entry for usage in await self.usage(namespace, selector)]

    async def pods_metric(
        self, namespace: str, metric: str, *, selector: str = "", metric_selector: str = ""
    ) -> Sequence[Any]:
        """Return a measurement of pods; as `MetricsClient`."""
        return await self._ask(
            ("pods", namespace, metric, selector, metric_selector),
            lambda: self._api.pods_metric(namespace, metric, selector=selector, metric_selector=metric_selector),
        )

    async def object_metric(
        self, namespace: str, described: Manifest, metric: str, *, metric_selector: str = ""
    ) -> Sequence[Any]:
        """Return a measurement of one object; as `MetricsClient`."""
        identity = tuple(str(described.get(part) or "") for part in ("apiVersion", "kind", "name"))
        return await self._ask(
            ("object", namespace, identity, metric, metric_selector),
            lambda: self._api.object_metric(namespace, described, metric, metric_selector=metric_selector),
        )

    async def external_metric(self, namespace: str, metric: str, *, selector: str = "") -> Sequence[Any]:
        """Return a measurement of anything outside of the cluster; as `MetricsClient`."""
        return await self._ask(
            ("external", namespace, metric, selector),
            lambda: self._api.external_metric(namespace, metric, selector=selector),
        )

    async def _ask(self, key: Hashable, ask: Callable[[], Awaitable[Sequence[Any]]]) -> Sequence[Any]:
        return await self._flight.do(key, lambda: self._answer(ask))

    async def _answer(self, ask: Callable[[], Awaitable[Sequence[Any]]]) -> Sequence[Any]:
        return await with_timeout(ask(), self._timeout)

    async def _usage(self, namespace: str) -> NamespaceUsage | None:
        """Return all entries of a namespace by their labels; None if an entry has no labels."""
        return NamespaceUsage.of(await self._answer(lambda: self._api.pod_metrics(namespace)))


async def with_timeout(work: Awaitable[T], limit: timedelta | None) -> T:
    """Return a result, or raise if it takes too long.

    Args:
        work: The work; it is cancelled when the time is over.
        limit: How long it may take; None for no limit.
    """
    if limit is None:
        return await work
    try:
        async with asyncio.timeout(limit.total_seconds()):
            return await work
    except TimeoutError as error:
        raise ServerError(f"no answer within {limit.total_seconds():g} s") from error


@lru_cache(maxsize=4096)
def parse_label_selector(text: str) -> LabelSelector:
    """Parse a selector, with a cache: that of an autoscaler is the same in every sync.

    Args:
        text: The selector; it was checked before.
    """
    return LabelSelector.parse(text)


def _seen(task: asyncio.Task[Any]) -> None:
    """Mark the error of a task as retrieved, in case every caller was cancelled."""
    if not task.cancelled():
        task.exception()
