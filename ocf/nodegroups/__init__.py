"""Node groups: pure decisions about the nodes of a cluster, from an immutable snapshot.

`decide` is a whole reconcile: which nodes to add for pods that do not fit, which to remove because they are not needed,
and why not. Its parts can be used on their own: the filters of the scheduler (`fits`), packing (`pack`), the choice of
instance types, the safety rules, the drain simulation, and drains as a state machine. `Provider` is the interface to
whatever makes the machines.
"""

from ocf.nodegroups.decide import decide
from ocf.nodegroups.drain import next_step
from ocf.nodegroups.instance_types import InstanceType, Offering
from ocf.nodegroups.model import Catalog, NodeGroup
from ocf.nodegroups.packing import pack
from ocf.nodegroups.predicates import fits
from ocf.nodegroups.provider import IncompleteListError, Machine, MachineRequest, MachineState, Provider
from ocf.nodegroups.rules import Blocked, Removal, SafetyRule, check_pdbs, has_local_storage
from ocf.nodegroups.scale_down import select_nodes_to_delete
from ocf.nodegroups.scale_up import calculate_desired_nodes, calculate_nodes_to_add, is_in_cooldown
from ocf.nodegroups.selection import select_instance_type
from ocf.nodegroups.snapshot import ClusterSnapshot, Node, Resources

__all__ = [
    "Blocked",
    "Catalog",
    "ClusterSnapshot",
    "IncompleteListError",
    "InstanceType",
    "Machine",
    "MachineRequest",
    "MachineState",
    "Node",
    "NodeGroup",
    "Offering",
    "Provider",
    "Removal",
    "Resources",
    "SafetyRule",
    "calculate_desired_nodes",
    "calculate_nodes_to_add",
    "check_pdbs",
    "decide",
    "fits",
    "has_local_storage",
    "is_in_cooldown",
    "next_step",
    "pack",
    "select_instance_type",
    "select_nodes_to_delete",
]
