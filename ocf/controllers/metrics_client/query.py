"""`read_metric`: read the values of a metric of an autoscaler, or the error of the request.

The messages are those of the built-in controller and of its client.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, Protocol

from ocf.autoscaling.algorithm import Metric, Unavailable, read_external, read_object, read_pods
from ocf.autoscaling.algorithm.snapshot import MetricValues
from ocf.controllers.metrics_client.client import MetricsClient
from ocf.controllers.metrics_client.decoding import decode_external_values, decode_values
from ocf.controllers.metrics_client.usage import PodUsage, usage_samples
from ocf.errors import ApiError, ManifestError, QuantityError
from ocf.objects.selectors import LabelSelector
from ocf.schema.metric_sources import METRIC_SOURCES

__all__ = ["read_metric"]

# Errors of decoded values: a window that is not a duration, a time or an amount that is out of range.
_UNREADABLE: Final = (ManifestError, QuantityError, ValueError, OverflowError)


class UsageClient(Protocol):
    """A client of the resource metrics API that also decodes, for many autoscalers at once."""

    async def usage(self, namespace: str, selector: str) -> Iterable[PodUsage]:
        """Return the resource usage of pods."""
        ...


async def read_metric(
    api: MetricsClient, metric: Metric, *, namespace: str, selector: str, usage: UsageClient | None = None
) -> MetricValues:
    """Read the values of a metric.

    Args:
        api: The client of the metrics APIs.
        namespace: The namespace of the autoscaler.
        selector: `status.selector` of its scale, which selects its pods.
        usage: Reads the usage of resources; None uses `api`.

    Returns:
        The values. If they cannot be read, for whatever reason, `Unavailable`; nothing is raised. No request is sent
        for a metric that the algorithm rejects.

    Example:
        >>> import asyncio
        >>> from ocf.autoscaling.algorithm import MetricTarget
        >>> from ocf.testing.fake_metrics import FakeMetricsClient
        >>> measured = FakeMetricsClient()
        >>> measured.set_external("shop", "queue_length", "30")
        >>> queue = Metric("External", "queue_length", MetricTarget(average=10_000))
        >>> asyncio.run(read_metric(measured, queue, namespace="shop", selector="app=web"))
        (30000,)
        >>> asyncio.run(read_metric(measured, queue, namespace="blog", selector="app=web")).message
        'no metrics returned from external metrics API'
    """
    read = _BY_TYPE.get(metric.type)
    if read is None or metric.selector_error:
        return Unavailable("it was not requested")
    name = METRIC_SOURCES[metric.type].api
    try:
        if usage is not None and read is _resource:
            return usage_samples(await usage.usage(namespace, selector), metric.name, metric.container)
        return await read(api, metric, namespace, selector)
    except ApiError as error:
        return Unavailable(f"unable to fetch metrics from {name} metrics API: {error.message}")
    except _UNREADABLE as error:
        return Unavailable(f"unable to fetch metrics from {name} metrics API: {error}")


async def _resource(api: MetricsClient, metric: Metric, namespace: str, selector: str) -> MetricValues:
    entries = map(PodUsage, await api.pod_metrics(namespace, selector))
    return usage_samples(entries, metric.name, metric.container)


async def _pods(api: MetricsClient, metric: Metric, namespace: str, selector: str) -> MetricValues:
    entries = await api.pods_metric(namespace, metric.name, selector=selector, metric_selector=_text(metric))
    return read_pods(decode_values(entries))


async def _object(api: MetricsClient, metric: Metric, namespace: str, _selector: str) -> MetricValues:
    described = metric.described_object or {}
    entries = await api.object_metric(namespace, described, metric.name, metric_selector=_text(metric))
    # GetObjectMetric of the client demands exactly one; the text is that of k8s.io/metrics.
    if len(entries) != 1:
        problem = f"the custom metrics API server returned {len(entries)} results when we asked for exactly one"
        return Unavailable(f"unable to fetch metrics from custom metrics API: {problem}")
    return read_object(decode_values(entries))


async def _external(api: MetricsClient, metric: Metric, namespace: str, _selector: str) -> MetricValues:
    entries = await api.external_metric(namespace, metric.name, selector=_text(metric))
    return read_external(decode_external_values(entries))


def _text(metric: Metric) -> str:
    """Return the selector of a metric as a query parameter; empty, which selects everything, if it has none."""
    return "" if metric.selector is None else str(LabelSelector.of(metric.selector))


_Read = Callable[[MetricsClient, Metric, str, str], Awaitable[MetricValues]]
_BY_TYPE: Final[Mapping[str, _Read]] = {
    "Resource": _resource,
    "ContainerResource": _resource,
    "Pods": _pods,
    "Object": _object,
    "External": _external,
}
