"""Scale-up of node groups."""

from ocf.nodegroups.scale_up.formulas import calculate_desired_nodes, calculate_nodes_to_add, is_in_cooldown
from ocf.nodegroups.scale_up.scale_up import GroupScaleUp, ScaleUp, plan_scale_up
from ocf.nodegroups.scale_up.shortfalls import Shortfall

__all__ = [
    "GroupScaleUp",
    "ScaleUp",
    "Shortfall",
    "calculate_desired_nodes",
    "calculate_nodes_to_add",
    "is_in_cooldown",
    "plan_scale_up",
]
