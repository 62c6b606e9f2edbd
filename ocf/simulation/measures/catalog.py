"""The measures: names, titles, units and definitions."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = ["MEASURES", "Group", "Measure", "MeasureUnit"]


class MeasureUnit(StrEnum):
    """Units of measures."""

    SHARE = "share"
    """A share of a whole; 1 is all of it. Shown in percent."""
    SECONDS = "seconds"
    COUNT = "count"
    PODS = "pods"
    POD_HOURS = "pod-hours"
    POD_SECONDS = "pod-seconds"
    NODES = "nodes"
    NODE_HOURS = "node-hours"
    PER_HOUR = "per hour"
    LOAD_UNITS = "load units"
    PRICE = "price"
    """An amount in the currency of the scenario."""
    PLAIN = "plain"
    """A number without a unit."""


class Group(StrEnum):
    """Groups of measures that are computed together; headings of reports."""

    OVERLOAD = "overload"
    LATENCY = "latency"
    ELASTICITY = "elasticity"
    RESOURCES = "resources"
    NODES = "nodes"
    SCALING = "scaling"


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of a simulated run.

    Args:
        name: Name in results, in JSON and in expressions.
        title: Title in reports.
        unit: Unit of the value.
        definition: Definition in one sentence.
        lower_is_better: Whether a lower value is better; None where that depends on the reader.
    """

    group: Group
    name: str
    title: str
    unit: MeasureUnit
    definition: str
    lower_is_better: bool | None = True


_OVERLOAD: Final = (
    Measure(
        Group.OVERLOAD,
        "overload_time",
        "overload time",
        MeasureUnit.SHARE,
        "Share of the time in which load units wait, or the load exceeds the target utilization of the ready pods.",
    ),
    Measure(
        Group.OVERLOAD,
        "overloads",
        "overloads",
        MeasureUnit.COUNT,
        "Number of uninterrupted overloads.",
    ),
    Measure(
        Group.OVERLOAD,
        "time_to_recover_mean",
        "time to recover, mean",
        MeasureUnit.SECONDS,
        "Mean length of the overloads; one that lasts until the end counts as long as it was seen.",
    ),
    Measure(
        Group.OVERLOAD,
        "time_to_recover_max",
        "time to recover, longest",
        MeasureUnit.SECONDS,
        "Length of the longest overload.",
    ),
    Measure(
        Group.OVERLOAD,
        "dropped",
        "dropped load",
        MeasureUnit.LOAD_UNITS,
        "Load units that were dropped because the queue was full.",
    ),
    Measure(
        Group.OVERLOAD,
        "dropped_share",
        "dropped share",
        MeasureUnit.SHARE,
        "Dropped load units per offered load unit.",
    ),
    Measure(
        Group.OVERLOAD,
        "backlog_max",
        "longest queue",
        MeasureUnit.LOAD_UNITS,
        "Most load units that waited at the same time.",
    ),
)
_LATENCY: Final = (
    Measure(
        Group.LATENCY,
        "late_share",
        "late share",
        MeasureUnit.SHARE,
        "Share of the accepted load units whose latency exceeds the objective, by the queueing model.",
    ),
    Measure(
        Group.LATENCY,
        "latency_p50",
        "latency, median",
        MeasureUnit.SECONDS,
        "Median of the latency of the accepted load units, by the queueing model.",
    ),
    Measure(
        Group.LATENCY,
        "latency_p95",
        "latency, 95th percentile",
        MeasureUnit.SECONDS,
        "95th percentile of the latency of the accepted load units, by the queueing model.",
    ),
    Measure(
        Group.LATENCY,
        "latency_p99",
        "latency, 99th percentile",
        MeasureUnit.SECONDS,
        "99th percentile of the latency of the accepted load units, by the queueing model.",
    ),
)
_ELASTICITY: Final = (
    Measure(
        Group.ELASTICITY,
        "under_provisioning",
        "under-provisioning accuracy",
        MeasureUnit.SHARE,
        "Mean over time of the missing pods, as a share of the demand.",
    ),
    Measure(
        Group.ELASTICITY,
        "over_provisioning",
        "over-provisioning accuracy",
        MeasureUnit.SHARE,
        "Mean over time of the excess pods, as a share of the demand; a demand of 0 counts as 1.",
    ),
    Measure(
        Group.ELASTICITY,
        "missing_pods",
        "missing pods",
        MeasureUnit.PODS,
        "Mean over time of the missing pods.",
    ),
    Measure(
        Group.ELASTICITY,
        "excess_pods",
        "excess pods",
        MeasureUnit.PODS,
        "Mean over time of the excess pods.",
    ),
    Measure(
        Group.ELASTICITY,
        "under_provisioned_time",
        "under-provisioned time",
        MeasureUnit.SHARE,
        "Share of the time in which the demand exceeds the ready pods.",
    ),
    Measure(
        Group.ELASTICITY,
        "over_provisioned_time",
        "over-provisioned time",
        MeasureUnit.SHARE,
        "Share of the time in which the ready pods exceed the demand.",
    ),
    Measure(
        Group.ELASTICITY,
        "instability",
        "instability",
        MeasureUnit.SHARE,
        "Share of the time between syncs over which demand and ready pods do not move in the same direction.",
    ),
    Measure(
        Group.ELASTICITY,
        "jitter",
        "jitter",
        MeasureUnit.PER_HOUR,
        "Changes of the ready pods minus changes of the demand, from sync to sync, per hour.",
        lower_is_better=None,
    ),
    Measure(
        Group.ELASTICITY,
        "deviation",
        "deviation",
        MeasureUnit.PLAIN,
        "Euclidean distance of accuracies, timeshares and instability from the ideal, 0 in all of them.",
    ),
)
_RESOURCES: Final = (
    Measure(
        Group.RESOURCES,
        "pod_hours",
        "pod-hours",
        MeasureUnit.POD_HOURS,
        "Hours of all pods from creation until they are gone.",
    ),
    Measure(
        Group.RESOURCES,
        "cost",
        "cost",
        MeasureUnit.PRICE,
        "Pod-hours times the price of a pod-hour, plus the cost of the nodes.",
    ),
    Measure(
        Group.RESOURCES,
        "ready_mean",
        "ready pods, mean",
        MeasureUnit.PODS,
        "Mean over time of the ready pods.",
        lower_is_better=None,
    ),
    Measure(
        Group.RESOURCES,
        "replicas_max",
        "replicas, most",
        MeasureUnit.PODS,
        "Highest number of replicas.",
        lower_is_better=None,
    ),
)
_NODES: Final = (
    Measure(
        Group.NODES,
        "node_hours",
        "node-hours",
        MeasureUnit.NODE_HOURS,
        "Hours of all nodes from the order until they are gone.",
    ),
    Measure(
        Group.NODES,
        "node_cost",
        "cost of nodes",
        MeasureUnit.PRICE,
        "Node-hours times the price of the instance type.",
    ),
    Measure(
        Group.NODES,
        "nodes_max",
        "nodes, most",
        MeasureUnit.NODES,
        "Highest number of nodes.",
        lower_is_better=None,
    ),
    Measure(
        Group.NODES,
        "pending_pod_seconds",
        "pod-seconds of waiting",
        MeasureUnit.POD_SECONDS,
        "Seconds that pods wait for a node, added up over all pods.",
    ),
    Measure(
        Group.NODES,
        "pending_time",
        "time with waiting pods",
        MeasureUnit.SHARE,
        "Share of the time in which a pod waits for a node.",
    ),
    Measure(
        Group.NODES,
        "node_cpu_utilization",
        "requested cpu of nodes",
        MeasureUnit.SHARE,
        "Mean over time of the cpu that pods on nodes request, as a share of what the nodes that are up have.",
        lower_is_better=False,
    ),
    Measure(
        Group.NODES,
        "node_memory_utilization",
        "requested memory of nodes",
        MeasureUnit.SHARE,
        "Mean over time of the memory that pods on nodes request, as a share of what the nodes that are up have.",
        lower_is_better=False,
    ),
    Measure(
        Group.NODES,
        "nodes_added",
        "nodes added",
        MeasureUnit.COUNT,
        "Number of nodes that are ordered.",
        lower_is_better=None,
    ),
    Measure(
        Group.NODES,
        "nodes_removed",
        "nodes removed",
        MeasureUnit.COUNT,
        "Number of nodes that the controller of node groups begins to drain.",
        lower_is_better=None,
    ),
    Measure(
        Group.NODES,
        "node_interruptions",
        "interruptions",
        MeasureUnit.COUNT,
        "Number of nodes that the provider takes away.",
        lower_is_better=None,
    ),
)
_SCALING: Final = (
    Measure(
        Group.SCALING,
        "scaling_actions",
        "scaling actions",
        MeasureUnit.COUNT,
        "Number of changes of the replicas by the HPA controller or the activator.",
    ),
    Measure(
        Group.SCALING,
        "scale_ups",
        "scale-ups",
        MeasureUnit.COUNT,
        "Number of scaling actions that add replicas.",
        lower_is_better=None,
    ),
    Measure(
        Group.SCALING,
        "scale_downs",
        "scale-downs",
        MeasureUnit.COUNT,
        "Number of scaling actions that remove replicas.",
        lower_is_better=None,
    ),
    Measure(
        Group.SCALING,
        "flaps",
        "flaps",
        MeasureUnit.COUNT,
        "Number of scaling actions within 10 minutes of the previous one, in the other direction.",
    ),
)

MEASURES: Final[Mapping[str, Measure]] = {
    each.name: each for each in (*_OVERLOAD, *_LATENCY, *_ELASTICITY, *_RESOURCES, *_NODES, *_SCALING)
}
"""All measures by name, in the order of reports."""
