"""Templates of nodes that could be added, and the DaemonSets that run on them."""

from dataclasses import dataclass, replace
from typing import Final

from ocf.nodegroups.predicates import ClusterState
from ocf.nodegroups.predicates.static import StaticFilter
from ocf.nodegroups.snapshot import Node

__all__ = ["NodeTemplate", "place_daemons"]

_HOSTNAME: Final = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTemplate:
    """A node that could be added.

    Args:
        group: The name of the group that it belongs to.
        instance_type: The name of its instance type.
        zone: The zone or datacenter; empty if it does not matter.
        price: Price per hour.
        node: What it will look like, with labels, taints and allocatable resources.
    """

    group: str
    instance_type: str = ""
    zone: str = ""
    price: float = 0.0
    node: Node

    @property
    def key(self) -> tuple[str, str, str]:
        """Group, instance type and zone."""
        return self.group, self.instance_type, self.zone

    def make(self, name: str) -> Node:
        """Return a node of this template.

        Args:
            name: The name of the node, which is its hostname, too.
        """
        # Spread and anti-affinity over hosts need a hostname of each node.
        return replace(self.node, name=name, labels={**self.node.labels, _HOSTNAME: name}, in_flight=True)


def place_daemons(state: ClusterState, index: int) -> None:
    """Place one pod of each DaemonSet that runs on a node, and each of its static pods, unless it has one already.

    A pod is placed even if its resources are short: it comes before the pods that the node is added for, and takes
    their room.

    Args:
        index: The index of the node.
    """
    node = state.nodes[index]
    present = state.placed[index]
    # As they are on other nodes of its type, where admission or an autoscaler may have changed them.
    for shape in node.companions:
        if shape not in present and not any(_is_pod_of(other.labels, shape.labels) for other in present):
            state.place(shape, index)
    for daemon_set in state.snapshot.daemon_sets:
        shape = daemon_set.shape
        # By labels as well, because admission may have changed the pod (a webhook, a LimitRange), so that shapes
        # differ.
        if shape in present or any(_is_pod_of(other.labels, shape.labels) for other in present):
            continue
        if StaticFilter(shape, state.snapshot).check_node(node) is None:
            state.place(shape, index)


def _is_pod_of(labels: tuple[tuple[str, str], ...], template: tuple[tuple[str, str], ...]) -> bool:
    """Return whether a pod has the labels of a template: the controller adds its own to each pod."""
    return bool(template) and set(template) <= set(labels)
