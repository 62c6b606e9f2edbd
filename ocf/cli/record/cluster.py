"""Recording of an autoscaler of a cluster: its objects and metrics, read once per period."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TextIO

from ocf.autoscaling.algorithm import Autoscaler, Metric, Scale
from ocf.cli.autoscaler_clients import missing_autoscaler, open_clients
from ocf.cluster import ListOptions
from ocf.concepts import SystemClock
from ocf.controllers.hpa.modes import BUILT_IN
from ocf.errors import ApiError, ConfigError, ManifestError, NotFoundError
from ocf.objects import ObjectKey
from ocf.objects.selectors import LabelSelector
from ocf.schema.metric_sources import RESOURCE_METRICS
from ocf.simulation.recording import RecordingWriter, reduced
from ocf.simulation.recording.metric_totals import metric_failure

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.concepts import Clock
    from ocf.controllers.hpa.snapshot.scale_getter import ScaleGetter
    from ocf.controllers.metrics_client import MetricsClient
    from ocf.objects import Manifest

__all__ = ["RecordedAutoscaler", "open_recorded", "read_objects", "record"]

_VERSIONS: Final = {
    "PodMetrics": "metrics.k8s.io/v1beta1",
    "MetricValue": "custom.metrics.k8s.io/v1beta2",
    "ExternalMetricValue": "external.metrics.k8s.io/v1beta1",
}


@dataclass(frozen=True, slots=True)
class RecordedAutoscaler:
    """An autoscaler in a cluster, with everything that is needed to read it."""

    cluster: Cluster
    metrics: MetricsClient
    scales: ScaleGetter
    key: ObjectKey
    clock: Clock


@asynccontextmanager
async def open_recorded(
    kubeconfig: str | None, context: str | None, name: str, namespace: str
) -> AsyncIterator[RecordedAutoscaler]:
    """Connect to the cluster; a function of its own so that tests can replace it."""
    async with open_clients(kubeconfig, context) as (cluster, scales, metrics):
        yield RecordedAutoscaler(cluster, metrics, scales, ObjectKey(*BUILT_IN, name, namespace), SystemClock())


async def record(
    source: RecordedAutoscaler,
    output: TextIO,
    *,
    every: timedelta,
    period: timedelta | None,
    warn: Callable[[str], object],
) -> None:
    """Write a recording until the period is over, or the HPA is deleted.

    A line is written and flushed at once, so that the recording can be used if it is interrupted. An instant at which
    the API server does not answer is left out, with a warning when the reason is a new one.

    Args:
        period: How long to record; None until the task is cancelled.
    """
    recorder = RecordingWriter(source.key.name, source.key.namespace or "default")
    since = source.clock.now()
    warned: set[str] = set()
    at = since
    while True:
        found = await _read_or_none(source, warned, warn, required=at == since)
        if found is None:
            return
        objects, failures = found
        _warn_once(failures, warned, warn)
        if at == since:
            _write(output, recorder.header())
        line = recorder.line(at, [reduced(each) for each in objects]) if objects else ""
        if line:
            _write(output, line)
        # From the start, so that slow reads do not add up.
        following = since + every * ((source.clock.now() - since) // every + 1)
        if period is not None and following > since + period:
            return
        await asyncio.sleep((following - source.clock.now()).total_seconds())
        at = _now(source, at)


def _write(output: TextIO, line: str) -> None:
    try:
        output.write(f"{line}\n")
        output.flush()
    except OSError as error:
        raise ConfigError(
            f"the recording cannot be written any further: {error.strerror or error}; what is written can be used"
        ) from error


def _now(source: RecordedAutoscaler, before: datetime) -> datetime:
    """Return the time, which must rise in a recording even if the clock is set back."""
    return max(source.clock.now(), before + timedelta(microseconds=1))


async def _read_or_none(
    source: RecordedAutoscaler, warned: set[str], warn: Callable[[str], object], *, required: bool
) -> tuple[list[Manifest], list[str]] | None:
    """Return the objects, none if they cannot be read now; None if the HPA is gone."""
    try:
        return await read_objects(source)
    except NotFoundError as error:
        if required:
            raise await missing_autoscaler(source.cluster, source.key, error) from error
        _warn_once([f"{source.key.name} was deleted: the recording ends"], warned, warn)
        return None
    except ApiError as error:
        if required:
            raise
        return [], [str(error)]


def _warn_once(failures: Sequence[str], warned: set[str], warn: Callable[[str], object]) -> None:
    for failure in failures:
        if failure not in warned:
            warned.add(failure)
            warn(failure)


async def read_objects(source: RecordedAutoscaler) -> tuple[list[Manifest], list[str]]:
    """Return the HPA, its Scale, pods with their nodes, and metrics, and why others could not be read."""
    hpa = await source.cluster.get(source.key)
    autoscaler = Autoscaler.of(hpa)
    objects, failures = [hpa], list[str]()
    target = ObjectKey(autoscaler.api_version, autoscaler.kind, autoscaler.target, autoscaler.namespace)
    try:
        scale = await source.scales.scale(target)
    except (NotFoundError, ManifestError) as error:
        # What a sync finds, too: it reads no pods and metrics then.
        return objects, [f"{autoscaler.reference}: {error}"]
    metadata = {"name": autoscaler.target, "namespace": autoscaler.namespace}
    objects.append({"apiVersion": "autoscaling/v1", "kind": "Scale", **scale, "metadata": metadata})
    selector = Scale.of(scale).selector
    options = ListOptions(namespace=autoscaler.namespace, label_selector=selector)
    listed = await source.cluster.list("v1", "Pod", options)
    objects += [{"apiVersion": "v1", "kind": "Pod", **each} for each in listed.items]
    nodes, problems = await _nodes(source, listed.items)
    objects += nodes
    failures += problems
    for metric in _different(autoscaler.metrics):
        try:
            objects += await _items(source.metrics, metric, autoscaler.namespace, selector)
        except ApiError as error:
            failures.append(f"{metric.type} metric {metric.name}: {error}")
            objects.append(metric_failure(metric, error))
    return objects, failures


async def _nodes(source: RecordedAutoscaler, pods: Sequence[Manifest]) -> tuple[list[Manifest], list[str]]:
    """Return the nodes of pods, and why they could not be read: not every user may read nodes.

    They are read one by one, because a cluster may have thousands of others.
    """
    names = dict.fromkeys(str((pod.get("spec") or {}).get("nodeName") or "") for pod in pods)
    found: list[Manifest] = []
    for name in filter(None, names):
        try:
            found.append(
                {"apiVersion": "v1", "kind": "Node", **await source.cluster.get(ObjectKey("v1", "Node", name))}
            )
        except NotFoundError:
            continue
        except ApiError as error:
            return found, [f"nodes are not recorded: {error}"]
    return found, []


def _different(metrics: Sequence[Metric]) -> Iterator[Metric]:
    """Yield the metrics; of those of resources only one, because one request measures all of them."""
    measured = False
    for metric in metrics:
        if metric.type not in RESOURCE_METRICS:
            yield metric
        elif not measured:
            measured = True
            yield metric


async def _items(client: MetricsClient, metric: Metric, namespace: str, selector: str) -> list[Manifest]:
    labels = "" if metric.selector is None or metric.selector_error else str(LabelSelector.of(metric.selector))
    found: Sequence[Any]
    kind = "MetricValue"
    if metric.type in RESOURCE_METRICS:
        kind, found = "PodMetrics", await client.pod_metrics(namespace, selector)
    elif metric.type == "Pods":
        found = await client.pods_metric(namespace, metric.name, selector=selector, metric_selector=labels)
    elif metric.type == "Object":
        described = metric.described_object or {}
        found = await client.object_metric(namespace, described, metric.name, metric_selector=labels)
    else:
        kind, found = "ExternalMetricValue", await client.external_metric(namespace, metric.name, selector=labels)
    return [{"apiVersion": _VERSIONS[kind], "kind": kind, **each} for each in found if isinstance(each, dict)]
