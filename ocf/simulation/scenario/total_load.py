"""The load of a scenario: the sum of its loads."""

import random
from collections.abc import Sequence
from pathlib import Path

from ocf.errors import ConfigError
from ocf.simulation.load.files import FileLoad
from ocf.simulation.load.generators import GeneratedLoad
from ocf.simulation.load.noise import NoiseLoad
from ocf.simulation.load.series import LoadSeries, total
from ocf.simulation.load.served import ServedLoad
from ocf.simulation.load.trace import read_trace
from ocf.simulation.scenario.scenario import Scenario

__all__ = ["load_series"]


def load_series(scenario: Scenario, directory: str | Path = ".") -> LoadSeries:
    """Return the load of a scenario, from its start to its end.

    Loads are added up. Before it begins and after it ends, a load is 0. What other workloads serve is not part of it:
    that is known when they run.

    Args:
        scenario: The scenario.
        directory: The folder that the paths of its loads are relative to.

    Returns:
        The load. Its `end` is the end of the simulation: `duration`, or the end of the load that ends last.

    Raises:
        InputError: If the file of a load cannot be read, or has an invalid value; it names the line.
        ConfigError: If the simulation has no end, or a load has too many steps.

    Example:
        >>> from ocf.simulation import Scenario
        >>> scenario = Scenario.model_validate(
        ...     {"hpa": "hpa.yaml", "workload": {"capacity": 10}, "duration": "10m",
        ...      "load": [{"type": "Steady", "rate": 20}, {"type": "Spike", "peak": 50, "at": "2m", "hold": "1m"}]})
        >>> load = load_series(scenario)
        >>> load.at(0), load.at(150), load.end
        (20.0, 70.0, 600.0)
    """
    parts: dict[int, tuple[float, LoadSeries]] = {}
    for index, load in enumerate(scenario.load):
        if isinstance(load, FileLoad):
            parts[index] = load.at.total_seconds(), read_trace(load, Path(directory))
    end = _end(scenario, [at + series.end for at, series in parts.values() if series.end is not None])
    for index, load in enumerate(scenario.load):
        if isinstance(load, GeneratedLoad):
            at = load.at.total_seconds()
            length = end - at if load.duration is None else min(end - at, load.duration.total_seconds())
            if length > 0:
                parts[index] = at, load.series(length, scenario.start + load.at)
    if not parts:
        parts[0] = 0.0, LoadSeries.of([(0.0, 0.0)])
    # In the order of the file: the sum of floats depends on it.
    added = total([parts[index] for index in sorted(parts)], end)
    for index, load in enumerate(scenario.load):
        if isinstance(load, NoiseLoad):
            added = load.apply(added, end, random.Random(f"{scenario.seed}/load/{index}"))  # noqa: S311 (not a secret)
    return added


def _end(scenario: Scenario, ends: Sequence[float]) -> float:
    if scenario.duration is not None:
        return scenario.duration.total_seconds()
    generated = (load for load in scenario.load if not isinstance(load, FileLoad | ServedLoad))
    known = [*ends, *((load.at + load.duration).total_seconds() for load in generated if load.duration is not None)]
    if not known:
        raise ConfigError("duration: required value: no load of the scenario ends, write for example `duration: 1h`")
    return round(max(known), 6)
