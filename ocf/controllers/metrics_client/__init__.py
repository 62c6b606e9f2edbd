"""Client of the three metrics APIs, and the metric values that the algorithm takes.

`MetricsClient` is the interface, and `RESTMetricsClient` its implementation for a real API server. The fake one for
tests is `ocf.testing.fake_metrics.FakeMetricsClient`. `read_metric` turns a response into values.
"""

from ocf.controllers.metrics_client.client import RESOURCE_METRICS, MetricsClient
from ocf.controllers.metrics_client.rest_client import RESTMetricsClient
from ocf.controllers.metrics_client.rest_mapper import RESTMapper

__all__ = [
    "RESOURCE_METRICS",
    "MetricsClient",
    "RESTMapper",
    "RESTMetricsClient",
]
