"""Placing of pods on the room that is there, and on nodes in flight."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ocf.nodegroups.packing.demands import Demand
from ocf.nodegroups.packing.fill import fill
from ocf.nodegroups.packing.templates import NodeTemplate, place_daemons
from ocf.nodegroups.predicates import ClusterState
from ocf.nodegroups.snapshot import NO_RESOURCES, ClusterSnapshot, Overlay, Resources
from ocf.nodegroups.snapshot.pods import SnapshotPod

__all__ = ["assign", "fill_in_turn", "fill_room", "join_in_flight", "prepare", "reference_size"]


def prepare(snapshot: ClusterSnapshot, *, with_in_flight: bool = False) -> ClusterState:
    """Return a state for placing pods; nodes that are not ready take none.

    Args:
        with_in_flight: Whether nodes in flight are part of the state. Otherwise `join_in_flight` adds them later.
    """
    nodes = snapshot.nodes
    if not with_in_flight:
        # See `join_in_flight` for why they come later.
        nodes = Overlay({name: node for name, node in nodes.items() if not node.in_flight})
    state = ClusterState(replace(snapshot, nodes=nodes))
    for index, node in enumerate(state.nodes):
        if not (node.ready or node.in_flight):
            state.close(index)
    return state


def join_in_flight(state: ClusterState, snapshot: ClusterSnapshot) -> None:
    """Add the nodes in flight to a state, with the DaemonSet pods that will run on them.

    They come after the pods are placed that fit without them, as those pods do not wait for them: otherwise a new
    topology without pods would take them out of reach, and more nodes would be asked for while nodes boot.
    """
    for node in sorted(snapshot.nodes.values(), key=lambda node: node.name):
        if not node.in_flight:
            continue
        index = state.add_node(node)
        for pod in snapshot.pods_on(node.name):
            state.place(pod.shape, index)
        place_daemons(state, index)
        if node.name in snapshot.unknown_nodes:
            state.close(index)


def fill_in_turn(
    state: ClusterState, snapshot: ClusterSnapshot, demands: Iterable[Demand]
) -> tuple[dict[str, str], list[Demand]]:
    """Place pods on the room that is there, and the rest on nodes in flight, which join the state.

    Args:
        state: The state, without nodes in flight.
        demands: The pods.

    Returns:
        The name of the node by the key of each pod that has a place, and the pods without one.
    """
    placements, left = fill_room(state, demands)
    join_in_flight(state, snapshot)
    more, left = fill_room(state, left)
    return {**placements, **more}, left


def fill_room(
    state: ClusterState, demands: Iterable[Demand], *, first: int = 0, stop: int | None = None, hinted: bool = False
) -> tuple[dict[str, str], list[Demand]]:
    """Place pods on the nodes of a state.

    Args:
        demands: The pods.
        first: The index of the first node to use.
        stop: The index behind the last node to use; None for all nodes.
        hinted: Whether to start with the node that took the last equal pod: see `fill`.

    Returns:
        The name of the node by the key of each pod that has a place, and the pods without one.
    """
    placements: dict[str, str] = {}
    left = []
    for demand in demands:
        view = state.view(demand.shape)
        placed = fill(state, view, len(demand.pods), first=first, stop=stop, hinted=hinted)
        rest = assign(state, demand.pods, placed, placements)
        if rest:
            left.append(Demand(demand.shape, rest))
    return placements, left


def reference_size(state: ClusterState, templates: Sequence[NodeTemplate]) -> Resources:
    """Return the resources that the size of pods is measured by: the largest node that could be added, or is there.

    Args:
        templates: The nodes that could be added.
    """
    # The order of packing should not change when the nodes change on which it happens.
    nodes = [template.node for template in templates] or state.nodes
    if not nodes:
        return NO_RESOURCES
    return Resources(max(node.allocatable.cpu for node in nodes), max(node.allocatable.memory for node in nodes))


def assign(
    state: ClusterState, pods: tuple[SnapshotPod, ...], placed: Iterable[tuple[int, int]], placements: dict[str, str]
) -> tuple[SnapshotPod, ...]:
    """Give equal pods to the places that were found, and return the rest.

    Args:
        placed: Pairs of the index of a node and the number of pods placed on it.
        placements: Takes the name of the node by the key of each pod.
    """
    position = 0
    for index, number in placed:
        name = state.nodes[index].name
        for pod in pods[position : position + number]:
            placements[pod.key] = name
        position += number
    return pods[position:]
