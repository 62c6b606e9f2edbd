"""Measures of several traces as one: their means, or the worst of them."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from statistics import fmean

from ocf.simulation.measures.catalog import MEASURES
from ocf.simulation.tuning.objectives import Objective

__all__ = ["Across", "combined"]


class Across(StrEnum):
    """How the measures of several traces become one."""

    MEAN = "mean"
    """Their mean: settings that are good on average."""
    WORST = "worst"
    """The worst of them: settings that are good in each trace. Of a measure that is neither good nor bad, the mean."""


def combined(
    measures: Sequence[Mapping[str, float]], across: Across, objectives: Sequence[Objective] = ()
) -> dict[str, float]:
    """Return the measures of several traces as one; a measure that one trace does not have is left out.

    Example:
        >>> quiet, busy = {"pod_hours": 1.0, "ready_mean": 2.0}, {"pod_hours": 3.0, "ready_mean": 6.0}
        >>> combined([quiet, busy], Across.MEAN), combined([quiet, busy], Across.WORST)
        ({'pod_hours': 2.0, 'ready_mean': 4.0}, {'pod_hours': 3.0, 'ready_mean': 4.0})
        >>> combined([quiet, busy], Across.WORST, [Objective("ready_mean", is_minimized=False)])["ready_mean"]
        2.0
    """
    if len(measures) == 1:
        return dict(measures[0])
    names = [name for name in measures[0] if all(name in each for each in measures)] if measures else []
    directions = {each.name: each.is_minimized for each in objectives}
    found: dict[str, float] = {}
    for name in names:
        values = [each[name] for each in measures]
        is_minimized = directions.get(name, MEASURES[name].lower_is_better)
        if across is Across.MEAN or is_minimized is None:
            found[name] = fmean(values)
        else:
            found[name] = max(values) if is_minimized else min(values)
    return found
