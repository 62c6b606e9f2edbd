"""Simulated nodes, and the kinds that they are made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from ocf.nodegroups import Resources
from ocf.nodegroups.packing import NodeTemplate
from ocf.nodegroups.snapshot import PodShape
from ocf.simulation.scenario.node_values import pods_per_node

if TYPE_CHECKING:
    from ocf.nodegroups import Node
    from ocf.nodegroups.snapshot import SnapshotPod
    from ocf.simulation.engine.simulated_pods import SimulatedPod

__all__ = ["NodeKind", "NodeState", "SimulatedNode", "kind_of"]

_FULL: Final = 100
_LEAST_CPU: Final = 100
_LEAST_MEMORY: Final = 200 * 2**20
"""What the scheduler counts for a pod without requests: `DefaultMilliCPURequest` and `DefaultMemoryRequest` of
`pkg/scheduler/util/pod_resources.go`."""


class NodeState(IntEnum):
    """State of a simulated node."""

    BOOTING = 0
    """Ordered; it takes no pods yet."""
    READY = 1
    """It takes pods, unless it is cordoned for a drain that has just begun."""
    DRAINING = 2
    """It takes no pods any more: it is drained, interrupted, or shuts down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKind:
    """The nodes of one type of a group, which are alike.

    Args:
        group: Position of the group.
        room: Number of pods of the workload that fit on an empty node.
        scores: Score of a node by the number of pods on it, for one pod more; the highest score takes a pod.
    """

    group: int
    template: NodeTemplate
    room: int
    scores: tuple[int, ...]


def kind_of(group: int, template: NodeTemplate, shape: PodShape, *, most_allocated: bool) -> NodeKind:
    """Return a kind of nodes.

    The score is that of the plugin NodeResourcesFit: the mean of cpu and memory, of the free share in whole percents
    after the pod is placed, or with `most_allocated` of the requested share.
    """
    size, requests = template.node.allocatable, shape.requests
    room = pods_per_node(shape, size)
    cpu, memory = requests.cpu or _LEAST_CPU, requests.memory or _LEAST_MEMORY

    def share(number: int, request: int, capacity: int) -> int:
        used = min(number * request, capacity)
        return (used if most_allocated else capacity - used) * _FULL // capacity

    scores = tuple(
        (share(number, cpu, size.cpu) + share(number, memory, size.memory)) // 2 for number in range(1, room + 1)
    )
    return NodeKind(group=group, template=template, room=room, scores=scores)


class SimulatedNode:
    """A node; times are microseconds since the start.

    Attributes:
        number: Its place in the order of all nodes by creation.
        interrupted: Whether the provider takes it away.
        leaving: Whether its machine shuts down.
        seen_pods: Its pods as the controller sees them, by key; None after a change.
        version: Number of changes of its pods, so that outdated entries of the scheduler are recognised.
    """

    __slots__ = (
        "cordoned",
        "interrupted",
        "kind",
        "leaving",
        "name",
        "number",
        "pods",
        "seen",
        "seen_pods",
        "state",
        "version",
    )

    def __init__(self, name: str, number: int, kind: NodeKind, seen: "Node") -> None:
        self.name = name
        self.number = number
        self.kind = kind
        self.seen = seen
        self.state = NodeState.BOOTING
        self.cordoned = self.interrupted = self.leaving = False
        self.pods: dict[str, SimulatedPod] = {}
        self.seen_pods: Mapping[str, SnapshotPod] | None = {}
        self.version = 0

    @property
    def resources(self) -> Resources:
        """Its allocatable resources."""
        return self.kind.template.node.allocatable
