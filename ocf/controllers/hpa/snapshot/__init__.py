"""What a round of the HPA controller sees: gathered from a cluster and its metrics APIs, with few requests.

`SnapshotReader.observe` makes a `Snapshot` of an HPA; `ocf.autoscaling.algorithm.decide` does the rest.
"""

from ocf.controllers.hpa.snapshot.label_index import LabelIndex
from ocf.controllers.hpa.snapshot.observer import HpaSnapshot, SnapshotReader
from ocf.controllers.hpa.snapshot.scale_getter import DerivedScaleGetter, ScaleGetter, SubresourceScaleGetter
from ocf.controllers.hpa.snapshot.selector_index import SelectorIndex
from ocf.controllers.hpa.snapshot.single_flight import SharedMetrics, SingleFlight

__all__ = [
    "DerivedScaleGetter",
    "HpaSnapshot",
    "LabelIndex",
    "ScaleGetter",
    "SelectorIndex",
    "SharedMetrics",
    "SingleFlight",
    "SnapshotReader",
    "SubresourceScaleGetter",
]
