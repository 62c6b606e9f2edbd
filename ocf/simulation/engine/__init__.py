"""The engine: a scenario and a load in, a time series, the scaling actions and the conditions out."""

from collections.abc import Sequence
from dataclasses import replace

from ocf.autoscaling.algorithm import Autoscaler
from ocf.autoscaling.api.versions import read_hpa
from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.simulation.engine.edits import edits_of
from ocf.simulation.engine.run import Place, Progress, Run
from ocf.simulation.engine.stretches import Shared
from ocf.simulation.engine.together import nodes_of, run_together
from ocf.simulation.load import LoadSeries
from ocf.simulation.load.served import ServedLoad
from ocf.simulation.result import SimulationResult
from ocf.simulation.scenario import Scenario

__all__ = ["Progress", "Shared", "simulate"]


def simulate(
    scenario: Scenario,
    load: LoadSeries,
    *,
    hpa: Manifest | None = None,
    neighbors: Sequence[LoadSeries] = (),
    progress: Progress | None = None,
    shared: Shared | None = None,
) -> SimulationResult:
    """Simulate an HPA under a load, together with the neighbors of the scenario.

    Args:
        scenario: The scenario.
        load: The load.
        hpa: The HPA, in place of that of the scenario and its edits; required if the scenario names a file that has it.
        neighbors: The load of each neighbor of the scenario, in their order.
        progress: Called now and then with the share of the time that is simulated, from 0 to 1.
        shared: What simulations under the same load share, which makes those of many settings faster.

    Returns:
        The result, with those of the neighbors; the same for the same scenario, loads and HPA, on every machine.

    Raises:
        ConfigError: If the scenario has no end, names a file for the HPA that was not passed, or does not define the
            values of a metric, if `shared` is of another load, or if a neighbor has no load.
        ManifestError: If the HPA cannot be decoded.

    Example:
        >>> cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
        >>> metrics = [{"type": "Resource", "resource": cpu}]
        >>> hpa = {
        ...     "apiVersion": "autoscaling/v2",
        ...     "kind": "HorizontalPodAutoscaler",
        ...     "metadata": {"name": "web"},
        ...     "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 9, "metrics": metrics},
        ... }
        >>> scenario = Scenario.model_validate(
        ...     {
        ...         "hpa": hpa,
        ...         "workload": {"capacity": 10, "requests": {"cpu": "1"}},
        ...         "load": {"type": "Steady", "rate": 20},
        ...         "duration": "10m",
        ...     }
        ... )
        >>> result = simulate(scenario, LoadSeries.of([(0, 20)]))
        >>> [(action.time, action.after) for action in result.actions]
        [(0.0, 2), (30.0, 4)]
    """
    manifest = scenario.hpa if hpa is None else hpa
    if isinstance(manifest, str):
        raise ConfigError(f"the HPA is in the file {manifest}: read it, and pass it as `hpa`")
    if shared is not None and shared.load is not load and shared.load != load:
        raise ConfigError("`shared` was made for another load: pass `Shared(load)` with the same load")
    if len(neighbors) != len(scenario.neighbors):
        raise ConfigError(
            f"expected a load for each of {len(scenario.neighbors)} neighbors, got {len(neighbors)}: pass"
            " `neighbors=[load_series(each) for each in scenario.services()[1:]]`"
        )
    edits = () if hpa is not None else tuple(edits_of(manifest, scenario.hpa_edits))
    scenarios = scenario.services()
    manifests = [manifest, *(_own_hpa(each) for each in scenarios[1:])]
    autoscalers = [Autoscaler.of(read_hpa(each)) for each in manifests]
    nodes = nodes_of(scenarios, autoscalers)
    if len(scenarios) == 1:
        only = Run(scenario, load, autoscalers[0], edits=edits, shared=shared, place=Place(nodes))
        run_together([only], nodes, progress)
        return only.result()
    runs: list[Run] = []
    for position, each in enumerate(scenarios):
        called = {other.name: run for other, run in zip(scenarios, runs, strict=False)}
        run = Run(
            each,
            (load, *neighbors)[position],
            autoscalers[position],
            edits=tuple(edits_of(manifests[position], each.hpa_edits)) if position else edits,
            place=Place(
                nodes,
                position,
                [(called[served.by], served.factor) for served in each.load if isinstance(served, ServedLoad)],
            ),
        )
        runs.append(run)
    run_together(runs, nodes, progress)
    first, *others = [run.result() for run in runs]
    return replace(first, neighbors=tuple(others))


def _own_hpa(neighbor: Scenario) -> Manifest:
    if isinstance(neighbor.hpa, str):
        raise ConfigError(f"the HPA of {neighbor.name} is in the file {neighbor.hpa}: read the scenario from its file")
    return neighbor.hpa
