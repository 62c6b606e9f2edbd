"""All measures of a run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from ocf.errors import ConfigError
from ocf.objects.suggestions import nearest
from ocf.simulation.load.files import RecordingLoad
from ocf.simulation.measures.catalog import MEASURES, Group
from ocf.simulation.measures.elasticity import elasticity
from ocf.simulation.measures.latency import Latencies, latencies
from ocf.simulation.measures.nodes import nodes
from ocf.simulation.measures.overload import overload
from ocf.simulation.measures.resources import resources, scaling
from ocf.simulation.result import SimulationResult
from ocf.simulation.scenario import Scenario
from ocf.simulation.scenario.objectives import Objectives
from ocf.simulation.scenario.workload import Workload

__all__ = ["check_name", "measure", "names_with_meaning", "run_latencies", "with_measures", "without_latencies"]

_DIGITS: Final = 9
_PERCENTILES: Final = {"latency_p50": 50.0, "latency_p95": 95.0, "latency_p99": 99.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    result: SimulationResult
    workload: Workload
    objectives: Objectives
    lengths: Sequence[float]


def measure(
    result: SimulationResult, *, workload: Workload, objectives: Objectives, names: Iterable[str] | None = None
) -> Mapping[str, float]:
    """Return the measures of a run, in time linear in its rows.

    Args:
        result: The run; its own measures are not read.
        workload: The workload of the scenario.
        objectives: The objectives of the scenario.
        names: Names of measures, keys of `MEASURES`; None for all. Other groups of measures are not computed.

    Returns:
        Measures by name, with 9 significant digits, in the order of `MEASURES`. Latencies are missing if no load was
        accepted, `late_share` also without an objective for the latency, and those of nodes without node groups.

    Raises:
        ConfigError: If a name is unknown.

    Example:
        >>> from array import array
        >>> from datetime import UTC, datetime
        >>> from ocf.simulation.result import Columns
        >>> rows = Columns(
        ...     time=array("d", [0, 900]),
        ...     demand=array("q", [4, 2]),
        ...     ready=array("q", [3, 3]),
        ...     synced=array("q", [1, 1]),
        ... )
        >>> run = SimulationResult(name="web", start=datetime(2026, 1, 1, tzinfo=UTC), duration=3600, columns=rows)
        >>> found = measure(run, workload=Workload(capacity=10), objectives=Objectives(), names=["missing_pods"])
        >>> dict(found)
        {'missing_pods': 0.25}
    """
    wanted = set(MEASURES) if names is None else set(map(check_name, names))
    run = _Run(result=result, workload=workload, objectives=objectives, lengths=_lengths(result))
    found: dict[str, float] = {}
    for group in dict.fromkeys(each.group for each in MEASURES.values() if each.name in wanted):
        found.update(_GROUPS[group](run))
    return {name: _rounded(found[name]) for name in MEASURES if name in wanted and name in found}


def with_measures(result: SimulationResult, scenario: Scenario) -> SimulationResult:
    """Return a run with all of its measures, and those of its neighbors.

    Args:
        result: The run.
        scenario: The scenario that was run. Latencies that mean nothing in it are left out.
    """
    found = measure(
        result, workload=scenario.workload, objectives=scenario.objectives, names=names_with_meaning(scenario)
    )
    # Without measures of its own: it is a scenario of one workload.
    others = zip(result.neighbors, scenario.services()[1:], strict=True) if result.neighbors else ()
    return replace(result, measures=found, neighbors=tuple(with_measures(*each) for each in others))


def names_with_meaning(scenario: Scenario) -> tuple[str, ...]:
    """Return the names of the measures that mean something: in some scenarios, latencies do not."""
    is_left_out = without_latencies(scenario) is not None
    return tuple(name for name, each in MEASURES.items() if not (is_left_out and each.group is Group.LATENCY))


def without_latencies(scenario: Scenario) -> str | None:
    """Return why the latencies of a scenario mean nothing; None if they do mean something.

    Load units of a recorded resource are cores or bytes, not requests. With connections, each pod has a queue of its
    own, and the queueing model has one in front of all pods.
    """
    if scenario.workload.connections is not None:
        return "it has no latencies with `workload.connections`"
    # The load of such a recording is what pods use: at its capacity, a pod uses just as much of the resource.
    workload = scenario.workload
    used = workload.requests | {name: each.busy for name, each in workload.usage.items()}
    is_recorded = any(isinstance(load, RecordingLoad) for load in scenario.load)
    return (
        "its load is one of cores or bytes"
        if is_recorded and round(1000 * workload.capacity) in used.values()
        else None
    )


def run_latencies(result: SimulationResult, workload: Workload) -> Latencies | None:
    """Return the distribution of the latency of a run; None if no load was accepted."""
    return _latencies(result, workload, _lengths(result))


def check_name(name: str) -> str:
    """Return the name of a measure.

    Raises:
        ConfigError: If there is no such measure; the message has the nearest name.
    """
    if name not in MEASURES:
        near = nearest(name, MEASURES)
        hint = f"did you mean {near}?" if near else f"the measures are {', '.join(MEASURES)}"
        raise ConfigError(f"there is no measure {name!r}; {hint}")
    return name


def _lengths(result: SimulationResult) -> list[float]:
    return [after - before for before, after in pairwise((*result.columns.time, result.duration))]


def _rounded(value: float) -> float:
    """Round to significant digits: the last bits of an exponential function differ between machines."""
    return value if isinstance(value, int) else float(f"{value:.{_DIGITS}g}")


def _elasticity(run: _Run) -> Mapping[str, float]:
    return elasticity(run.result.columns, run.lengths, run.result.duration)


def _overload(run: _Run) -> Mapping[str, float]:
    share = run.objectives.target_utilization
    return overload(run.result.columns, run.lengths, run.result.duration, target_utilization=share)


def _latency(run: _Run) -> Mapping[str, float]:
    found = _latencies(run.result, run.workload, run.lengths)
    if found is None:
        return {}
    values = {name: found.percentile(percent) for name, percent in _PERCENTILES.items()}
    if run.objectives.latency is not None:
        values["late_share"] = found.exceeding(run.objectives.latency.at_most.total_seconds())
    return values


def _latencies(result: SimulationResult, workload: Workload, lengths: Sequence[float]) -> Latencies | None:
    service_time = workload.service_time.total_seconds() if workload.service_time else 1 / workload.capacity
    return latencies(
        result.columns, lengths, result.duration, pod_capacity=workload.capacity, service_time=service_time
    )


def _resources(run: _Run) -> Mapping[str, float]:
    return resources(run.result.columns, run.lengths, run.result.duration, prices=run.objectives.prices)


def _nodes(run: _Run) -> Mapping[str, float]:
    return nodes(run.result.columns, run.lengths, run.result.duration, actions=run.result.node_actions)


def _scaling(run: _Run) -> Mapping[str, float]:
    return scaling(run.result.actions)


_GROUPS: Final[Mapping[Group, Callable[[_Run], Mapping[str, float]]]] = {
    Group.OVERLOAD: _overload,
    Group.LATENCY: _latency,
    Group.ELASTICITY: _elasticity,
    Group.RESOURCES: _resources,
    Group.NODES: _nodes,
    Group.SCALING: _scaling,
}
