"""A run with what a report has to know of its scenario."""

from dataclasses import dataclass

from ocf.simulation.measures import with_measures
from ocf.simulation.measures.verdicts import ObjectiveVerdict, verdicts
from ocf.simulation.result import SimulationResult
from ocf.simulation.scenario import Scenario
from ocf.simulation.scenario.replay import ReplayComparison

__all__ = ["Reported"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """A run to report.

    Args:
        name: Its name in the report.
        result: The run, with its measures.
        verdicts: Verdicts on the objectives.
        currency: Currency of prices.
        target_utilization: Share of the capacity of a pod that defines the demand.
        replay: The run beside the recording that it replays; None for other runs.
    """

    name: str
    result: SimulationResult
    verdicts: tuple[ObjectiveVerdict, ...] = ()
    currency: str = ""
    target_utilization: float = 1.0
    replay: ReplayComparison | None = None

    @classmethod
    def all_of(cls, result: SimulationResult, scenario: Scenario, *, name: str | None = None) -> "list[Reported]":
        """Measure a run and those of its neighbors, and compare them with their objectives.

        Args:
            result: The run.
            name: Name in the report; None for that of the scenario. With it, the names of neighbors begin with it.
        """
        first, *others = scenario.services()
        runs = [cls.of(result, first, name=name)]
        for found, service in zip(result.neighbors, others, strict=True):
            runs.append(cls.of(found, service, name=None if name is None else f"{name}: {service.name}"))
        return runs

    @classmethod
    def of(
        cls,
        result: SimulationResult,
        scenario: Scenario,
        *,
        name: str | None = None,
        replay: ReplayComparison | None = None,
    ) -> "Reported":
        """Measure a run and compare it with its objectives.

        Args:
            result: The run.
            name: Name in the report; None for that of the scenario.
            replay: The run beside the recording that it replays.
        """
        measured = with_measures(result, scenario)
        return cls(
            name=name or scenario.name,
            result=measured,
            verdicts=verdicts(measured, scenario),
            currency=scenario.objectives.prices.currency,
            target_utilization=scenario.objectives.target_utilization,
            replay=replay,
        )
