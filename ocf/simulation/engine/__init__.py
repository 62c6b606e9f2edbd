"""The engine: a scenario and a load in, a time series, the scaling actions and the conditions out."""

from ocf.autoscaling.algorithm import Autoscaler
from ocf.autoscaling.api.versions import read_hpa
from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.simulation.engine.edits import edits_of
from ocf.simulation.engine.run import Progress, Run
from ocf.simulation.engine.stretches import Shared
from ocf.simulation.load import LoadSeries
from ocf.simulation.result import SimulationResult
from ocf.simulation.scenario import Scenario

__all__ = ["Progress", "Shared", "simulate"]


def simulate(
    scenario: Scenario,
    load: LoadSeries,
    *,
    hpa: Manifest | None = None,
    progress: Progress | None = None,
    shared: Shared | None = None,
) -> SimulationResult:
    """Simulate an HPA under a load.

    Args:
        scenario: The scenario.
        load: The load.
        hpa: The HPA, in place of that of the scenario and its edits; required if the scenario names a file that has it.
        progress: Called now and then with the share of the time that is simulated, from 0 to 1.
        shared: What simulations under the same load share, which makes those of many settings faster.

    Returns:
        The result; the same for the same scenario, load and HPA, on every machine.

    Raises:
        ConfigError: If the scenario has no end, names a file for the HPA that was not passed, or does not define the
            values of a metric, or if `shared` is of another load.
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
    edits = () if hpa is not None else tuple(edits_of(manifest, scenario.hpa_edits))
    return Run(scenario, load, Autoscaler.of(read_hpa(manifest)), edits=edits, shared=shared).run(progress)
