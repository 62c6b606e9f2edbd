"""Verdicts on the objectives of a scenario."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ocf.simulation.measures.formatting import duration_text, value_text
from ocf.simulation.measures.measuring import run_latencies, without_latencies
from ocf.simulation.result import SimulationResult
from ocf.simulation.scenario import Scenario
from ocf.simulation.scenario.objectives import Objectives
from ocf.simulation.scenario.workload import Workload

__all__ = ["ObjectiveVerdict", "verdicts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveVerdict:
    """Whether a run meets an objective.

    Args:
        objective: The objective in words.
        found: The value in words.
        met: Whether it is met.
    """

    objective: str
    found: str
    met: bool


def verdicts(result: SimulationResult, scenario: Scenario) -> tuple[ObjectiveVerdict, ...]:
    """Return a verdict for each bound that the objectives of a scenario set.

    Args:
        result: The run, with its measures.
    """
    objectives = scenario.objectives
    late = _latency(result, scenario.workload, objectives) if without_latencies(scenario) is None else ()
    return (*_bounds(result.measures, objectives), *late)


def _bounds(measures: Mapping[str, float], objectives: Objectives) -> Iterator[ObjectiveVerdict]:
    for name in ("overload_time", "pod_hours", "cost"):
        bound: float | None = getattr(objectives, name)
        if bound is not None:
            most, found = (
                value_text(name, each, currency=objectives.prices.currency) for each in (bound, measures[name])
            )
            title = name.replace("_", " ")
            yield ObjectiveVerdict(objective=f"{title} at most {most}", found=found, met=measures[name] <= bound)


def _latency(result: SimulationResult, workload: Workload, objectives: Objectives) -> Iterator[ObjectiveVerdict]:
    objective = objectives.latency
    found = None if objective is None else run_latencies(result, workload)
    if objective is not None and found is not None:
        most, value = objective.at_most.total_seconds(), found.percentile(objective.percentile)
        text = f"latency, {objective.percentile:g}th percentile, at most {duration_text(most)}"
        yield ObjectiveVerdict(objective=text, found=duration_text(value), met=value <= most)
