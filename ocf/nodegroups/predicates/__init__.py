"""The filters of kube-scheduler: whether a pod fits a node, and the state that they are evaluated against."""

from ocf.nodegroups.predicates.fits import explain, fits
from ocf.nodegroups.predicates.reasons import Misfit
from ocf.nodegroups.predicates.state import ClusterState, ShapeView

__all__ = ["ClusterState", "Misfit", "ShapeView", "explain", "fits"]
