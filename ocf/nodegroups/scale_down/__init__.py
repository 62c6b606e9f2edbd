"""Scale-down of node groups."""

from ocf.nodegroups.scale_down.outcomes import CandidateOutcome, ScaleDown, Verdict
from ocf.nodegroups.scale_down.plan import is_sick, plan_scale_down, update_low_since
from ocf.nodegroups.scale_down.simulation import DrainSimulation
from ocf.nodegroups.scale_down.utilization import (
    Utilization,
    removal_order,
    select_nodes_to_delete,
    utilization_of,
)

__all__ = [
    "CandidateOutcome",
    "DrainSimulation",
    "ScaleDown",
    "Utilization",
    "Verdict",
    "is_sick",
    "plan_scale_down",
    "removal_order",
    "select_nodes_to_delete",
    "update_low_since",
    "utilization_of",
]
