"""Simulation of autoscalers: what they would do under a given load, on a virtual clock.

`Scenario` is the input file. `simulate` runs the exact algorithms of `ocf.autoscaling` and `ocf.nodegroups` in closed
loop with a workload, and returns a `SimulationResult`. Everything here is pure: no cluster, no threads, no network, and
the same scenario gives the same result on every run and machine.
"""

from ocf.simulation.engine import Shared, simulate
from ocf.simulation.input_errors import InputError
from ocf.simulation.load import LoadSeries
from ocf.simulation.scenario import Scenario, initial_scenario, load_series, parse_scenario, read_scenario

__all__ = [
    "InputError",
    "LoadSeries",
    "Scenario",
    "Shared",
    "initial_scenario",
    "load_series",
    "parse_scenario",
    "read_scenario",
    "simulate",
]
