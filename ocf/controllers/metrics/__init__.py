"""What was measured: the three metrics APIs, and readings of them for the algorithm.

`MetricsApi` is what such APIs can be asked. `ServedMetrics` asks the real ones, behind an API server; `FixedMetrics`
answers in their place, for tests, demos and the embedded cluster. `read_metric` turns an answer into a reading.
"""

from ocf.controllers.metrics.api import CUSTOM_METRICS, EXTERNAL_METRICS, RESOURCE_METRICS, MetricsApi
from ocf.controllers.metrics.fixed import FixedMetrics
from ocf.controllers.metrics.kinds import Kinds
from ocf.controllers.metrics.patient import PathReader, PatientReader
from ocf.controllers.metrics.reading import read_metric
from ocf.controllers.metrics.served import ServedMetrics

__all__ = [
    "CUSTOM_METRICS",
    "EXTERNAL_METRICS",
    "RESOURCE_METRICS",
    "FixedMetrics",
    "Kinds",
    "MetricsApi",
    "PathReader",
    "PatientReader",
    "ServedMetrics",
    "read_metric",
]
