"""Recordings from Prometheus: the series of a range of time, as the objects that a sync would have read."""

from ocf.simulation.recording.prometheus.matrix import Matrix, Series, matrix_of
from ocf.simulation.recording.prometheus.objects import RangeObjects, RecordedTarget
from ocf.simulation.recording.prometheus.queries import HPA_SOURCES, Need, SeriesSelection, SeriesSource, target_sources
from ocf.simulation.recording.prometheus.specs import RangeSpec, missing_series
from ocf.simulation.recording.prometheus.steps import MOST_POINTS, Steps

__all__ = [
    "HPA_SOURCES",
    "MOST_POINTS",
    "Matrix",
    "Need",
    "RangeObjects",
    "RangeSpec",
    "RecordedTarget",
    "Series",
    "SeriesSelection",
    "SeriesSource",
    "Steps",
    "matrix_of",
    "missing_series",
    "target_sources",
]
