"""Snapshots: the input of one reconcile of an HPA, read from a cluster and its metrics APIs with few requests.

`SnapshotReader.observe` returns the `Snapshot` of an HPA, and `ocf.autoscaling.algorithm.decide` decides on it.
"""

from ocf.controllers.hpa.snapshot.observer import HpaSnapshot, SnapshotReader
from ocf.controllers.hpa.snapshot.scale_getter import DerivedScaleGetter, SubresourceScaleGetter

__all__ = [
    "DerivedScaleGetter",
    "HpaSnapshot",
    "SnapshotReader",
    "SubresourceScaleGetter",
]
