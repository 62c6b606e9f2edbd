"""Drain simulation: whether the pods of a node have places on the others, with memory of the places that are taken."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from ocf.nodegroups.packing import Demand, fill_room, group_pods, place_daemons, prepare, reference_size
from ocf.nodegroups.predicates import ClusterState, count_reasons
from ocf.nodegroups.predicates.reasons import TOO_MANY_PODS
from ocf.nodegroups.rules import Blocked
from ocf.nodegroups.snapshot import NO_RESOURCES, ClusterSnapshot, Node, Overlay, Taint
from ocf.nodegroups.snapshot.pods import SnapshotPod

__all__ = ["DrainSimulation"]

_Fill = Callable[[Sequence[Demand]], tuple[dict[str, str], list[Demand]]]
_CORDON: Final = Taint("node.kubernetes.io/unschedulable")


class DrainSimulation:
    """A simulation in which nodes are drained one after the other.

    The pods of a node keep the places that they found, so that two nodes never count on the same room. A drained node
    is cordoned, as it is while the scheduler places its pods: it still counts for topology spread.

    Args:
        pending: The pods that wait for a node; they get the room that is there before any node is drained.
        last: The names of nodes that take pods only if no other node does, the largest of them first.
    """

    def __init__(
        self, snapshot: ClusterSnapshot, pending: Iterable[SnapshotPod] = (), *, last: Collection[str] = ()
    ) -> None:
        nodes = {name: node for name, node in snapshot.nodes.items() if name not in last}
        self.state: ClusterState = prepare(replace(snapshot, nodes=Overlay(nodes)), with_in_flight=True)
        self._last = len(self.state.nodes)
        # At the end of the order of nodes, which is the order of first fit.
        for node in sorted((snapshot.nodes[name] for name in last), key=_by_size):
            self._append(node, snapshot)
        # Nodes that are on their way take no pods that are evicted now.
        for index, node in enumerate(self.state.nodes):
            if node.in_flight:
                self.state.close(index)
        self._guests: dict[str, dict[str, SnapshotPod]] = {}
        self._history: list[tuple[int, dict[str, dict[str, SnapshotPod]]]] = []
        waiting = {pod.key: pod for pod in pending}
        if waiting:
            placements, _ = fill_room(self.state, group_pods(waiting.values(), reference_size(self.state, ())))
            self._host(placements, waiting)

    def append(self, nodes: Iterable[Node]) -> None:
        """Add nodes that are ready, with the pods of their DaemonSets; they take pods only if no other node does.

        Args:
            nodes: The nodes; none of them is in the snapshot.
        """
        for node in sorted(nodes, key=_by_size):
            place_daemons(self.state, self.state.add_node(replace(node, in_flight=False)))

    def drain(self, node: Node, pods: Iterable[SnapshotPod]) -> tuple[Mapping[str, str], Blocked | None]:
        """Move the pods of a node to others; if one has no place, everything is as before.

        Pods of other nodes that found a place on this one move again.

        Args:
            pods: The pods that have to move.

        Returns:
            The name of the new node by the key of each pod, and why it is not possible.
        """
        # Hinted, because thousands of drains are tried and each places few pods; see `fill`.
        return self._drain([(node, pods)], partial(fill_room, self.state, hinted=True))

    def drain_together(
        self, drained: Sequence[tuple[Node, Iterable[SnapshotPod]]]
    ) -> tuple[Mapping[str, str], Blocked | None]:
        """Move the pods of several nodes at once; if one has no place, everything is as before.

        The nodes that come last are filled in several orders, until one of them has a place for all pods.

        Args:
            drained: The nodes with the pods that have to move.

        Returns:
            The name of the new node by the key of each pod, and why it is not possible.
        """
        first, size = self._last, len(self.state.nodes)
        largest_first = range(first, size)
        ways: list[_Fill] = [partial(fill_room, self.state)]
        if size > first:
            ways += [partial(self._fill_nodes, order) for order in (largest_first, largest_first[::-1])]
        result = self._drain(drained, ways[0])
        for way in ways[1:]:
            if result[1] is not None:
                result = self._drain(drained, way)
        return result

    def _fill_nodes(self, order: Sequence[int], demands: Sequence[Demand]) -> tuple[dict[str, str], list[Demand]]:
        """Place pods on the nodes before those that come last, then on each of these as many as it takes."""
        placements, left = fill_room(self.state, demands, stop=self._last)
        for index in order:
            more, left = fill_room(self.state, left, first=index, stop=index + 1)
            placements |= more
        return placements, left

    def _drain(
        self, drained: Sequence[tuple[Node, Iterable[SnapshotPod]]], place: _Fill
    ) -> tuple[Mapping[str, str], Blocked | None]:
        state = self.state
        mark = state.mark()
        where: dict[str, int] = {}
        moving: dict[str, SnapshotPod] = {}
        for node, pods in drained:
            index = state.index[node.name]
            state.close(index)
            known = state.nodes[index]
            # The taint as well, which the node lifecycle controller adds: a spread constraint with `nodeTaintsPolicy:
            # Honor` reads it.
            state.replace_node(index, replace(known, unschedulable=True, taints=(*known.taints, _CORDON)))
            for pod in (*pods, *self._guests.get(node.name, {}).values()):
                where[pod.key], moving[pod.key] = index, pod
        largest = max((node.allocatable for node, _ in drained), default=NO_RESOURCES)
        demands = group_pods(moving.values(), largest)
        for demand in demands:
            for index, count in Counter(where[pod.key] for pod in demand.pods).items():
                state.remove(demand.shape, index, count)
        placements, left = place(demands)
        if left:
            blocked = self._why(left[0])
            state.rollback(mark)
            return {}, blocked
        # The journal of the state knows nothing of guests, so `undo` needs both.
        self._history.append((mark, dict(self._guests)))
        for node, _ in drained:
            self._guests.pop(node.name, None)
        self._host(placements, moving)
        return placements, None

    def undo(self, mark: int) -> None:
        """Take back all drains since `mark` of the state.

        Args:
            mark: What `state.mark()` returned before them.
        """
        while self._history and self._history[-1][0] >= mark:
            self._guests = self._history.pop()[1]
        self.state.rollback(mark)

    def reserve(self, node: Node, pods: Iterable[SnapshotPod]) -> None:
        """Take a node into account that is being drained already: its pods need places, and it takes none.

        Args:
            pods: The pods that have to move; if not all of them have a place, they stay.
        """
        if self.drain(node, pods)[1] is not None:
            self.state.close(self.state.index[node.name])

    def places(self) -> dict[str, str]:
        """Return the name of the node by the key of each pod that has moved, after all drains so far."""
        return {key: name for name, guests in self._guests.items() for key in guests}

    def _append(self, node: Node, snapshot: ClusterSnapshot) -> None:
        index = self.state.add_node(node)
        for pod in snapshot.pods_on(node.name):
            self.state.place(pod.shape, index)
        if not node.ready or node.name in snapshot.unknown_nodes:
            self.state.close(index)

    def _host(self, placements: Mapping[str, str], pods: Mapping[str, SnapshotPod]) -> None:
        """Remember which pods a node took in the simulation: they move again if it is drained, too."""
        for key, name in placements.items():
            self._guests[name] = {**self._guests.get(name, {}), key: pods[key]}

    def _why(self, demand: Demand) -> Blocked:
        """Return why no node takes a pod: by its size, or by its rules."""
        counts = count_reasons(demand.shape, self.state)
        short = any(reason == TOO_MANY_PODS or reason.startswith("Insufficient ") for reason in counts)
        shown = ", ".join(f"{count} {reason}" for reason, count in counts.items())
        text = f"no other node takes it: {shown}" if counts else "there is no other node"
        # A single node that is only too full makes it a matter of capacity: one more node of its kind would help.
        return Blocked("capacity" if short or not counts else "affinity", text, demand.pods[0].key)


def _by_size(node: Node) -> tuple[int, int, tuple[str, str], str]:
    # By type and zone before the name: a plan is made before the names of the new nodes are known.
    return -node.allocatable.cpu, -node.allocatable.memory, node.kind, node.name
