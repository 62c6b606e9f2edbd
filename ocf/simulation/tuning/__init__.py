"""Tuning of autoscalers: settings that are best for the objectives, over one or many loads.

`Problem` has the scenarios and the settings that vary, `Target` the objectives and requirements. `tune` searches on any
`concurrent.futures.Executor`, and checks the winner on a part of the load that the search has not seen.
"""

from ocf.simulation.tuning.across import Across
from ocf.simulation.tuning.evaluating import Evaluation
from ocf.simulation.tuning.objectives import Objective, parse_objectives, scenario_requirements
from ocf.simulation.tuning.problem import Candidate, LoadTrace, Problem
from ocf.simulation.tuning.samplers import SamplerName
from ocf.simulation.tuning.search import SearchFile, parse_setting, read_search
from ocf.simulation.tuning.settings import TunedSetting, choice_setting, range_setting
from ocf.simulation.tuning.tuned import Finalist, Member, SettingEffect, Tuned
from ocf.simulation.tuning.tuning import Method, Target, tune

__all__ = [
    "Across",
    "Candidate",
    "Evaluation",
    "Finalist",
    "LoadTrace",
    "Member",
    "Method",
    "Objective",
    "Problem",
    "SamplerName",
    "SearchFile",
    "SettingEffect",
    "Target",
    "Tuned",
    "TunedSetting",
    "choice_setting",
    "parse_objectives",
    "parse_setting",
    "range_setting",
    "read_search",
    "scenario_requirements",
    "tune",
]
