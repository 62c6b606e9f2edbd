"""Tuning of autoscalers: settings that are best for the objectives, over one or many loads.

`Problem` has the scenarios and the settings that vary, `Target` the objectives and requirements. `tune` searches on any
`concurrent.futures.Executor`, and checks the winner on a part of the load that the search has not seen.
"""

from ocf.simulation.tuning.objectives import parse_objectives
from ocf.simulation.tuning.problem import LoadTrace, Problem
from ocf.simulation.tuning.search import parse_setting
from ocf.simulation.tuning.tuning import Method, Target, tune

__all__ = [
    "LoadTrace",
    "Method",
    "Problem",
    "Target",
    "parse_objectives",
    "parse_setting",
    "tune",
]
