"""The filters of kube-scheduler: whether a pod fits a node, and the state that they are evaluated against."""

from ocf.nodegroups.predicates.fits import count_reasons, explain, fits
from ocf.nodegroups.predicates.reasons import Misfit
from ocf.nodegroups.predicates.shape_view import ShapeView
from ocf.nodegroups.predicates.state import ClusterState

__all__ = ["ClusterState", "Misfit", "ShapeView", "count_reasons", "explain", "fits"]
