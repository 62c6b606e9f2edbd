"""Node groups: bounds, instance types and policies."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final

from ocf.nodegroups.snapshot import ClusterSnapshot, Node, Taint

__all__ = [
    "DEFAULT_SCALE_DOWN_COOLDOWN",
    "Membership",
    "NodeGroup",
    "ScaleDownPolicy",
    "TypeChoice",
    "UtilizationSource",
    "assign_nodes",
]

DEFAULT_SCALE_DOWN_COOLDOWN: Final = timedelta(minutes=10)
"""The cooldown of a group that does not set one."""


class TypeChoice(StrEnum):
    """How the instance type of a new node is chosen."""

    PREFERRED = "preferred"
    """The preferred type if it is valid, otherwise the first one that is available."""
    CHEAPEST = "cheapest"
    """The mix of types with the lowest price that takes all pods."""


class UtilizationSource(StrEnum):
    """What the utilization of a node is computed from."""

    REQUESTS = "requests"
    """The requests of its pods."""
    USAGE = "usage"
    """The measured use; a node that was not measured is never underutilized."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDownPolicy:
    """When nodes of a group are removed.

    Args:
        enabled: Whether nodes are removed at all.
        cpu_threshold: Percent of CPU below which a node is underutilized.
        memory_threshold: Percent of memory below which a node is underutilized; both have to be low.
        duration: How long a node has to be underutilized without a break.
        cooldown: How long after any scaling of the group no node is removed; None for the default, 0 for none.
        source: What the utilization is computed from.
        most_empty: How many nodes without pods to move are removed at a time.
        most_with_pods: How many nodes with pods to move are removed at a time.
        consolidate: Whether a node is replaced by a cheaper one where its pods fit.
        saving_threshold: Percent of the price of nodes that cheaper ones have to save; 1 is the least.
        replace_after: How old a node has to be before a cheaper one replaces it.
    """

    enabled: bool = True
    cpu_threshold: float = 50.0
    memory_threshold: float = 50.0
    duration: timedelta = timedelta(minutes=10)
    cooldown: timedelta | None = None
    source: UtilizationSource = UtilizationSource.REQUESTS
    most_empty: int = 10
    most_with_pods: int = 1
    consolidate: bool = False
    saving_threshold: float = 15.0
    replace_after: timedelta = timedelta(hours=1)

    @property
    def effective_cooldown(self) -> timedelta:
        """The cooldown that applies."""
        return DEFAULT_SCALE_DOWN_COOLDOWN if self.cooldown is None else self.cooldown


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """A node group.

    Args:
        name: Its name.
        min_nodes: The fewest nodes.
        max_nodes: The most nodes; if it is below `min_nodes`, it wins.
        instance_types: The names of its instance types, in order of preference.
        preferred: The name of the preferred instance type; empty for none.
        zones: The zones or datacenters of its nodes, in order of preference; empty for any.
        labels: Labels of its nodes.
        taints: Taints of its nodes.
        member_labels: The labels by which nodes belong to it; never empty.
        choice: How the instance type of a new node is chosen.
        grows: Whether nodes are added for pods; those that are missing to the minimum are added in any case.
        batch_size: How many nodes are added in one reconcile at most; 0 for no limit.
        scale_up_cooldown: How long after adding nodes no more are added.
        scale_down: When nodes are removed.
        priority: A group with a higher priority gets pods first.
        startup_taints: Keys of taints that are removed from a node once it is set up, for example by the CNI.
        startup_resources: Extended resources that a node reports some time after it is ready.
        startup_limit: How long after its creation a node with such a taint, or without such a resource, counts as on
            its way.
    """

    name: str
    min_nodes: int = 0
    max_nodes: int = 1
    instance_types: tuple[str, ...] = ()
    preferred: str = ""
    zones: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    member_labels: Mapping[str, str]
    choice: TypeChoice = TypeChoice.PREFERRED
    grows: bool = True
    batch_size: int = 0
    scale_up_cooldown: timedelta = timedelta(0)
    scale_down: ScaleDownPolicy = field(default_factory=ScaleDownPolicy)
    priority: int = 0
    startup_taints: frozenset[str] = frozenset()
    startup_resources: tuple[str, ...] = ()
    startup_limit: timedelta = timedelta(minutes=15)

    def claims(self, node: Node) -> bool:
        """Return whether a node has the labels of this group."""
        # No labels would be a subset of those of every node.
        return bool(self.member_labels) and self.member_labels.items() <= node.labels.items()

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with the group; it is handled nevertheless, as the texts say."""
        if self.min_nodes > self.max_nodes:
            yield f"minNodes {self.min_nodes} is above maxNodes {self.max_nodes}: maxNodes is used for both"
        if self.min_nodes < 0 or self.max_nodes < 0:
            yield "minNodes and maxNodes must not be negative: 0 is used"
        if not self.instance_types:
            yield "the group has no instance types: no node can be added"
        if self.preferred and self.preferred not in self.instance_types:
            yield f"the preferred instance type {self.preferred} is not one of the group: it is ignored"
        if not self.member_labels:
            yield "the group has no labels for its nodes: no node belongs to it"


@dataclass(frozen=True, slots=True)
class Membership:
    """Which nodes belong to which group.

    Args:
        nodes: The names of the nodes of each group by its name, sorted.
        group_of: The name of the group of each node that belongs to exactly one.
        contested: The names of the groups that claim the same node, by its name; none of them changes it.
    """

    nodes: Mapping[str, tuple[str, ...]]
    group_of: Mapping[str, str]
    contested: Mapping[str, tuple[str, ...]]


def assign_nodes(groups: tuple[NodeGroup, ...], snapshot: ClusterSnapshot) -> Membership:
    """Return which nodes belong to which group.

    Example:
        >>> group = NodeGroup(name="workers", member_labels={"pool": "workers"})
        >>> node = Node(name="n1", labels={"pool": "workers"})
        >>> assign_nodes((group,), ClusterSnapshot.from_values(nodes=[node])).group_of
        {'n1': 'workers'}
    """
    group_of: dict[str, str] = {}
    contested: dict[str, tuple[str, ...]] = {}
    members: dict[str, list[str]] = {group.name: [] for group in groups}
    for node in sorted(snapshot.nodes.values(), key=lambda node: node.name):
        claiming = sorted(group.name for group in groups if group.claims(node))
        if len(claiming) == 1:
            group_of[node.name] = claiming[0]
            members[claiming[0]].append(node.name)
        elif claiming:
            contested[node.name] = tuple(claiming)
    return Membership({name: tuple(found) for name, found in members.items()}, group_of, contested)
