"""`FakeMetricsClient`: metrics APIs in memory, which answer what they were told to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from ocf.concepts import Clock, SystemClock
from ocf.controllers.metrics_client.client import CUSTOM_METRICS, EXTERNAL_METRICS, RESOURCE_METRICS
from ocf.errors import ApiError
from ocf.objects import LabelSelector, Manifest, split_api_version
from ocf.objects.timestamps import format_time

__all__ = ["FakeMetricsClient", "ObjectIdentity"]

ObjectIdentity: TypeAlias = tuple[str, str, str, str]
"""Namespace, group, kind and name of an object that is measured."""


@dataclass(slots=True)
class _Entry:
    """An entry of an answer, with the labels by which it is selected."""

    content: Manifest
    labels: Mapping[str, str] = field(default_factory=dict)
    metric_labels: Mapping[str, str] = field(default_factory=dict)


class FakeMetricsClient:
    """Metrics APIs that answer what they were told to, for tests, demos and the embedded cluster.

    Everything is told in the form of the API: quantities as texts, labels as maps. What is told again replaces what
    was told before.

    Args:
        clock: Tells when a measurement is taken that does not say so.

    Example:
        >>> import asyncio
        >>> measured = FakeMetricsClient()
        >>> measured.set_usage("shop", "web-0", {"app": {"cpu": "450m"}}, labels={"app": "web"})
        >>> [each["metadata"]["name"] for each in asyncio.run(measured.pod_metrics("shop", "app=web"))]
        ['web-0']
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._usage: dict[tuple[str, str], _Entry] = {}
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
        """Say what the containers of a pod use.

        Args:
            namespace: Of the pod.
            pod: Its name.
            containers: By the name of a container, what it uses of each resource.
            labels: The labels of the pod.
            at: When the measurement ended; None for the time at which it is told.
            window: How long it took, as Go writes durations.
        """
        usage = [{"name": name, "usage": dict(used)} for name, used in containers.items()]
        metadata = {"name": pod, "namespace": namespace, "labels": dict(labels or {})}
        told = {"timestamp": self._time(at), "window": window}
        self._usage[namespace, pod] = _Entry({"metadata": metadata, **told, "containers": usage}, labels or {})

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
        """Say what was measured of pods; what was said of other pods stays.

        Args:
            namespace: Of the pods.
            metric: What was measured.
            values: The value by the name of a pod.
            labels: The labels of these pods.
            at: When the measurement ended; None for the time at which it is told.
            window: How long it took; None does not say.
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
        """Say what was measured of an object.

        Args:
            namespace: Of the object.
            described: Its `apiVersion`, `kind` and `name`.
            metric: What was measured.
            value: The value.
            metric_labels: The labels of the measurement.
            at: When the measurement ended; None for the time at which it is told.
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
        """Say what was measured outside of the cluster; what was said with other labels stays.

        Args:
            namespace: Who can see it.
            metric: What was measured.
            *values: The value of each series; none of them makes the metric empty.
            labels: The labels of these series.
            at: When the measurement ended; None for the time at which it is told.
        """
        chosen = dict(labels or {})
        kept = [entry for entry in self._external.get((namespace, metric), ()) if entry.metric_labels != chosen]
        told = {"metricName": metric, "metricLabels": chosen, "timestamp": self._time(at)}
        made = [_Entry({**told, "value": value}, metric_labels=chosen) for value in values]
        self._external[namespace, metric] = [*kept, *made]

    @property
    def described(self) -> tuple[ObjectIdentity, ...]:
        """The objects of which something was said: namespace, group, kind and name of each."""
        return tuple(dict.fromkeys(identity for identity, _ in self._objects))

    def forget_pod(self, namespace: str, pod: str) -> None:
        """Measure a pod no longer, because it is gone or nobody reaches it.

        Args:
            namespace: Of the pod.
            pod: Its name.
        """
        self._usage.pop((namespace, pod), None)
        for (home, _), values in self._pods.items():
            if home == namespace:
                values.pop(pod, None)

    def fail(self, group: str, error: ApiError | None) -> None:
        """Let one of the APIs fail.

        Args:
            group: `metrics.k8s.io`, `custom.metrics.k8s.io` or `external.metrics.k8s.io`.
            error: What every read raises; None lets it answer again.
        """
        self._failures.pop(group, None)
        if error is not None:
            self._failures[group] = error

    async def pod_metrics(self, namespace: str, selector: str = "") -> Sequence[Any]:
        """Return the usage of resources by pod; as `MetricsClient`."""
        self._refuse(RESOURCE_METRICS)
        return _chosen((each for (home, _), each in self._usage.items() if home == namespace), selector)

    async def pods_metric(
        self, namespace: str, metric: str, *, selector: str = "", metric_selector: str = ""
    ) -> Sequence[Any]:
        """Return a measurement of pods; as `MetricsClient`."""
        self._refuse(CUSTOM_METRICS)
        return _chosen(self._pods.get((namespace, metric), {}).values(), selector, metric_selector)

    async def object_metric(
        self, namespace: str, described: Manifest, metric: str, *, metric_selector: str = ""
    ) -> Sequence[Any]:
        """Return a measurement of one object; as `MetricsClient`."""
        self._refuse(CUSTOM_METRICS)
        return _chosen(self._objects.get((_identity(namespace, described), metric), ()), "", metric_selector)

    async def external_metric(self, namespace: str, metric: str, *, selector: str = "") -> Sequence[Any]:
        """Return a measurement of anything outside of the cluster; as `MetricsClient`."""
        self._refuse(EXTERNAL_METRICS)
        return _chosen(self._external.get((namespace, metric), ()), "", selector)

    def _refuse(self, group: str) -> None:
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
        told = {} if window is None else {"windowSeconds": int(window.total_seconds())}
        return {
            "describedObject": reference,
            "metric": {"name": metric, "selector": None},
            "timestamp": self._time(at),
            **told,
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
