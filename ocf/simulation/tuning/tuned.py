"""The result of a search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ocf.objects import Manifest
from ocf.simulation.measures.expressions import Expression
from ocf.simulation.tuning.across import Across
from ocf.simulation.tuning.objectives import Objective, dominates
from ocf.simulation.tuning.problem import Candidate

__all__ = ["Finalist", "Member", "SettingEffect", "Tuned"]

# What the users of the workload notice, as shares.
_NOTICED: Final = ("overload_time", "late_share", "dropped_share")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """An evaluated candidate.

    Args:
        candidate: The candidate; None for the current settings.
        values: Values of the settings by field.
        measures: Objectives and measures of requirements by name, over all traces, in the part that was searched.
        violation: How far it is from meeting the requirements; 0 if it meets them.
        order: Number of the evaluation, from 0.
    """

    candidate: Candidate
    values: Mapping[str, Any]
    measures: Mapping[str, float]
    violation: float = 0.0
    order: int = 0

    def losses(self, objectives: Sequence[Objective]) -> tuple[float, ...]:
        """Return its losses."""
        return tuple(each.loss(self.measures[each.name]) for each in objectives)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finalist:
    """A candidate with all of its measures, also of the time that the search has not seen.

    Args:
        values: Values of the settings by field.
        searched: Measures of each trace in the part that was searched.
        held_out: Measures of each trace in the rest; empty if all of it was searched.
        measures: Measures over all traces in the part that was searched.
        held_out_measures: Measures over all traces in the rest; empty if all of it was searched.
        unmet: Requirements that it does not meet in the part that was searched.
        unmet_held_out: Requirements that it does not meet in the rest.
        warnings: What the measures do not show, as in the result of a simulation.
    """

    values: Mapping[str, Any]
    searched: tuple[Mapping[str, float], ...]
    held_out: tuple[Mapping[str, float], ...]
    measures: Mapping[str, float]
    held_out_measures: Mapping[str, float]
    unmet: tuple[str, ...] = ()
    unmet_held_out: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingEffect:
    """One setting changed, all others as the winner has them.

    Args:
        path: The field.
        value: The value in place of that of the winner.
        measures: Objectives and measures of requirements by name; empty if that cannot be run.
        is_allowed: Whether it can be run and meets the requirements.
        weight: The largest change of an objective, as a share of the range of the objective in the front, or of its
            value where the front has only one.
    """

    path: str
    value: Any
    measures: Mapping[str, float]
    is_allowed: bool
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """The result of a search.

    Args:
        traces: Names of the traces.
        across: How the measures of several traces become one.
        evaluated: Number of candidates that were simulated.
        invalid: Number of candidates that cannot be run, such as those whose HPA the API server would reject.
        searched: Share of the time that was searched.
        front: The candidates that no other one dominates, best first: by their distance from the ideal. Of these, the
            first is the winner. If no candidate meets the requirements, it has only the one that is closest to that.
        others: The other candidates that meet the requirements, in the order of their evaluation.
        current: The current settings.
        runner_up: The next best candidate; None if there is none.
        effects: Changes of single settings of the winner; the setting that matters most comes first.
        hpa: The HPA of the winner.
        held_out_from: For each trace, the instant at which the time begins that was not searched; None without a date.
    """

    traces: tuple[str, ...]
    objectives: tuple[Objective, ...]
    requirements: tuple[Expression, ...]
    across: Across
    evaluated: int
    invalid: int
    searched: float
    front: tuple[Member, ...]
    others: tuple[Member, ...]
    current: Finalist
    winner: Finalist
    runner_up: Finalist | None
    effects: tuple[SettingEffect, ...]
    hpa: Manifest
    held_out_from: tuple[datetime | None, ...] = ()

    @property
    def is_feasible(self) -> bool:
        """Whether the winner meets the requirements in the part that was searched."""
        return self.front[0].violation == 0

    @property
    def is_current(self) -> bool:
        """Whether the current settings are the best ones."""
        return self.front[0].candidate is None

    @property
    def worse_overload(self) -> tuple[str, ...]:
        """The measures of overload that are worse with the winner than today, and that no requirement limits."""
        if not self.is_feasible or self.is_current:
            return ()
        limited = {name for each in self.requirements for name in each.names}
        before, after = self.current.measures, self.winner.measures
        shared = (name for name in _NOTICED if name in before and name in after)
        return tuple(name for name in shared if after[name] > before[name] and name not in limited)

    @property
    def is_worse_when_held_out(self) -> bool:
        """Whether the current settings are better than the winner in the time that the search has not seen.

        They are better if they dominate the winner, or meet requirements that it does not meet.
        """
        if not self.winner.held_out:
            return False
        if set(self.winner.unmet_held_out) - set(self.current.unmet_held_out):
            return True
        before, after = (
            tuple(each.loss(finalist.held_out_measures[each.name]) for each in self.objectives)
            for finalist in (self.current, self.winner)
        )
        return dominates(before, after)
