"""Drain simulation: whether the pods of a node have places on the others, with memory of the places that are taken."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from ocf.nodegroups.packing import Demand, fill_room, group_pods, prepare, reference_size
from ocf.nodegroups.predicates import ClusterState, count_reasons
from ocf.nodegroups.predicates.reasons import TOO_MANY_PODS
from ocf.nodegroups.rules import Blocked
from ocf.nodegroups.snapshot import Node, Snapshot, Taint
from ocf.nodegroups.snapshot.pods import Pod

__all__ = ["DrainSimulation"]

_CORDON: Final = Taint("node.kubernetes.io/unschedulable")


class DrainSimulation:
    """A simulation in which nodes are drained one after the other.

    The pods of a node keep the places that they found, so that two nodes never count on the same room. A drained node
    is cordoned, as it is while the scheduler places its pods: it still counts for topology spread.

    Args:
        snapshot: The snapshot.
        pending: The pods that wait for a node; they get the room that is there before any node is drained.
    """

    def __init__(self, snapshot: Snapshot, pending: Iterable[Pod] = ()) -> None:
        self.state: ClusterState = prepare(snapshot, with_in_flight=True)
        # Nodes that are on their way take no pods that are evicted now.
        for index, node in enumerate(self.state.nodes):
            if node.in_flight:
                self.state.close(index)
        self._guests: dict[str, dict[str, Pod]] = {}
        self._history: list[tuple[int, dict[str, dict[str, Pod]]]] = []
        waiting = {pod.key: pod for pod in pending}
        if waiting:
            placements, _ = fill_room(self.state, group_pods(waiting.values(), reference_size(self.state, ())))
            self._host(placements, waiting)

    def drain(self, node: Node, pods: Iterable[Pod]) -> tuple[Mapping[str, str], Blocked | None]:
        """Move the pods of a node to others; if one has no place, everything is as before.

        Pods of other nodes that found a place on this one move again.

        Args:
            node: The node.
            pods: The pods that have to move.

        Returns:
            The name of the new node by the key of each pod, and why it is not possible.
        """
        state = self.state
        mark = state.mark()
        index = state.index[node.name]
        state.close(index)
        known = state.nodes[index]
        state.replace_node(index, replace(known, unschedulable=True, taints=(*known.taints, _CORDON)))
        placements: dict[str, str] = {}
        moving = [*pods, *self._guests.get(node.name, {}).values()]
        for demand in group_pods(moving, node.allocatable):
            state.remove(demand.shape, index, len(demand.pods))
            found, left = fill_room(state, [demand], hinted=True)
            if left:
                blocked = self._why(left[0])
                state.rollback(mark)
                return {}, blocked
            placements |= found
        self._history.append((mark, dict(self._guests)))
        self._guests.pop(node.name, None)
        self._host(placements, {pod.key: pod for pod in moving})
        return placements, None

    def undo(self, mark: int) -> None:
        """Take back all drains since `mark` of the state.

        Args:
            mark: What `state.mark()` returned before them.
        """
        while self._history and self._history[-1][0] >= mark:
            self._guests = self._history.pop()[1]
        self.state.rollback(mark)

    def reserve(self, node: Node, pods: Iterable[Pod]) -> None:
        """Take a node into account that is being drained already: its pods need places, and it takes none.

        Args:
            node: The node.
            pods: The pods that have to move; if not all of them have a place, they stay.
        """
        if self.drain(node, pods)[1] is not None:
            self.state.close(self.state.index[node.name])

    def places(self) -> dict[str, str]:
        """Return the name of the node by the key of each pod that has moved, after all drains so far."""
        return {key: name for name, guests in self._guests.items() for key in guests}

    def _host(self, placements: Mapping[str, str], pods: Mapping[str, Pod]) -> None:
        """Remember which pods a node took in the simulation: they move again if it is drained, too."""
        for key, name in placements.items():
            self._guests[name] = {**self._guests.get(name, {}), key: pods[key]}

    def _why(self, demand: Demand) -> Blocked:
        """Return why no node takes a pod: by its size, or by its rules."""
        counts = count_reasons(demand.shape, self.state)
        short = any(reason == TOO_MANY_PODS or reason.startswith("Insufficient ") for reason in counts)
        shown = ", ".join(f"{count} {reason}" for reason, count in counts.items())
        text = f"no other node takes it: {shown}" if counts else "there is no other node"
        return Blocked("capacity" if short or not counts else "affinity", text, demand.pods[0].key)
