"""`RESTMetricsClient`: client of the metrics APIs behind an API server."""

from collections.abc import Sequence
from typing import Any, Final

from ocf.controllers.metrics_client.client import CUSTOM_METRICS, EXTERNAL_METRICS, RESOURCE_METRICS
from ocf.controllers.metrics_client.errors import with_client_message
from ocf.controllers.metrics_client.rest_mapper import RESTMapper, segment, versions_of
from ocf.controllers.metrics_client.retry import PathReader, RetryingReader
from ocf.errors import ApiError, NotFoundError, ServerError
from ocf.objects import Manifest
from ocf.objects.manifest import split_api_version

__all__ = ["RESTMetricsClient"]

_VERSIONS: Final = frozenset({f"{CUSTOM_METRICS}/v1beta2", f"{CUSTOM_METRICS}/v1beta1"})
_MOST_BYTES: Final = 128 * 2**20
_OK: Final = 200
_NOT_FOUND: Final = 404


class RESTMetricsClient:
    """Client of the metrics APIs of a cluster.

    For custom metrics it uses the version that the server prefers, v1beta2 or v1beta1; other versions are ignored. The
    version is looked up once, and again after a response with 404.

    Args:
        reader: The API server, an `ApiServerCluster`.
        kinds: Finds the resource of a kind; None makes one from `reader`.
        most_bytes: The largest response in bytes; a larger one is an error, because it could exhaust the memory.

    Example:
        >>> from ocf.cluster.client import ApiServerCluster
        >>> async def cpu(cluster: ApiServerCluster) -> None:
        ...     for pod in await RESTMetricsClient(cluster).pod_metrics("shop", "app=web"):
        ...         print(pod["metadata"]["name"], pod["containers"][0]["usage"]["cpu"])
    """

    def __init__(self, reader: PathReader, *, kinds: RESTMapper | None = None, most_bytes: int = _MOST_BYTES) -> None:
        self._reader = RetryingReader(reader)
        self._kinds = kinds or RESTMapper(reader)
        self._most_bytes = most_bytes
        self._custom_version = ""

    async def pod_metrics(self, namespace: str, selector: str = "") -> Sequence[Any]:
        """Return the resource usage of pods.

        Args:
            namespace: The namespace of the pods.
            selector: The label selector of the pods.

        Returns:
            PodMetrics of metrics.k8s.io/v1beta1.

        Raises:
            ApiError: If the request fails.
        """
        path = f"/apis/{RESOURCE_METRICS}/v1beta1/namespaces/{segment(namespace, 'namespace')}/pods"
        return await self._items("PodMetricsList", path, f"pods.{RESOURCE_METRICS}", labelSelector=selector)

    async def node_metrics(self) -> Sequence[Any]:
        """Return the resource usage of all nodes.

        Returns:
            NodeMetrics of metrics.k8s.io/v1beta1.

        Raises:
            ApiError: If the request fails.
        """
        path = f"/apis/{RESOURCE_METRICS}/v1beta1/nodes"
        return await self._items("NodeMetricsList", path, f"nodes.{RESOURCE_METRICS}")

    async def pods_metric(
        self, namespace: str, metric: str, *, selector: str = "", metric_selector: str = ""
    ) -> Sequence[Any]:
        """Return a metric of pods.

        Args:
            namespace: The namespace of the pods.
            metric: The name of the metric.
            selector: The label selector of the pods.
            metric_selector: The selector of the labels of the metric.

        Returns:
            MetricValues of custom.metrics.k8s.io.

        Raises:
            ApiError: If the request fails.
        """
        place = f"namespaces/{segment(namespace, 'namespace')}/pods/*/{segment(metric, 'metric')}"
        return await self._custom(place, "pods", "*", labelSelector=selector, metricLabelSelector=metric_selector)

    async def object_metric(
        self, namespace: str, described: Manifest, metric: str, *, metric_selector: str = ""
    ) -> Sequence[Any]:
        """Return a metric of one object.

        Args:
            namespace: The namespace of the object; for an object of kind Namespace, this namespace is used.
            described: `kind`, `name` and optionally `apiVersion` of the object.
            metric: The name of the metric.
            metric_selector: The selector of the labels of the metric.

        Returns:
            MetricValues of custom.metrics.k8s.io.

        Raises:
            ApiError: If the request fails.
        """
        group, _ = split_api_version(str(described.get("apiVersion") or ""))
        kind, home = str(described.get("kind") or ""), f"namespaces/{segment(namespace, 'namespace')}"
        # The custom metrics API has metrics of a namespace at a path of its own, and the namespace of the HPA is the
        # only one that it may read.
        if (group, kind) == ("", "Namespace"):
            return await self._custom(
                f"{home}/metrics/{segment(metric, 'metric')}", "metrics", metric, metricLabelSelector=metric_selector
            )
        plural = await self._qualified(group, kind)
        name = str(described.get("name") or "")
        place = f"{home}/{plural}/{segment(name, 'resource name')}/{segment(metric, 'metric')}"
        return await self._custom(place, plural, name, metricLabelSelector=metric_selector)

    async def external_metric(self, namespace: str, metric: str, *, selector: str = "") -> Sequence[Any]:
        """Return a metric from outside of the cluster.

        Args:
            namespace: The namespace of the autoscaler.
            metric: The name of the metric.
            selector: The selector of the labels of the metric.

        Returns:
            ExternalMetricValues of external.metrics.k8s.io/v1beta1.

        Raises:
            ApiError: If the request fails.
        """
        place = f"namespaces/{segment(namespace, 'namespace')}/{segment(metric, 'metric')}"
        path = f"/apis/{EXTERNAL_METRICS}/v1beta1/{place}"
        resource = f"{metric}.{EXTERNAL_METRICS}"
        return await self._items("ExternalMetricValueList", path, resource, labelSelector=selector)

    async def _qualified(self, group: str, kind: str) -> str:
        """Return the resource of a kind with its group, `ingresses.networking.k8s.io`."""
        try:
            found = await self._kinds.find(group, kind)
        except NotFoundError as error:
            qualified = f"{kind}.{group}" if group else kind
            message = f"unable to map kind {qualified} to resource: {error.message}"
            raise NotFoundError(message, code=error.code, reason=error.reason) from error
        return f"{found.plural}.{group}" if group else found.plural

    async def _custom(self, place: str, *subject: str, **query: str) -> Sequence[Any]:
        version = self._custom_version or await self._preferred()
        self._custom_version = version
        resource, *name = subject
        path = f"/apis/{version}/{place}"
        try:
            return await self._items("MetricValueList", path, f"{resource}.{CUSTOM_METRICS}", *name, **query)
        except NotFoundError:
            self._custom_version = ""  # the version may have been removed; it is looked up again with the next request
            raise

    async def _preferred(self) -> str:
        missing = f"no custom metrics API ({CUSTOM_METRICS}) registered"
        try:
            answer = await self._reader.read_path(f"/apis/{CUSTOM_METRICS}")
        except NotFoundError as error:
            raise NotFoundError(missing, code=_NOT_FOUND, reason="NotFound") from error
        version = next((version for version in versions_of(answer) if version in _VERSIONS), "")
        if not version:
            raise NotFoundError("no known available metric versions found", code=_NOT_FOUND, reason="NotFound")
        return version

    async def _items(self, kind: str, path: str, *subject: str, **query: str) -> Sequence[Any]:
        # client-go leaves out an empty selector; an adapter may take "" for one that selects nothing.
        parameters = [(name, value) for name, value in query.items() if value]
        try:
            answer = await self._reader.read_path(path, parameters, most_bytes=self._most_bytes)
        except ApiError as error:
            raise with_client_message(error, path, *subject) from error
        items, metadata = answer.get("items"), answer.get("metadata") or {}
        # A proxy or a misconfigured adapter may answer 200 with something else; read as a list, it would be empty.
        if answer.get("kind", kind) != kind or not isinstance(items, list | None) or not isinstance(metadata, dict):
            raise ServerError(f"GET {path}: the response is not of kind {kind}", code=_OK)
        if metadata.get("continue"):
            # No limit was sent. The part that is missing could have the largest value.
            raise ServerError(f"GET {path}: the response is only a part of the {kind}", code=_OK)
        return items or ()
