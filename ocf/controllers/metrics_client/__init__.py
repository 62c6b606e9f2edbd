"""Client of the three metrics APIs, and the metric values that the algorithm takes.

`MetricsClient` is the interface, and `RESTMetricsClient` its implementation for a real API server. The fake one for
tests is `ocf.testing.fake_metrics.FakeMetricsClient`. `read_metric` turns a response into values.
"""

from ocf.controllers.metrics_client.client import (
    CUSTOM_METRICS,
    EXTERNAL_METRICS,
    RESOURCE_METRICS,
    MetricsClient,
    NodeMetricsClient,
)
from ocf.controllers.metrics_client.query import read_metric
from ocf.controllers.metrics_client.rest_client import RESTMetricsClient
from ocf.controllers.metrics_client.rest_mapper import RESTMapper
from ocf.controllers.metrics_client.retry import PathReader, RetryingReader
from ocf.controllers.metrics_client.usage import PodUsage

__all__ = [
    "CUSTOM_METRICS",
    "EXTERNAL_METRICS",
    "RESOURCE_METRICS",
    "MetricsClient",
    "NodeMetricsClient",
    "PathReader",
    "PodUsage",
    "RESTMapper",
    "RESTMetricsClient",
    "RetryingReader",
    "read_metric",
]
