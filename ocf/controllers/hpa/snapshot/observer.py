"""`SnapshotReader`: from an HPA to everything that a round of the controller sees of it."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Self, TypeVar

from ocf.autoscaling.algorithm import (
    Autoscaler,
    Metric,
    MetricValues,
    Pod,
    Scale,
    Settings,
    Snapshot,
    Status,
    Unavailable,
    early_exit_rule,
)
from ocf.cluster import Cluster, ListOptions
from ocf.concepts import Clock, SystemClock
from ocf.controllers.hpa.snapshot.label_index import LabelIndex
from ocf.controllers.hpa.snapshot.scale_getter import ScaleGetter, SubresourceScaleGetter
from ocf.controllers.hpa.snapshot.selector_index import SelectorIndex
from ocf.controllers.hpa.snapshot.single_flight import SharedMetrics, SingleFlight
from ocf.controllers.metrics_client import MetricsClient, read_metric
from ocf.errors import ApiError, ManifestError, QuantityError, ServerError
from ocf.objects import LabelSelector, Manifest, ObjectKey

__all__ = ["HpaSnapshot", "SnapshotReader"]

T = TypeVar("T")
_DEFAULTS: Final = Settings()
_MAX_READ_AGE: Final = timedelta(seconds=5)
_REQUEST_TIMEOUT: Final = timedelta(seconds=10)
_NOT_ASKED: Final = Unavailable("it was not asked for")


@dataclass(frozen=True, slots=True)
class HpaSnapshot:
    """What was seen of one HPA.

    Args:
        snapshot: What the step takes.
        target: What the HPA scales, as its `scaleTargetRef` names it.
        scale: The Scale as it was read, with the `resourceVersion` that a write of it needs; None if there is none.
    """

    snapshot: Snapshot
    target: ObjectKey
    scale: Manifest | None = None


class _SharedReads:
    """What was read since an instant."""

    def __init__(self, cluster: Cluster, metrics: MetricsClient, started: timedelta) -> None:
        self.started = started
        self.flight = SingleFlight()
        self.metrics = SharedMetrics(metrics, self.flight)
        self._cluster = cluster

    async def pods(self, namespace: str) -> LabelIndex[Manifest]:
        return await self.flight.do(("pods", namespace), lambda: self._pods(namespace))

    async def _pods(self, namespace: str) -> LabelIndex[Manifest]:
        found = await self._cluster.list("v1", "Pod", ListOptions(namespace=namespace))
        return LabelIndex((pod["metadata"].get("labels") or {}, pod) for pod in found.items)


class SnapshotReader:
    """Gathers what a round of the HPA controller sees, for many HPAs with few requests.

    The pods of a namespace and the usage of their resources are read once for all HPAs of the namespace, and the same
    custom or external metric is read once for all that want it. Whoever asks while something is being read waits for
    that. What was read is used for `max_age`, counted from the first read that shares it; afterwards everything is
    read anew. So nothing in an observation is older than `max_age` when the observation begins; a Scale is always
    read for the one who asks.

    With pods and targets from a `CachedCluster` and `DerivedScaleGetter`, the number of requests to the API server
    grows with the namespaces and with the different custom and external metrics, but not with the HPAs.

    Args:
        cluster: Where pods and targets are.
        metrics: Who measures.
        scales: Where Scales come from; None reads the subresource through `cluster`.
        selectors: What is known of the other HPAs; None starts with nothing, as a controller does.
        settings: The controller's settings; its features tell which HPAs need no metrics.
        clock: Tells how old a read is.
        max_age: For how long a read is shared, and never longer than the sync period of the HPA that asks. Zero shares
            nothing.
        patience: How long to wait for each answer; later ones count as none, so that one slow API keeps nobody from
            looking at the HPAs that do not need it.

    Example:
        >>> from datetime import UTC, datetime
        >>> from ocf.autoscaling.algorithm import decide
        >>> from ocf.embedded import EmbeddedCluster
        >>> from ocf.testing.fake_metrics import FakeMetricsClient
        >>> labels = {"app": "web"}
        >>> template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "web"}]}}
        >>> web = {
        ...     "apiVersion": "apps/v1",
        ...     "kind": "Deployment",
        ...     "metadata": {"name": "web", "namespace": "shop"},
        ...     "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
        ... }
        >>> queue = {"metric": {"name": "queue_length"}, "target": {"type": "AverageValue", "averageValue": "10"}}
        >>> hpa = {
        ...     "apiVersion": "autoscaling/v2",
        ...     "kind": "HorizontalPodAutoscaler",
        ...     "metadata": {"name": "web", "namespace": "shop"},
        ...     "spec": {
        ...         "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        ...         "maxReplicas": 9,
        ...         "metrics": [{"type": "External", "external": queue}],
        ...     },
        ... }
        >>> async def main() -> None:
        ...     cluster, measured = EmbeddedCluster(namespaces=("shop",)), FakeMetricsClient()
        ...     await cluster.create(web, field_manager="demo")
        ...     measured.set_external("shop", "queue_length", "38")
        ...     async with SnapshotReader(cluster, measured) as observer:
        ...         seen = (await observer.observe(hpa)).snapshot
        ...     print(seen.metric_values, decide(seen, now=datetime(2026, 1, 31, tzinfo=UTC)).desired)
        >>> asyncio.run(main())
        ((38000,),) 4
    """

    def __init__(  # noqa: PLR0913 (settings, by keyword)
        self,
        cluster: Cluster,
        metrics: MetricsClient,
        *,
        scales: ScaleGetter | None = None,
        selectors: SelectorIndex | None = None,
        settings: Settings = _DEFAULTS,
        clock: Clock | None = None,
        max_age: timedelta = _MAX_READ_AGE,
        request_timeout: timedelta = _REQUEST_TIMEOUT,
    ) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self._scales = scales or SubresourceScaleGetter(cluster)
        self.selectors = selectors if selectors is not None else SelectorIndex()
        """What is known of the HPAs; whoever learns that one is gone lets it be forgotten here."""
        self._settings = settings
        self._clock = clock or SystemClock()
        self._max_age = max_age
        self._request_timeout = request_timeout
        self._shared: list[_SharedReads] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Give up what is being read; whoever waits for it learns that it could not be read."""
        await asyncio.gather(*(sync.flight.close() for sync in self._shared))

    async def observe(self, hpa: Manifest, *, settings: Settings | None = None) -> HpaSnapshot:
        """Gather what a round sees of an HPA.

        Whatever cannot be read is a value: `Unavailable` in the place of the scale or of a reading, with the message
        that the controller would tell. Metrics are asked for only where the round will look at them. The pods' selector
        is remembered for the other HPAs.

        Args:
            hpa: The HPA, autoscaling/v2, with its status.
            settings: The settings for this HPA; None takes those of the observer.

        Returns:
            What was seen.

        Raises:
            ManifestError: If the HPA itself cannot be read; no API server stores such a one.
            ValueError: If a time in its status is none.
        """
        autoscaler, status = Autoscaler.of(hpa), Status.of(hpa.get("status"))
        target = ObjectKey(autoscaler.api_version, autoscaler.kind, autoscaler.target, autoscaler.namespace)
        found = await self._scale(target)
        scale = found if isinstance(found, Unavailable) else Scale.of(found)
        written = None if isinstance(found, Unavailable) else found
        seen = Snapshot(autoscaler=autoscaler, status=status, scale=scale)
        holding = settings or self._settings
        if isinstance(scale, Scale) and not early_exit_rule(autoscaler, scale, status.conditions, holding):
            seen = await self._with_metrics(seen, scale.selector, min(self._max_age, holding.sync_period))
        return HpaSnapshot(seen, target, written)

    async def _scale(self, target: ObjectKey) -> Manifest | Unavailable:
        if target.api_version.count("/") > 1:
            return _NOT_ASKED  # the step says what is wrong with it
        try:
            return await self._with_timeout(self._scales.scale(target))
        except ApiError as error:
            return Unavailable(error.message)
        except ManifestError as error:
            return Unavailable(str(error))

    async def _with_metrics(self, seen: Snapshot, selector: str, max_age: timedelta) -> Snapshot:
        """Return a snapshot with pods and readings, as far as the round gets to look at them."""
        parsed = _parsed(selector)
        if parsed is None:
            return seen
        autoscaler, sync = seen.autoscaler, self._shared_reads(max_age)
        self.selectors.put(autoscaler.namespace, autoscaler.name, parsed)
        pods = await self._pods(sync, autoscaler.namespace, parsed)
        if isinstance(pods, Unavailable):
            return _with(seen, (), [pods] * len(autoscaler.metrics))
        others = self.selectors.others(autoscaler.namespace, autoscaler.name, [pod.labels for pod in pods])
        if others:
            return Snapshot(
                autoscaler=autoscaler, status=seen.status, scale=seen.scale, pods=tuple(pods), others=others
            )
        written = str(parsed)
        asked = [self._metric_values(sync, metric, autoscaler.namespace, written) for metric in autoscaler.metrics]
        return _with(seen, pods, await asyncio.gather(*asked))

    async def _pods(self, sync: _SharedReads, namespace: str, selector: LabelSelector) -> list[Pod] | Unavailable:
        """Return the pods that a selector means; what keeps us from knowing them makes every metric unusable."""
        try:
            return [Pod.of(pod) for pod in (await self._with_timeout(sync.pods(namespace))).matching(selector)]
        except ApiError as error:
            return Unavailable(f"unable to list pods: {error.message}")
        except (QuantityError, ValueError) as error:
            return Unavailable(f"unable to read pods: {error}")

    async def _metric_values(self, sync: _SharedReads, metric: Metric, namespace: str, selector: str) -> MetricValues:
        try:
            return await self._with_timeout(read_metric(sync.metrics, metric, namespace=namespace, selector=selector))
        except ApiError as error:
            return Unavailable(error.message)

    async def _with_timeout(self, work: Awaitable[T]) -> T:
        """Return what comes of something, unless it takes too long."""
        try:
            async with asyncio.timeout(self._request_timeout.total_seconds()):
                return await work
        except TimeoutError as error:
            raise ServerError(f"no answer within {self._request_timeout.total_seconds():g} s") from error

    def _shared_reads(self, max_age: timedelta) -> _SharedReads:
        now = self._clock.elapsed()
        current = self._shared[-1] if self._shared else None
        if current is None or now - current.started >= max_age:
            current = _SharedReads(self._cluster, self._metrics, now)
            self._shared = [*(sync for sync in self._shared if sync.flight.busy), current]
        return current


def _with(seen: Snapshot, pods: Sequence[Pod], readings: Sequence[MetricValues]) -> Snapshot:
    return Snapshot(
        autoscaler=seen.autoscaler,
        status=seen.status,
        scale=seen.scale,
        pods=tuple(pods),
        metric_values=tuple(readings),
    )


def _parsed(selector: str) -> LabelSelector | None:
    """Read the selector of a scale; None for one that the step refuses."""
    try:
        return LabelSelector.parse(selector) if selector else None
    except ManifestError:
        return None
