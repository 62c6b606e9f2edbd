"""Verdicts on objectives."""

from datetime import timedelta
from typing import Any

import pytest

from ocf.simulation.measures import with_measures
from ocf.simulation.measures.verdicts import ObjectiveVerdict, verdicts
from ocf.simulation.scenario import Scenario
from ocf.simulation.scenario.objectives import LatencyObjective, Objectives, Prices
from ocf.simulation.scenario.workload import Workload
from tests.simulation.runs import run

RUN = run([0, 3600], duration=7200, load=[8, 12], capacity=[10, 20], served=[8, 12], ready=[1, 2])


def verdict(**bounds: Any) -> list[ObjectiveVerdict]:
    scenario = Scenario.model_validate(
        {
            "hpa": {},
            "workload": Workload(capacity=10),
            "load": {"type": "Steady", "rate": 1},
            "objectives": Objectives(**bounds),
        }
    )
    return list(verdicts(with_measures(RUN, scenario), scenario))


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        pytest.param({}, [], id="none"),
        pytest.param({"pod_hours": 3}, [("pod hours at most 3", "3", True)], id="met exactly"),
        pytest.param({"pod_hours": 2.5}, [("pod hours at most 2.5", "3", False)], id="missed"),
        pytest.param(
            {"overload_time": 0.1, "target_utilization": 0.7},
            [("overload time at most 10 %", "50 %", False)],
            id="overload",
        ),
        pytest.param(
            {"cost": 1, "prices": Prices(pod_hour=0.25, currency="EUR")},
            [("cost at most 1 EUR", "0.75 EUR", True)],
            id="cost",
        ),
        pytest.param(
            {"latency": LatencyObjective(at_most=timedelta(seconds=1), percentile=99.9)},
            [("latency, 99.9th percentile, at most 1 s", "3 s", False)],
            id="latency: ln(0.4 / 0.001) / 2",
        ),
    ],
)
def test_each_bound_has_a_verdict(bounds: dict[str, Any], expected: list[tuple[str, str, bool]]) -> None:
    assert [(each.objective, each.found, each.met) for each in verdict(**bounds)] == expected
