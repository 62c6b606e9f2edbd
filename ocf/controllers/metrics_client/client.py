"""`MetricsClient`: interface to the metrics APIs.

There are three of them (https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#support-for-metrics-apis):
resource usage of pods, metrics of objects in the cluster, and metrics of anything else. Kubernetes itself implements
none of them. They are served by third-party software, so every response is checked.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from ocf.objects import Manifest

__all__ = ["CUSTOM_METRICS", "EXTERNAL_METRICS", "RESOURCE_METRICS", "MetricsClient", "NodeMetricsClient"]

RESOURCE_METRICS: Final = "metrics.k8s.io"
CUSTOM_METRICS: Final = "custom.metrics.k8s.io"
EXTERNAL_METRICS: Final = "external.metrics.k8s.io"


class MetricsClient(Protocol):
    """Client of the three metrics APIs.

    Each method returns the `items` of the response unchecked; `read_metric` checks them. Selectors are texts, and an
    empty one selects everything. Each method raises `ocf.errors.ApiError` if the request fails, with the message of the
    built-in controller.
    """

    async def pod_metrics(self, namespace: str, selector: str = "") -> Sequence[Any]:
        """Return the resource usage, one PodMetrics of metrics.k8s.io/v1beta1 per pod.

        Args:
            namespace: The namespace of the pods.
            selector: The label selector of the pods.
        """
        ...

    async def pods_metric(
        self, namespace: str, metric: str, *, selector: str = "", metric_selector: str = ""
    ) -> Sequence[Any]:
        """Return a metric of pods, one MetricValue of custom.metrics.k8s.io per pod.

        Args:
            namespace: The namespace of the pods.
            metric: The name of the metric.
            selector: The label selector of the pods.
            metric_selector: The selector of the labels of the metric.
        """
        ...

    async def object_metric(
        self, namespace: str, described: Manifest, metric: str, *, metric_selector: str = ""
    ) -> Sequence[Any]:
        """Return a metric of one object, as MetricValues of custom.metrics.k8s.io; normally exactly one.

        Args:
            namespace: The namespace of the object. For an object of kind Namespace, this namespace is used whatever
                its name, so that no autoscaler reads metrics of another namespace.
            described: `kind`, `name` and optionally `apiVersion` of the object; the version does not count.
            metric: The name of the metric.
            metric_selector: The selector of the labels of the metric.
        """
        ...

    async def external_metric(self, namespace: str, metric: str, *, selector: str = "") -> Sequence[Any]:
        """Return a metric from outside of the cluster, one ExternalMetricValue per series.

        Args:
            namespace: The namespace of the autoscaler.
            metric: The name of the metric.
            selector: The selector of the labels of the metric.
        """
        ...


class NodeMetricsClient(Protocol):
    """Client of the resource metrics of nodes."""

    async def node_metrics(self) -> Sequence[Any]:
        """Return the resource usage, one NodeMetrics of metrics.k8s.io/v1beta1 per node, unchecked.

        Raises:
            ApiError: If the request fails.
        """
        ...
