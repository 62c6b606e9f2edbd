"""Utilization of nodes, and the order in which nodes are removed."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from ocf.nodegroups.model import ScaleDownPolicy, UtilizationSource
from ocf.nodegroups.snapshot import ClusterSnapshot, Node, total

__all__ = ["Utilization", "removal_order", "select_nodes_to_delete", "utilization_of"]

_PERCENT: Final = 100
_OLDEST: Final = datetime.min.replace(tzinfo=UTC)


class Utilization(NamedTuple):
    """The utilization of a node.

    Args:
        cpu: Percent of the allocatable CPU.
        memory: Percent of the allocatable memory.
    """

    cpu: float
    memory: float

    @property
    def highest(self) -> float:
        """The larger of both."""
        return max(self.cpu, self.memory)

    def is_low(self, policy: ScaleDownPolicy) -> bool:
        """Return whether a node with this utilization is underutilized: both have to be below their thresholds."""
        return self.cpu < policy.cpu_threshold and self.memory < policy.memory_threshold

    def __str__(self) -> str:
        return f"{self.cpu:.0f} % cpu, {self.memory:.0f} % memory"


def utilization_of(
    node: Node, snapshot: ClusterSnapshot, source: UtilizationSource = UtilizationSource.REQUESTS
) -> Utilization | None:
    """Return the utilization of a node; None if it is not known, because it has no allocatable resources or no metrics.

    Args:
        source: Whether requests or the measured use count.
    """
    size = node.allocatable
    if size.cpu <= 0 or size.memory <= 0:
        return None
    # With DaemonSet pods, as the cluster autoscaler counts by default (`--ignore-daemonsets-utilization` is off).
    used = total(pod.shape.requests for pod in snapshot.pods_on(node.name))
    if source is UtilizationSource.USAGE:
        measured = snapshot.usage.get(node.name)
        if measured is None:
            return None
        used = measured
    return Utilization(used.cpu * _PERCENT / size.cpu, used.memory * _PERCENT / size.memory)


def removal_order(node: Node, utilization: Utilization | None) -> tuple[bool, datetime, float, str]:
    """Return the key by which nodes are sorted for removal: not ready, oldest, least utilized, name.

    It is a strict total order: of two nodes one always comes first. A node without a creation time counts as the
    oldest, one whose utilization is not known as fully used.
    """
    return (
        node.ready,
        node.created or _OLDEST,
        float(_PERCENT) if utilization is None else utilization.highest,
        node.name,
    )


def select_nodes_to_delete(
    nodes: Iterable[Node], count: int, utilization: Mapping[str, Utilization] | None = None
) -> tuple[Node, ...]:
    """Return the nodes that are removed first.

    Args:
        nodes: The nodes.
        count: How many to return at most.
        utilization: The utilization of each node by its name.

    Example:
        >>> found = select_nodes_to_delete([Node(name="b"), Node(name="a"), Node(name="c", ready=False)], 2)
        >>> [node.name for node in found]
        ['c', 'a']
    """
    known = utilization or {}
    return tuple(sorted(nodes, key=lambda node: removal_order(node, known.get(node.name)))[: max(count, 0)])
