"""`FakeMetricsClient`: in-memory metrics APIs that return the values a test sets."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from ocf.concepts import Clock, SystemClock
from ocf.controllers.metrics_client.client import CUSTOM_METRICS, EXTERNAL_METRICS, RESOURCE_METRICS
from ocf.errors import ApiError
from ocf.objects import Manifest
from ocf.objects.manifest import split_api_version
from ocf.objects.selectors import LabelSelector
from ocf.objects.timestamps import format_time

__all__ = [
    "FakeMetricsClient",
]

ObjectIdentity: TypeAlias = tuple[str, str, str, str]
"""Namespace, group, kind and name of an object with an object metric."""


@dataclass(slots=True)
class _Entry:
    """One item of a response, and the labels that selectors match."""

    content: Manifest
    labels: Mapping[str, str] = field(default_factory=dict)
    metric_labels: Mapping[str, str] = field(default_factory=dict)


class FakeMetricsClient:
    """In-memory metrics APIs for tests, demos and the embedded cluster; they return the values that were set.

    Values have the form of the API: quantities are strings, labels are maps. Setting a value again replaces it.

    Args:
        clock: Gives the timestamp of values that are set without one.

    Example:
        >>> import asyncio
        >>> measured = FakeMetricsClient()
        >>> measured.set_usage("shop", "web-0", {"app": {"cpu": "450m"}}, labels={"app": "web"})
        >>> [each["metadata"]["name"] for each in asyncio.run(measured.pod_metrics("shop", "app=web"))]
        ['web-0']
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._usage: defaultdict[str, dict[str, _Entry]] = defaultdict(dict)  # by namespace and pod
        self._nodes: dict[str, _Entry] = {}
        self._pods: dict[tuple[str, str], dict[str, _Entry]] = {}
        self._objects: dict[tuple[ObjectIdentity, str], list[_Entry]] = {}
        self._external: dict[tuple[str, str], list[_Entry]] = {}
        self._failures: dict[str, ApiError] = {}

    def set_usage(
        self,
        namespace: str,
        pod: str,
        containers: Mapping[str, Mapping[str, str]],
        *,
        labels: Mapping[str, str] | None = None,
        at: datetime | None = None,
        window: str = "30s",
    ) -> None:
        """Set the resource usage of a pod's containers.

        Args:
            namespace: Namespace of the pod.
            pod: Name of the pod.
            containers: Usage of each resource, by container name.
            labels: Labels of the pod.
            at: End of the measurement; None for the current time.
            window: Length of the measurement, as a Go duration.
        """
        usage = [{"name": name, "usage": dict(used)} for name, used in containers.items()]
        metadata = {"name": pod, "namespace": namespace, "labels": dict(labels or {})}
        measured = {"timestamp": self._time(at), "window": window}
        self._usage[namespace][pod] = _Entry({"metadata": metadata, **measured, "containers": usage}, labels or {})

    def set_node_usage(self, node: str, usage: Mapping[str, str], *, at: datetime | None = None) -> None:
        """Set the resource usage of a node.

        Args:
            node: Name of the node.
            usage: Usage of each resource, `cpu` and `memory`.
            at: End of the measurement; None for the current time.
        """
        measured = {"timestamp": self._time(at), "window": "30s", "usage": dict(usage)}
        self._nodes[node] = _Entry({"metadata": {"name": node}, **measured})

    def set_pods_metric(
        self,
        namespace: str,
        metric: str,
        values: Mapping[str, str],
        *,
        labels: Mapping[str, str] | None = None,
        at: datetime | None = None,
        window: timedelta | None = None,
    ) -> None:
        """Set a custom metric of pods; values of other pods are kept.

        Args:
            namespace: Namespace of the pods.
            metric: Name of the metric.
            values: The value of each pod, by pod name.
            labels: Labels of these pods.
            at: End of the measurement; None for the current time.
            window: Length of the measurement; None leaves it out of the response.
        """
        known = self._pods.setdefault((namespace, metric), {})
        for pod, value in values.items():
            content = self._value(("", "Pod", pod, namespace), metric, value, at, window)
            known[pod] = _Entry(content, labels or {})

    def set_object_metric(
        self,
        namespace: str,
        described: Manifest,
        metric: str,
        value: str,
        *,
        metric_labels: Mapping[str, str] | None = None,
        at: datetime | None = None,
    ) -> None:
        """Set a custom metric of one object.

        Args:
            namespace: Namespace of the object.
            described: `apiVersion`, `kind` and `name` of the object.
            metric: Name of the metric.
            value: The value.
            metric_labels: Labels of the metric.
            at: End of the measurement; None for the current time.
        """
        identity = _identity(namespace, described)
        content = self._value((*identity[1:], namespace), metric, value, at, None)
        self._objects[identity, metric] = [_Entry(content, metric_labels=metric_labels or {})]

    def set_external(
        self,
        namespace: str,
        metric: str,
        *values: str,
        labels: Mapping[str, str] | None = None,
        at: datetime | None = None,
    ) -> None:
        """Set an external metric; series with other labels are kept.

        Args:
            namespace: The namespace in which the metric is visible.
            metric: Name of the metric.
            *values: The value of each series; without any the metric is empty.
            labels: Labels of these series.
            at: End of the measurement; None for the current time.
        """
        chosen = dict(labels or {})
        kept = [entry for entry in self._external.get((namespace, metric), ()) if entry.metric_labels != chosen]
        series = {"metricName": metric, "metricLabels": chosen, "timestamp": self._time(at)}
        added = [_Entry({**series, "value": value}, metric_labels=chosen) for value in values]
        self._external[namespace, metric] = [*kept, *added]

    @property
    def described(self) -> tuple[ObjectIdentity, ...]:
        """The objects that have an object metric: namespace, group, kind and name of each."""
        return tuple(dict.fromkeys(identity for identity, _ in self._objects))

    def forget_pod(self, namespace: str, pod: str) -> None:
        """Remove all metrics of a pod, as if it was deleted or unreachable.

        Args:
            namespace: Namespace of the pod.
            pod: Name of the pod.
        """
        self._usage[namespace].pop(pod, None)
        for (home, _), values in self._pods.items():
            if home == namespace:
                values.pop(pod, None)

    def fail(self, group: str, error: ApiError | None) -> None:
        """Make one of the APIs fail.

        Args:
            group: `metrics.k8s.io`, `custom.metrics.k8s.io` or `external.metrics.k8s.io`.
            error: The error that every read raises; None makes the API work again.
        """
        self._failures.pop(group, None)
        if error is not None:
            self._failures[group] = error

    async def pod_metrics(self, namespace: str, selector: str = "") -> Sequence[Any]:
        """Return the resource usage of pods; see `MetricsClient`."""
        self._raise_failure(RESOURCE_METRICS)
        return _chosen(self._usage[namespace].values(), selector)

    async def node_metrics(self) -> Sequence[Any]:
        """Return the resource usage of nodes; see `NodeMetricsClient`."""
        self._raise_failure(RESOURCE_METRICS)
        return _chosen(self._nodes.values(), "")

    async def pods_metric(
        self, namespace: str, metric: str, *, selector: str = "", metric_selector: str = ""
    ) -> Sequence[Any]:
        """Return a custom metric of pods; see `MetricsClient`."""
        self._raise_failure(CUSTOM_METRICS)
        return _chosen(self._pods.get((namespace, metric), {}).values(), selector, metric_selector)

    async def object_metric(
        self, namespace: str, described: Manifest, metric: str, *, metric_selector: str = ""
    ) -> Sequence[Any]:
        """Return a custom metric of one object; see `MetricsClient`."""
        self._raise_failure(CUSTOM_METRICS)
        return _chosen(self._objects.get((_identity(namespace, described), metric), ()), "", metric_selector)

    async def external_metric(self, namespace: str, metric: str, *, selector: str = "") -> Sequence[Any]:
        """Return an external metric; see `MetricsClient`."""
        self._raise_failure(EXTERNAL_METRICS)
        return _chosen(self._external.get((namespace, metric), ()), "", selector)

    def _raise_failure(self, group: str) -> None:
        if group in self._failures:
            raise self._failures[group]

    def _time(self, at: datetime | None) -> str:
        return format_time(self._clock.now() if at is None else at.astimezone(UTC))

    def _value(
        self,
        described: tuple[str, str, str, str],
        metric: str,
        value: str,
        at: datetime | None,
        window: timedelta | None,
    ) -> Manifest:
        group, kind, name, namespace = described
        reference = {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "name": name, "namespace": namespace}
        measured = {} if window is None else {"windowSeconds": int(window.total_seconds())}
        return {
            "describedObject": reference,
            "metric": {"name": metric, "selector": None},
            "timestamp": self._time(at),
            **measured,
            "value": value,
        }


def _identity(namespace: str, described: Manifest) -> ObjectIdentity:
    group, _ = split_api_version(str(described.get("apiVersion") or ""))
    kind = str(described.get("kind") or "")
    name = namespace if (group, kind) == ("", "Namespace") else str(described.get("name") or "")
    return namespace, group, kind, name


def _chosen(entries: Any, selector: str, metric_selector: str = "") -> list[Manifest]:
    by_label, by_metric = LabelSelector.parse(selector), LabelSelector.parse(metric_selector)
    return [
        entry.content for entry in entries if by_label.matches(entry.labels) and by_metric.matches(entry.metric_labels)
    ]
