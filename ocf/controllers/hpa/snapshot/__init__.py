"""Snapshots: the input of one reconcile of an HPA, read from a cluster and its metrics APIs with few requests.

`SnapshotReader.observe` returns the `Snapshot` of an HPA, and `ocf.autoscaling.algorithm.decide` decides on it.
"""

from ocf.controllers.hpa.snapshot.label_index import LabelIndex
from ocf.controllers.hpa.snapshot.observer import HpaSnapshot, SnapshotReader
from ocf.controllers.hpa.snapshot.pods import PodIndex
from ocf.controllers.hpa.snapshot.scale_getter import DerivedScaleGetter, ScaleGetter, SubresourceScaleGetter
from ocf.controllers.hpa.snapshot.selector_index import SelectorIndex
from ocf.controllers.hpa.snapshot.single_flight import SharedMetrics, SingleFlight

__all__ = [
    "DerivedScaleGetter",
    "HpaSnapshot",
    "LabelIndex",
    "PodIndex",
    "ScaleGetter",
    "SelectorIndex",
    "SharedMetrics",
    "SingleFlight",
    "SnapshotReader",
    "SubresourceScaleGetter",
]
