"""Packing of pods onto nodes: first fit by size, equal pods at once."""

from ocf.nodegroups.packing.demands import PRIORITY_CUTOFF, Demand, group_pods, is_expendable, pending_pods
from ocf.nodegroups.packing.fill import fill
from ocf.nodegroups.packing.pack import NewNode, Packing, Unplaced, add_nodes, pack
from ocf.nodegroups.packing.room import assign, fill_in_turn, fill_room, join_in_flight, prepare, reference_size
from ocf.nodegroups.packing.templates import NodeTemplate, place_daemons

__all__ = [
    "PRIORITY_CUTOFF",
    "Demand",
    "NewNode",
    "NodeTemplate",
    "Packing",
    "Unplaced",
    "add_nodes",
    "assign",
    "fill",
    "fill_in_turn",
    "fill_room",
    "group_pods",
    "is_expendable",
    "join_in_flight",
    "pack",
    "pending_pods",
    "place_daemons",
    "prepare",
    "reference_size",
]
