"""Evaluation of candidates: a simulation of each trace, and the measures of its parts.

`evaluate_pickled` is the function that workers run, so its arguments and its result can be pickled.
"""

import pickle
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final

from ocf.errors import ConfigError
from ocf.simulation.engine import Shared, simulate
from ocf.simulation.measures import measure
from ocf.simulation.measures.catalog import MEASURES, Group, MeasureUnit
from ocf.simulation.measures.measuring import names_with_meaning, without_latencies
from ocf.simulation.result import Columns, GroupColumns, ScalingAction, SimulationResult
from ocf.simulation.scenario import Scenario
from ocf.simulation.scenario.checks import has_prices
from ocf.simulation.tuning.problem import Candidate, InvalidCandidate, LoadTrace, Problem

__all__ = [
    "Evaluation",
    "Prepared",
    "Task",
    "check_measures",
    "evaluate",
    "evaluate_pickled",
    "part_of",
    "scaled_totals",
    "search_end",
]

Measures = Mapping[str, float]
_PARTS: Final = ("searched", "held_out", "problems", "warnings")
_TOTALS: Final = frozenset(
    {MeasureUnit.COUNT, MeasureUnit.POD_HOURS, MeasureUnit.POD_SECONDS, MeasureUnit.NODE_HOURS, MeasureUnit.PRICE}
)


def part_of(result: SimulationResult, begin: float, end: float) -> SimulationResult:
    """Return a part of a run, with times since its begin.

    Args:
        begin: Begin of the part, in seconds since the start.
        end: End of the part, in seconds since the start.

    Example:
        >>> from datetime import UTC, datetime
        >>> rows = Columns(time=array("d", [0, 60, 120]), ready=array("q", [1, 2, 3]))
        >>> run = SimulationResult(name="web", start=datetime(2026, 1, 1, tzinfo=UTC), duration=180, columns=rows)
        >>> part = part_of(run, 90, 150)
        >>> list(part.columns.time), list(part.columns.ready), part.duration
        ([0.0, 30.0], [2, 3], 60)
    """
    first = bisect_right(result.columns.time, begin) - 1
    last = bisect_left(result.columns.time, end)
    columns = Columns(**{each.name: getattr(result.columns, each.name)[first:last] for each in fields(Columns)})
    if columns.time:
        cut = columns.time[0] < begin
        times = array("d", (max(0.0, time - begin) for time in columns.time))
        columns = replace(columns, time=times)
        # The sync of the row was before the part.
        if cut and columns.synced:
            columns.synced[0] = 0
    return replace(
        result,
        duration=end - begin,
        columns=columns,
        actions=_actions(result.actions, begin, end),
        workload_actions=_actions(result.workload_actions, begin, end),
        node_actions=_actions(result.node_actions, begin, end),
        node_groups={
            name: GroupColumns(**{each.name: getattr(found, each.name)[first:last] for each in fields(GroupColumns)})
            for name, found in result.node_groups.items()
        },
        condition_changes=tuple(
            each._replace(time=each.time - begin) for each in result.condition_changes if begin <= each.time < end
        ),
        syncs=sum(columns.synced),
    )


def _actions(actions: Iterable[ScalingAction], begin: float, end: float) -> tuple[ScalingAction, ...]:
    return tuple(replace(each, time=each.time - begin) for each in actions if begin <= each.time < end)


def scaled_totals(measures: Mapping[str, float], factor: float) -> dict[str, float]:
    """Return measures in which totals, such as pod-hours, are those of a longer time.

    So the measures of parts of different length can be compared with each other and with a bound.

    Args:
        factor: Length of the whole over length of the part.

    Example:
        >>> scaled_totals({"pod_hours": 3.0, "overload_time": 0.02}, 4)
        {'pod_hours': 12.0, 'overload_time': 0.02}
    """
    return {name: _scaled(value, factor) if _is_total(name) else value for name, value in measures.items()}


def _is_total(name: str) -> bool:
    return MEASURES[name].unit in _TOTALS or name == "dropped"


def _scaled(value: float, factor: float) -> Any:
    return value if factor == 1 else float(f"{value * factor:.9g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is evaluated of each candidate.

    Args:
        names: Names of measures; None for all.
        searched: Share of the time of each trace that the search sees, more than 0.
        held_out: Whether the rest of the time is simulated and measured, too.
    """

    names: tuple[str, ...] | None
    searched: float
    held_out: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The result of a candidate.

    Args:
        searched: Measures of each trace in the part that the search sees; empty if the candidate cannot be run.
        held_out: Measures of each trace in the rest; empty if that was not measured.
        problems: Why the candidate cannot be run.
        warnings: What the numbers do not show, as in the result of a simulation.
    """

    searched: tuple[Measures, ...] = ()
    held_out: tuple[Measures, ...] = ()
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the evaluation as JSON values."""
        found = {
            "searched": self.searched,
            "held_out": self.held_out,
            "problems": self.problems,
            "warnings": self.warnings,
        }
        return {name: [*values] for name, values in found.items() if values}

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> "Evaluation":
        """Return the evaluation of JSON values.

        Args:
            value: The values of `to_json`.
        """
        return cls(**{name: tuple(value.get(name, ())) for name in _PARTS})


class Prepared:
    """A problem, and what the simulations of its candidates share."""

    __slots__ = ("problem", "shared")

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.shared = tuple(Shared(trace.load) for trace in problem.traces)


def evaluate_pickled(problem: bytes, task: Task, candidate: Candidate) -> Evaluation:
    """Simulate a candidate in a worker, which unpickles a problem once for all of its candidates."""
    return evaluate(_unpickled(problem), task, candidate)


@lru_cache(maxsize=1)
def _unpickled(problem: bytes) -> Prepared:
    return Prepared(pickle.loads(problem))  # noqa: S301 (from the process that searches)


def evaluate(prepared: Prepared, task: Task, candidate: Candidate) -> Evaluation:
    """Simulate a candidate.

    Returns:
        Its measures, or why it cannot be run.
    """
    searched: list[Measures] = []
    held_out: list[Measures] = []
    warnings: dict[str, None] = {}
    problem = prepared.problem
    for trace, shared in zip(problem.traces, prepared.shared, strict=True):
        try:
            scenario = problem.scenario(trace, candidate)
        except InvalidCandidate as error:
            return Evaluation(problems=error.problems)
        end = trace.duration
        cut = search_end(trace, task.searched)
        until = timedelta(seconds=end if task.held_out else cut)
        shorter = scenario.model_copy(update={"duration": until})
        run = simulate(shorter, trace.load, neighbors=trace.neighbors, shared=shared)
        warnings |= dict.fromkeys(run.warnings)
        searched.append(_measures(run, scenario, task, (0.0, cut), end))
        if task.held_out and cut < end:
            held_out.append(_measures(run, scenario, task, (cut, end), end))
    return Evaluation(searched=tuple(searched), held_out=tuple(held_out), warnings=tuple(warnings))


def search_end(trace: LoadTrace, share: float) -> float:
    """Return the end of the part that the search sees, in seconds; in whole ones if that is possible."""
    end = trace.duration
    return end if share >= 1 else float(round(end * share)) or end * share


def _measures(
    run: SimulationResult, scenario: Scenario, task: Task, part: tuple[float, float], whole: float
) -> Measures:
    begin, end = part
    seen = run if part == (0.0, run.duration) else part_of(run, begin, end)
    names = names_with_meaning(scenario) if task.names is None else task.names
    found = measure(seen, workload=scenario.workload, objectives=scenario.objectives, names=names)
    return scaled_totals(found, whole / (end - begin))


def check_measures(problem: Problem, names: tuple[str, ...]) -> None:
    """Check that the scenarios define measures."""
    for trace in problem.traces:
        objectives = trace.scenario.objectives
        if "cost" in names and not has_prices(trace.scenario):
            raise ConfigError(f"{trace.name}: cost: there are no prices: add `prices: {{podHour: 0.05}}` to objectives")
        of_nodes = [each for each in names if MEASURES[each].group is Group.NODES]
        if of_nodes and not trace.scenario.node_groups:
            raise ConfigError(f"{trace.name}: {of_nodes[0]}: the scenario has no node groups")
        late = [each for each in names if MEASURES[each].group is Group.LATENCY]
        reason = without_latencies(trace.scenario)
        if late and reason is not None:
            raise ConfigError(f"{trace.name}: {late[0]}: {reason}")
        if "late_share" in names and objectives.latency is None:
            raise ConfigError(
                f"{trace.name}: late_share: there is no objective for the latency: add `latency: {{atMost: 1s}}` to"
                " objectives"
            )
