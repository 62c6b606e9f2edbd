"""Packing of pods onto nodes: first fit by size, equal pods at once."""

from ocf.nodegroups.packing.demands import Demand, group_pods, pending_pods
from ocf.nodegroups.packing.fill import fill
from ocf.nodegroups.packing.pack import (
    NewNode,
    Packing,
    Unplaced,
    add_nodes,
    fill_room,
    pack,
    prepare,
    reference_size,
)
from ocf.nodegroups.packing.templates import NodeTemplate, place_daemons

__all__ = [
    "Demand",
    "NewNode",
    "NodeTemplate",
    "Packing",
    "Unplaced",
    "add_nodes",
    "fill",
    "fill_room",
    "group_pods",
    "pack",
    "pending_pods",
    "place_daemons",
    "prepare",
    "reference_size",
]
