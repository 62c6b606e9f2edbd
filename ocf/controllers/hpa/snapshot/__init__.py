"""What a round of the HPA controller sees: gathered from a cluster and its metrics APIs, with few requests.

`Observer.observe` makes a `Snapshot` of an HPA; `ocf.autoscaling.algorithm.decide` does the rest.
"""

from ocf.controllers.hpa.snapshot.label_index import Labelled
from ocf.controllers.hpa.snapshot.observer import Observation, Observer
from ocf.controllers.hpa.snapshot.scale_getter import DerivedScales, Scales, SubresourceScales
from ocf.controllers.hpa.snapshot.selector_index import Selectors
from ocf.controllers.hpa.snapshot.single_flight import Once, SharedMetrics

__all__ = [
    "DerivedScales",
    "Labelled",
    "Observation",
    "Observer",
    "Once",
    "Scales",
    "Selectors",
    "SharedMetrics",
    "SubresourceScales",
]
