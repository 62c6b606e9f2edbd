"""`SnapshotReader`: read the target, pods and metrics of an HPA."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Self

from ocf.autoscaling.algorithm import Autoscaler, Metric, Pod, Scale, Settings, Snapshot, Status, Unavailable
from ocf.autoscaling.algorithm.early_exit import early_exit_rule
from ocf.autoscaling.algorithm.snapshot import MetricValues
from ocf.cluster import Cluster
from ocf.concepts import Clock, SystemClock
from ocf.controllers.hpa.snapshot.pods import NamespacePods, PodIndex, list_pods
from ocf.controllers.hpa.snapshot.scale_getter import ScaleGetter, SubresourceScaleGetter
from ocf.controllers.hpa.snapshot.selector_index import SelectorIndex
from ocf.controllers.hpa.snapshot.single_flight import (
    SharedMetrics,
    SingleFlight,
    parse_label_selector,
    with_timeout,
)
from ocf.controllers.metrics_client import MetricsClient
from ocf.controllers.metrics_client.query import read_metric
from ocf.errors import ApiError, ManifestError, QuantityError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.selectors import LabelSelector

__all__ = ["HpaSnapshot", "SnapshotReader"]

_DEFAULTS: Final = Settings()
_MAX_READ_AGE: Final = timedelta(seconds=5)
# After a minute, the API server itself gives up on an API that it forwards to.
_REQUEST_TIMEOUT: Final = timedelta(minutes=1)
_NOT_REQUESTED: Final = Unavailable("it was not requested")


@dataclass(frozen=True, slots=True)
class HpaSnapshot:
    """The snapshot of one HPA, and what a write of its Scale needs.

    Args:
        snapshot: The input of the algorithm.
        target: The target as `scaleTargetRef` names it.
        scale: The Scale as read, with the `resourceVersion` for the write; None if it could not be read.
    """

    snapshot: Snapshot
    target: ObjectKey
    scale: Manifest | None = None


class _SharedReads:
    """Reads that HPAs share, all later than `started`.

    Attributes:
        users: The namespaces and names of the HPAs that have used them.
    """

    def __init__(self, cluster: Cluster, metrics: MetricsClient, started: timedelta, timeout: timedelta) -> None:
        self.started = started
        self.users: set[tuple[str, str]] = set()
        self.flight = SingleFlight()
        self.metrics = SharedMetrics(metrics, self.flight, timeout=timeout)
        self._cluster = cluster
        self._timeout = timeout

    async def pods(self, namespace: str) -> NamespacePods:
        return await self.flight.do(
            ("pods", namespace), lambda: with_timeout(list_pods(self._cluster, namespace), self._timeout)
        )


class SnapshotReader:
    """Reads the snapshots of many HPAs with few requests.

    The pods of a namespace and their resource usage are read once for all HPAs of the namespace, and the same custom or
    external metric is read once for all HPAs that use it. A caller that asks during a read waits for its result. A read
    is shared for `max_age`, counted from the first of the reads that are shared together; then everything is read
    again, as it is for an HPA that asks once more. So no part of a snapshot is older than `max_age` when the call
    starts, and none was in an earlier snapshot of the same HPA. A Scale is read in each call.

    With pods and targets from a `CachedCluster` and `DerivedScaleGetter`, the number of requests to the API server
    grows with the namespaces and with the different custom and external metrics, but not with the HPAs.

    Args:
        cluster: The cluster of pods and targets.
        metrics: The client of the metrics APIs.
        scales: Reads Scales; None reads the subresource from `cluster`.
        pods: The pods of all namespaces; None lists those of a namespace from `cluster`.
        selectors: The known selectors of other HPAs; None starts without any, as the controller does.
        settings: The settings of the controller; its features decide which HPAs need no metrics.
        clock: Measures the age of a read.
        max_age: How long a read is shared, at most a third of the sync period of the HPA that asks. Zero shares
            nothing.
        request_timeout: How long to wait for each response. A later response counts as missing.

    Example:
        >>> from datetime import UTC, datetime
        >>> from ocf.autoscaling.algorithm import decide
        >>> from ocf_server import EmbeddedCluster
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
        pods: PodIndex | None = None,
        selectors: SelectorIndex | None = None,
        settings: Settings = _DEFAULTS,
        clock: Clock | None = None,
        max_age: timedelta = _MAX_READ_AGE,
        request_timeout: timedelta = _REQUEST_TIMEOUT,
    ) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self._pod_index = pods
        self._scales = scales or SubresourceScaleGetter(cluster)
        self.selectors = selectors if selectors is not None else SelectorIndex()
        """The known selectors of HPAs; the caller removes those of deleted HPAs."""
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
        """Cancel running reads; callers that wait for them get an error."""
        await asyncio.gather(*(sync.flight.close() for sync in self._shared))

    async def observe(
        self, hpa: Manifest, *, settings: Settings | None = None, autoscaler: Autoscaler | None = None
    ) -> HpaSnapshot:
        """Read the snapshot of an HPA.

        A failed read is a value: `Unavailable` in place of the scale or of a metric, with the message of the built-in
        controller. Metrics are read only if the algorithm needs them. The selector of the pods is recorded for the
        other HPAs.

        Args:
            hpa: The HPA, autoscaling/v2, with its status.
            settings: The settings of this HPA; None uses those of the reader.
            autoscaler: Its parsed spec; None parses it.

        Returns:
            The snapshot.

        Raises:
            ManifestError: If the HPA itself cannot be parsed; an API server does not store such an HPA.
            ValueError: If a time in its status is invalid.
        """
        autoscaler, status = autoscaler or Autoscaler.of(hpa), Status.of(hpa.get("status"))
        target = ObjectKey(autoscaler.api_version, autoscaler.kind, autoscaler.target, autoscaler.namespace)
        found = await self._scale(target)
        scale = found if isinstance(found, Unavailable) else Scale.of(found)
        written = None if isinstance(found, Unavailable) else found
        seen = Snapshot(autoscaler=autoscaler, status=status, scale=scale)
        holding = settings or self._settings
        # The controller asks no metrics API for an autoscaler that the scale alone decides, so neither counts nor fails
        # here.
        if isinstance(scale, Scale) and not early_exit_rule(autoscaler, scale, status.conditions, holding):
            seen = await self._with_metrics(seen, scale.selector, min(self._max_age, holding.sync_period / 3))
        return HpaSnapshot(seen, target, written)

    async def _scale(self, target: ObjectKey) -> Manifest | Unavailable:
        if target.api_version.count("/") > 1:
            return _NOT_REQUESTED  # the algorithm reports the error
        try:
            return await with_timeout(self._scales.scale(target), self._request_timeout)
        except ApiError as error:
            return Unavailable(error.message)
        except ManifestError as error:
            return Unavailable(str(error))

    async def _with_metrics(self, seen: Snapshot, selector: str, max_age: timedelta) -> Snapshot:
        """Return a snapshot with pods and metric values, as far as the algorithm needs them."""
        parsed = _parsed(selector)
        if parsed is None:
            return seen
        autoscaler = seen.autoscaler
        sync = self._shared_reads((autoscaler.namespace, autoscaler.name), max_age)
        # Before the pods are listed, as in validateAndParseSelector: also an HPA whose pods cannot be read is known to
        # others.
        self.selectors.put(autoscaler.namespace, autoscaler.name, parsed)
        pods = await self._pods(sync, autoscaler.namespace, parsed)
        if isinstance(pods, Unavailable):
            return _with(seen, (), [pods] * len(autoscaler.metrics))
        others = self.selectors.others(autoscaler.namespace, autoscaler.name, [pod.labels for pod in pods])
        # Ambiguous pods end the sync, so their metrics are not asked for.
        if others:
            return Snapshot(
                autoscaler=autoscaler, status=seen.status, scale=seen.scale, pods=tuple(pods), others=others
            )
        written = str(parsed)
        asked = [self._metric_values(sync, metric, autoscaler.namespace, written) for metric in autoscaler.metrics]
        # A single one needs no task.
        return _with(seen, pods, [await asked[0]] if len(asked) == 1 else await asyncio.gather(*asked))

    async def _pods(self, sync: _SharedReads, namespace: str, selector: LabelSelector) -> list[Pod] | Unavailable:
        """Return the pods that a selector matches; an error makes every metric unavailable."""
        try:
            known = None if self._pod_index is None else self._pod_index.namespace(namespace)
            return (await sync.pods(namespace) if known is None else known).select(selector)
        except ApiError as error:
            return Unavailable(f"unable to list pods: {error.message}")
        except (QuantityError, ValueError) as error:
            return Unavailable(f"unable to read pods: {error}")

    async def _metric_values(self, sync: _SharedReads, metric: Metric, namespace: str, selector: str) -> MetricValues:
        return await read_metric(sync.metrics, metric, namespace=namespace, selector=selector, usage=sync.metrics)

    def _shared_reads(self, user: tuple[str, str], max_age: timedelta) -> _SharedReads:
        now = self._clock.elapsed()
        current = self._shared[-1] if self._shared else None
        # A sync that saw the usage from before its last decision would decide the same once more.
        if current is None or now - current.started >= max_age or user in current.users:
            current = _SharedReads(self._cluster, self._metrics, now, self._request_timeout)
            # Older ones are kept as long as a caller waits for them, so that `close` can cancel them.
            self._shared = [*(sync for sync in self._shared if sync.flight.busy), current]
        current.users.add(user)
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
    """Parse the selector of a scale; return None for a selector that the algorithm rejects."""
    try:
        return parse_label_selector(selector) if selector else None
    except ManifestError:
        return None
