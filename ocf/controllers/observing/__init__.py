"""What a round of the HPA controller sees: gathered from a cluster and its metrics APIs, with few requests.

`Observer.observe` makes a `Snapshot` of an HPA; `ocf.autoscaling.algorithm.decide` does the rest.
"""

from ocf.controllers.observing.labelled import Labelled
from ocf.controllers.observing.observer import Observation, Observer
from ocf.controllers.observing.scales import DerivedScales, Scales, SubresourceScales
from ocf.controllers.observing.selectors import Selectors
from ocf.controllers.observing.sharing import Once, SharedMetrics

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
