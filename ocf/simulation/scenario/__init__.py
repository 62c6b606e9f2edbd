"""The file kind `Scenario`: autoscaler, workload, load, metrics pipeline and objectives of a simulation."""

from ocf.simulation.scenario.initial import initial_scenario
from ocf.simulation.scenario.reading import parse_scenario, read_scenario
from ocf.simulation.scenario.scenario import Scenario
from ocf.simulation.scenario.total_load import load_series
from ocf.simulation.scenario.workload import Queue, Usage

__all__ = [
    "Queue",
    "Scenario",
    "Usage",
    "initial_scenario",
    "load_series",
    "parse_scenario",
    "read_scenario",
]
