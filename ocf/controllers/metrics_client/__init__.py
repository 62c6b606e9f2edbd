"""What was measured: the three metrics APIs, and readings of them for the algorithm.

`MetricsApi` is the client's interface, and `ServedMetrics` its implementation for a real API server. The tests' one is
`ocf.testing.fake_metrics.FixedMetrics`. `read_metric` turns a response into a reading.
"""

from ocf.controllers.metrics_client.client import CUSTOM_METRICS, EXTERNAL_METRICS, RESOURCE_METRICS, MetricsApi
from ocf.controllers.metrics_client.query import read_metric
from ocf.controllers.metrics_client.rest_client import ServedMetrics
from ocf.controllers.metrics_client.rest_mapper import Kinds
from ocf.controllers.metrics_client.retry import PathReader, PatientReader

__all__ = [
    "CUSTOM_METRICS",
    "EXTERNAL_METRICS",
    "RESOURCE_METRICS",
    "Kinds",
    "MetricsApi",
    "PathReader",
    "PatientReader",
    "ServedMetrics",
    "read_metric",
]
