"""The scheduler: which node takes a pod.

All pods of a workload are alike, so a node has room for a number of them, and its score is a function of how many are
on it. Among the nodes with room, the one with the highest score takes the next pod, and of equal ones the oldest.
"""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ocf.simulation.engine.nodes.machines import SimulatedNode
    from ocf.simulation.engine.simulated_pods import SimulatedPod

__all__ = ["Scheduler"]

# Entries of before a change stay in the heap until they are taken out together, which is cheaper than a search for
# each.
_SPARE: Final = 64

_Entry = tuple[int, int, int, "SimulatedNode"]
"""The negative score, number and version of a node, and the node."""


class Scheduler:
    """Binds pods to nodes."""

    __slots__ = ("_entries", "_known", "_open", "bound", "changed")

    def __init__(self) -> None:
        self._open: dict[str, SimulatedNode] = {}
        self._known: dict[str, SimulatedNode] = {}
        self._entries: list[_Entry] = []
        self.changed = True
        self.bound = 0

    def open(self, node: "SimulatedNode") -> None:
        """Let a node take pods."""
        self._open[node.name] = self._known[node.name] = node
        self._offer(node)

    def close(self, node: "SimulatedNode") -> None:
        """Let a node take no more pods."""
        self._open.pop(node.name, None)
        self._touch(node)

    def bind(self, pod: "SimulatedPod") -> bool:
        """Bind a pod to the best node with room.

        Returns:
            Whether there was such a node; its attribute `node` has it then.
        """
        entries = self._entries
        while entries:
            _, _, version, node = entries[0]
            heappop(entries)
            if version == node.version and node.name in self._open:
                node.pods[pod.name] = pod
                pod.node = node
                self.bound += 1
                self._offer(node)
                return True
        return False

    def release(self, pods: "Iterable[SimulatedPod]") -> None:
        """Take pods that are gone off their nodes."""
        for pod in pods:
            node = None if pod.node is None else self._known[pod.node.name]
            if node is not None and node.pods.pop(pod.name, None) is not None:
                self.bound -= 1
                self._offer(node)

    def note(self, pods: "Iterable[SimulatedPod]") -> None:
        """Note that pods are new or being deleted; the latter hold their room until they are gone."""
        for pod in pods:
            if pod.node is not None:
                self._known[pod.node.name].seen_pods = None
        self.changed = True

    def _offer(self, node: "SimulatedNode") -> None:
        """Enter a node with its present score, if it has room."""
        self._touch(node)
        count, kind = len(node.pods), node.kind
        if count < kind.room and node.name in self._open:
            heappush(self._entries, (-kind.scores[count], node.number, node.version, node))
            if len(self._entries) > _SPARE + 4 * len(self._open):
                self._entries = [each for each in self._entries if each[2] == each[3].version]
                heapify(self._entries)

    def _touch(self, node: "SimulatedNode") -> None:
        node.seen_pods = None
        node.version += 1
        self.changed = True
