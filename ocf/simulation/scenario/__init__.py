"""The file kind `Scenario`: autoscaler, workload, load, metrics pipeline and objectives of a simulation."""

from ocf.simulation.scenario.controller import HpaControllerSettings, MetricsPipeline, Outage
from ocf.simulation.scenario.initial import initial_scenario, target_requests
from ocf.simulation.scenario.node_groups import (
    InstanceTypeSettings,
    NodeGroupSettings,
    NodeSettings,
    ScaleDownSettings,
    SpotSettings,
)
from ocf.simulation.scenario.objectives import LatencyObjective, Objectives, Prices
from ocf.simulation.scenario.reading import parse_scenario, read_scenario
from ocf.simulation.scenario.recorded import recorded_scenario
from ocf.simulation.scenario.scenario import HpaEdit, Scenario
from ocf.simulation.scenario.total_load import load_series
from ocf.simulation.scenario.workload import Delay, PodFailure, Queue, Signal, SignalSource, Usage, Workload

__all__ = [
    "Delay",
    "HpaControllerSettings",
    "HpaEdit",
    "InstanceTypeSettings",
    "LatencyObjective",
    "MetricsPipeline",
    "NodeGroupSettings",
    "NodeSettings",
    "Objectives",
    "Outage",
    "PodFailure",
    "Prices",
    "Queue",
    "ScaleDownSettings",
    "Scenario",
    "Signal",
    "SignalSource",
    "SpotSettings",
    "Usage",
    "Workload",
    "initial_scenario",
    "load_series",
    "parse_scenario",
    "read_scenario",
    "recorded_scenario",
    "target_requests",
]
