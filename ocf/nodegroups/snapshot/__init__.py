"""Immutable snapshot of a cluster, and the values that it is made of."""

from ocf.nodegroups.snapshot.node_selectors import NodeSelectorTerm, Taint, Toleration, matches_any, untolerated
from ocf.nodegroups.snapshot.nodes import Node
from ocf.nodegroups.snapshot.overlay import Overlay
from ocf.nodegroups.snapshot.pods import PodTable, SnapshotPod
from ocf.nodegroups.snapshot.rejected import RejectedObject
from ocf.nodegroups.snapshot.resources import NO_RESOURCES, Resources, total
from ocf.nodegroups.snapshot.shapes import HostPort, PodShape, Shapes
from ocf.nodegroups.snapshot.snapshot import ClusterSnapshot
from ocf.nodegroups.snapshot.storage import AttachLimits, Claim, StorageClass, Volume
from ocf.nodegroups.snapshot.topology import AffinityTerm, SpreadConstraint
from ocf.nodegroups.snapshot.workloads import DaemonSet, PodDisruptionBudget

__all__ = [
    "NO_RESOURCES",
    "AffinityTerm",
    "AttachLimits",
    "Claim",
    "ClusterSnapshot",
    "DaemonSet",
    "HostPort",
    "Node",
    "NodeSelectorTerm",
    "Overlay",
    "PodDisruptionBudget",
    "PodShape",
    "PodTable",
    "RejectedObject",
    "Resources",
    "Shapes",
    "SnapshotPod",
    "SpreadConstraint",
    "StorageClass",
    "Taint",
    "Toleration",
    "Volume",
    "matches_any",
    "total",
    "untolerated",
]
