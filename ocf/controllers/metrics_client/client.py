"""What the metrics APIs can be asked, whoever answers.

There are three of them (https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#support-for-metrics-apis):
usage of resources by pod, measurements of objects of the cluster, and measurements of anything else. None of them
belongs to Kubernetes itself; what answers is a product of somebody else's, so nothing in it is taken for granted.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from ocf.objects import Manifest

__all__ = ["CUSTOM_METRICS", "EXTERNAL_METRICS", "RESOURCE_METRICS", "MetricsClient"]

RESOURCE_METRICS: Final = "metrics.k8s.io"
CUSTOM_METRICS: Final = "custom.metrics.k8s.io"
EXTERNAL_METRICS: Final = "external.metrics.k8s.io"


class MetricsClient(Protocol):
    """Somebody who measures.

    Each method returns the `items` of the answer as they came, unchecked; `read_metric` judges them. Selectors are
    texts, empty ones select everything. Each raises `ocf.errors.ApiError` where there is no answer; its message is
    the one that the controller would tell.
    """

    async def pod_metrics(self, namespace: str, selector: str = "") -> Sequence[Any]:
        """Return the usage of resources, one PodMetrics of metrics.k8s.io/v1beta1 per pod.

        Args:
            namespace: Of the pods in this namespace,
            selector: whose labels match.
        """
        ...

    async def pods_metric(
        self, namespace: str, metric: str, *, selector: str = "", metric_selector: str = ""
    ) -> Sequence[Any]:
        """Return a measurement of pods, one MetricValue of custom.metrics.k8s.io per pod.

        Args:
            namespace: Of the pods in this namespace,
            metric: what is measured,
            selector: of those whose labels match,
            metric_selector: and of the metric, what its own labels select.
        """
        ...

    async def object_metric(
        self, namespace: str, described: Manifest, metric: str, *, metric_selector: str = ""
    ) -> Sequence[Any]:
        """Return a measurement of one object, as MetricValues of custom.metrics.k8s.io; one, if all is well.

        Args:
            namespace: Where the object is. Of a Namespace, this one is meant, whatever its name: nobody is to look
                into another one.
            described: `kind`, `name` and perhaps `apiVersion` of the object; the version does not count.
            metric: What is measured.
            metric_selector: What the metric's own labels select.
        """
        ...

    async def external_metric(self, namespace: str, metric: str, *, selector: str = "") -> Sequence[Any]:
        """Return a measurement, one ExternalMetricValue of external.metrics.k8s.io/v1beta1 per series.

        Args:
            namespace: Who asks.
            metric: What is measured.
            selector: What the metric's labels select.
        """
        ...
