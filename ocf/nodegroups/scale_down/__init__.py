"""Scale-down of node groups."""

from ocf.nodegroups.scale_down.simulation import DrainSimulation
from ocf.nodegroups.scale_down.utilization import (
    Utilization,
    removal_order,
    select_nodes_to_delete,
    utilization_of,
)

__all__ = [
    "DrainSimulation",
    "Utilization",
    "removal_order",
    "select_nodes_to_delete",
    "utilization_of",
]
