"""Reads that many share: what one autoscaler asked for, the next one need not ask again."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from ocf.controllers.hpa.snapshot.label_index import LabelIndex
from ocf.controllers.metrics_client import MetricsClient
from ocf.errors import ServerError
from ocf.objects import LabelSelector, Manifest

__all__ = ["SharedMetrics", "SingleFlight"]

T = TypeVar("T")


class SingleFlight:
    """Does each thing once; whoever asks later gets what came of it, an error too, and whoever asks meanwhile waits.

    What is under way is a task of its own, so nobody who gives up takes it from the others.
    """

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[Any]] = {}

    async def do(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what came of a thing, after doing it if nobody has yet.

        Args:
            key: What is done.
            work: Does it.

        Returns:
            What `work` returned.

        Raises:
            Exception: What `work` raised.
            ServerError: If it was ended by `close`.
        """
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.create_task(work())
            task.add_done_callback(_seen)
        await asyncio.wait([task])  # unlike `await task`, passes no cancellation on in either direction
        if task.cancelled():
            raise ServerError("what was being read was given up: the observer was closed")
        result: T = task.result()
        return result

    @property
    def busy(self) -> bool:
        """Whether something is under way."""
        return not all(task.done() for task in self._tasks.values())

    async def close(self) -> None:
        """End what is under way, and wait for that."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


class SharedMetrics:
    """Metrics APIs that are asked once for what many want to know.

    The usage of resources is read once for a whole namespace, and a selector is applied here to the labels that each
    entry carries: an API that is asked with a selector applies it to the same labels. Where an entry has none, which
    not every such API tells, it is asked with the selector. All other questions are asked as they are, each once.

    Args:
        api: Who is asked.
        once: What has been asked.
    """

    def __init__(self, api: MetricsClient, flight: SingleFlight) -> None:
        self._api = api
        self._flight = flight

    async def pod_metrics(self, namespace: str, selector: str = "") -> Sequence[Any]:
        """Return the usage of resources by pod; as `MetricsClient`."""
        found = await self._flight.do(("usage", namespace), lambda: self._usage(namespace))
        if found is None:
            return await self._ask(("usage", namespace, selector), lambda: self._api.pod_metrics(namespace, selector))
        return found.matching(LabelSelector.parse(selector))

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
        async def work() -> Sequence[Any]:
            return await ask()

        return await self._flight.do(key, work)

    async def _usage(self, namespace: str) -> LabelIndex[Any] | None:
        """Return all entries of a namespace by their labels; None if one of them does not tell any."""
        entries = await self._api.pod_metrics(namespace)
        labels = [_labels(entry) for entry in entries]
        told = [(each, entry) for each, entry in zip(labels, entries, strict=True) if each]
        return LabelIndex(told) if len(told) == len(entries) else None


def _seen(task: asyncio.Task[Any]) -> None:
    """Keep asyncio from reporting an error as lost where everybody who waited has been cancelled."""
    if not task.cancelled():
        task.exception()


def _labels(entry: Any) -> Mapping[str, str] | None:
    """Return the labels of an entry; None where it has none, or what cannot be labels."""
    metadata = entry.get("metadata") if isinstance(entry, Mapping) else None
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    if isinstance(labels, Mapping) and all(isinstance(part, str) for pair in labels.items() for part in pair):
        return labels
    return None
