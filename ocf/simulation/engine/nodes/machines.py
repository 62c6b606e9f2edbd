"""Simulated nodes, and the kinds that they are made of."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Final

from ocf.nodegroups import Resources
from ocf.nodegroups.packing import NodeTemplate
from ocf.nodegroups.snapshot import PodShape
from ocf.simulation.scenario.node_values import has_room

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


Score = Callable[[int, tuple[int, ...]], int | None]
"""The score of a node for one more pod of a workload, by the position of the workload and the number of pods of each
workload on the node; the highest score takes a pod. None: the node has no room for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKind:
    """The nodes of one type of a group, which are alike.

    Args:
        group: Position of the group.
        empty: The numbers of pods on an empty node: 0 for each workload.
        score: The score of its nodes.
    """

    group: int
    template: NodeTemplate
    empty: tuple[int, ...]
    score: Score


def kind_of(group: int, template: NodeTemplate, shapes: Sequence[PodShape], *, most_allocated: bool) -> NodeKind:
    """Return a kind of nodes.

    The score is that of the plugin NodeResourcesFit: the mean of cpu and memory, of the free share in whole percents
    after the pod is placed, or with `most_allocated` of the requested share.

    Args:
        shapes: The shapes of the pods of each workload.
    """
    size = template.node.allocatable
    needs = [(each.requests.cpu or _LEAST_CPU, each.requests.memory or _LEAST_MEMORY) for each in shapes]

    def share(used: int, capacity: int) -> int:
        used = min(used, capacity)
        return (used if most_allocated else capacity - used) * _FULL // capacity

    # Nodes of a kind have few different sets of pods, and each change of a node asks again.
    @cache
    def score(workload: int, counts: tuple[int, ...]) -> int | None:
        after = [number + (position == workload) for position, number in enumerate(counts)]
        if not has_room(shapes, after, size, more=workload):
            return None
        cpu, memory = (sum(number * need[part] for number, need in zip(after, needs, strict=True)) for part in (0, 1))
        return (share(cpu, size.cpu) + share(memory, size.memory)) // 2

    return NodeKind(group=group, template=template, empty=(0,) * len(shapes), score=score)


class SimulatedNode:
    """A node; times are microseconds since the start.

    Attributes:
        number: Its place in the order of all nodes by creation.
        counts: The number of pods of each workload that are on it.
        interrupted: Whether the provider takes it away.
        leaving: Whether its machine shuts down.
        seen_pods: Its pods as the controller sees them, by key; None after a change.
        version: Number of changes of its pods, so that outdated entries of the scheduler are recognised.
    """

    __slots__ = (
        "cordoned",
        "counts",
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
        self.counts = kind.empty
        self.seen_pods: Mapping[str, SnapshotPod] | None = {}
        self.version = 0

    @property
    def resources(self) -> Resources:
        """Its allocatable resources."""
        return self.kind.template.node.allocatable
