"""Measures of a simulated run: elasticity, overload, latency, pod-hours, nodes, cost and scaling.

All are pure functions of the time series and the scaling actions. `MEASURES` has their definitions.
"""

from ocf.simulation.measures.catalog import MEASURES, Group, Measure, MeasureUnit
from ocf.simulation.measures.elasticity import elastic_speedup
from ocf.simulation.measures.expressions import Expression, parse_expression
from ocf.simulation.measures.formatting import duration_text, number_text, value_text
from ocf.simulation.measures.measuring import check_name, measure, with_measures
from ocf.simulation.measures.nodes import GroupTotals, group_totals
from ocf.simulation.measures.verdicts import ObjectiveVerdict, verdicts

__all__ = [
    "MEASURES",
    "Expression",
    "Group",
    "GroupTotals",
    "Measure",
    "MeasureUnit",
    "ObjectiveVerdict",
    "check_name",
    "duration_text",
    "elastic_speedup",
    "group_totals",
    "measure",
    "number_text",
    "parse_expression",
    "value_text",
    "verdicts",
    "with_measures",
]
