"""Scenarios of the tests, and a comparison of results."""

from typing import Any

from ocf.autoscaling.algorithm import Autoscaler
from ocf.simulation import Scenario
from ocf.simulation.engine.edits import edits_of
from ocf.simulation.engine.run import Place, Run
from ocf.simulation.engine.stretches import Shared
from ocf.simulation.engine.together import nodes_of, run_together
from ocf.simulation.load import LoadSeries
from ocf.simulation.result import SimulationResult

__all__ = ["CPU", "hpa_of", "rows_of", "run", "scenario_of"]

CPU: dict[str, Any] = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}


def hpa_of(*metrics: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return an HPA."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 20,
            "metrics": list(metrics) or [CPU],
            **spec,
        },
    }


def scenario_of(hpa: dict[str, Any] | None = None, *, workload: dict[str, Any] | None = None, **rest: Any) -> Scenario:
    """Return a scenario of pods that serve 10 load units per second each, with a request of one cpu."""
    return Scenario.model_validate(
        {
            "hpa": hpa or hpa_of(),
            "workload": {"capacity": 10, "requests": {"cpu": "1"}, **(workload or {})},
            "load": {"type": "Steady", "rate": 0},
            "duration": "10m",
            **rest,
        }
    )


def run(
    scenario: Scenario, *steps: tuple[float, float], full: bool = False, shared: Shared | None = None
) -> SimulationResult:
    """Simulate a scenario under a load of some steps."""
    assert isinstance(scenario.hpa, dict)
    edits = tuple(edits_of(scenario.hpa, scenario.hpa_edits))
    autoscaler = Autoscaler.of(scenario.hpa)
    nodes = nodes_of([scenario], [autoscaler], full=full)
    only = Run(scenario, LoadSeries.of(steps), autoscaler, edits=edits, full=full, shared=shared, place=Place(nodes))
    run_together([only], nodes)
    return only.result()


def rows_of(result: SimulationResult) -> list[dict[str, Any]]:
    """Return the time series as rows."""
    names = (name for name in type(result.columns).__slots__ if getattr(result.columns, name))
    columns = {name: getattr(result.columns, name) for name in names}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
