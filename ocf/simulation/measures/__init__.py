"""Measures of a simulated run: elasticity, overload, latency, pod-hours, nodes, cost and scaling.

All are pure functions of the time series and the scaling actions. `MEASURES` has their definitions.
"""

from ocf.simulation.measures.expressions import parse_expression
from ocf.simulation.measures.measuring import measure, with_measures
from ocf.simulation.measures.nodes import group_totals

__all__ = [
    "group_totals",
    "measure",
    "parse_expression",
    "with_measures",
]
