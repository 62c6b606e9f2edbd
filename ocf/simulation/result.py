"""The result of a simulation: a time series, the scaling actions and the changes of the conditions.

The time series is a step function: a row holds until the next one. A row begins at each sync, and at each instant in
between at which the load, the pods or the nodes change, or at which the queue becomes empty or full. A row has the
values after all that happens at its instant: `replicas` those that the sync wrote.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Final, NamedTuple

from ocf.simulation.arrays import FloatArray, IntArray

__all__ = [
    "ACTIVATED",
    "BOOT_FAILED",
    "DEACTIVATED",
    "FAILURE",
    "INTERRUPTED",
    "ROLLOUT",
    "Columns",
    "ConditionChange",
    "GroupColumns",
    "ScalingAction",
    "SimulationResult",
]

ACTIVATED: Final = "activated"
"""The rule of an action of the activator that scales up, because a trigger is active."""
DEACTIVATED: Final = "deactivated"
"""The rule of an action of the activator that scales down, because no trigger was active for the cooldown."""

BOOT_FAILED: Final = "boot_failed"
"""The rule of an action of a node group whose node was given up before it took pods, or was refused by the provider."""
INTERRUPTED: Final = "interrupted"
"""The rule of an action of a node group whose node the provider takes away."""
FAILURE: Final = "failure"
"""The rule of an action of the workload that replaces pods that fail."""
ROLLOUT: Final = "rollout"
"""The rule of an action of the workload that begins or ends a rollout."""


def _floats() -> FloatArray:
    return array("d")


def _integers() -> IntArray:
    return array("q")


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of the time series, all of the same length.

    Numbers that a sync computes hold from it on; they are NaN, or -1 for whole numbers, where there is none.

    Args:
        time: Seconds since the start.
        load: Offered load, in load units per second.
        capacity: Load that the ready pods can serve, in load units per second; pods that warm up count in part.
        served: Load that is served.
        queue: Load units that wait at the begin of the row.
        dropped: Load units per second that are dropped.
        demand: The smallest number of warm pods that serve the load within the target utilization.
        replicas: `spec.replicas` of the scale.
        starting: Pods that are not ready yet.
        ready: Pods that are ready.
        terminating: Pods that are being deleted.
        utilization: Current value over target value of the metric that decided: 1.0 is on target.
        wanted: Replicas that the metrics propose.
        stabilized: Replicas after stabilization.
        desired: Replicas after the limits, which the controller writes.
        synced: 1 if the row begins with a sync of the HPA controller, otherwise 0.
        pending: Pods that wait for a node; they count as starting, too. This column and the following ones are empty
            without node groups.
        nodes_booting: Nodes that are ordered and take no pods yet.
        nodes_ready: Nodes that are up, until they are cordoned.
        nodes_draining: Nodes that are cordoned, until they are gone: drained, interrupted, or shutting down.
        node_price: Price of all nodes for an hour.
        node_cpu: Cpu that the pods on nodes request, as a share of what the nodes that are up have; NaN without such.
        node_memory: The same for memory.
    """

    time: FloatArray = field(default_factory=_floats)
    load: FloatArray = field(default_factory=_floats)
    capacity: FloatArray = field(default_factory=_floats)
    served: FloatArray = field(default_factory=_floats)
    queue: FloatArray = field(default_factory=_floats)
    dropped: FloatArray = field(default_factory=_floats)
    demand: IntArray = field(default_factory=_integers)
    replicas: IntArray = field(default_factory=_integers)
    starting: IntArray = field(default_factory=_integers)
    ready: IntArray = field(default_factory=_integers)
    terminating: IntArray = field(default_factory=_integers)
    utilization: FloatArray = field(default_factory=_floats)
    wanted: IntArray = field(default_factory=_integers)
    stabilized: IntArray = field(default_factory=_integers)
    desired: IntArray = field(default_factory=_integers)
    synced: IntArray = field(default_factory=_integers)
    pending: IntArray = field(default_factory=_integers)
    nodes_booting: IntArray = field(default_factory=_integers)
    nodes_ready: IntArray = field(default_factory=_integers)
    nodes_draining: IntArray = field(default_factory=_integers)
    node_price: FloatArray = field(default_factory=_floats)
    node_cpu: FloatArray = field(default_factory=_floats)
    node_memory: FloatArray = field(default_factory=_floats)


@dataclass(frozen=True, slots=True)
class GroupColumns:
    """The columns of one node group, with the rows of `Columns`.

    Args:
        booting: Nodes that are ordered and take no pods yet.
        ready: Nodes that are up, until they are cordoned.
        draining: Nodes that are cordoned, until they are gone.
        price: Price of all nodes of the group for an hour.
    """

    booting: IntArray = field(default_factory=_integers)
    ready: IntArray = field(default_factory=_integers)
    draining: IntArray = field(default_factory=_integers)
    price: FloatArray = field(default_factory=_floats)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingAction:
    """A scaling action of the HPA or the activator, or an action of a node group or of the workload.

    Args:
        time: Seconds since the start.
        before: `spec.replicas` before; for a node group the number of nodes that stay, with those that boot.
        after: The same number after it.
        reason: Message of the event of the controller, such as `cpu resource utilization (percentage of request) above
            target`; for a node group what is done and why.
        rule: The rule of the trace that decided; for the activator `ACTIVATED` or `DEACTIVATED`; for a
            node group `scale_up`, `replacement`, the reason of a removal such as `underutilized`, `INTERRUPTED`,
            `BOOT_FAILED`, or `drain` where a drain timed out.
        explanation: The explanation of the trace, in the words of `ocf explain`: a line per step, and lines that begin
            with two spaces and belong to it.
        source: The name of the node group; empty for the HPA and the activator.
    """

    time: float
    before: int
    after: int
    reason: str
    rule: str
    explanation: Sequence[str] = ()
    source: str = ""

    @property
    def actor(self) -> str:
        """What acts: `HPA`, `activator`, `workload`, or for example `node group workers`."""
        if self.source:
            return f"node group {self.source}"
        if self.rule in (FAILURE, ROLLOUT):
            return "workload"
        return "activator" if self.rule in (ACTIVATED, DEACTIVATED) else "HPA"


class ConditionChange(NamedTuple):
    """A condition of the HPA whose status or reason changes.

    Args:
        time: Seconds since the start.
        type: `AbleToScale`, `ScalingActive` or `ScalingLimited`.
        status: `True`, `False` or `Unknown`.
    """

    time: float
    type: str
    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationResult:
    """The result of a simulation.

    Args:
        name: Name of the scenario.
        start: The instant at which it starts.
        is_dated: Whether that is a date that means something: the scenario sets it, or its load was recorded then.
        duration: Seconds that were simulated; the last row ends there.
        columns: The time series.
        actions: The scaling actions of the HPA and the activator in order.
        node_actions: The actions of the node groups in order.
        workload_actions: The begin and the end of rollouts, and failures, in order; the replicas stay.
        node_groups: The columns of each node group by its name.
        condition_changes: The changes of the conditions in order; the first sync sets each one.
        syncs: Number of syncs.
        bounds: `minReplicas` and `maxReplicas` at the start.
        measures: Measures by name, see `ocf.simulation.measures`.
        warnings: What the numbers do not show: a workload that stays without replicas, and which field changes that.
        neighbors: The results of the neighbors of the scenario, in their order. All have the same columns and actions
            of nodes: those of the nodes that they share.
    """

    name: str
    start: datetime
    duration: float
    columns: Columns
    actions: tuple[ScalingAction, ...] = ()
    node_actions: tuple[ScalingAction, ...] = ()
    workload_actions: tuple[ScalingAction, ...] = ()
    node_groups: Mapping[str, GroupColumns] = field(default_factory=dict)
    condition_changes: tuple[ConditionChange, ...] = ()
    syncs: int = 0
    bounds: tuple[int, int] = (1, 1)
    measures: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    neighbors: "tuple[SimulationResult, ...]" = ()
    is_dated: bool = False

    def instant(self, time: float) -> datetime:
        """Return the instant in UTC of a time in seconds since the start."""
        return self.start.astimezone(UTC) + timedelta(seconds=time)

    @property
    def all_actions(self) -> tuple[ScalingAction, ...]:
        """The actions of the HPA, the workload and the node groups in order; at the same instant, in this order."""
        found = (*self.actions, *self.workload_actions, *self.node_actions)
        return tuple(sorted(found, key=attrgetter("time")))
