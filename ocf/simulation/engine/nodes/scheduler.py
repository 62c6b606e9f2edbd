"""The scheduler: which node takes a pod.

All pods of a workload are alike, so the score of a node is a function of how many pods of each workload are on it.
Among the nodes with room, the one with the highest score takes the next pod, and of equal ones the oldest.
"""

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

from ocf.simulation.engine.nodes.preemption import preemption

if TYPE_CHECKING:
    from ocf.simulation.engine.nodes.machines import SimulatedNode
    from ocf.simulation.engine.pods import Pods
    from ocf.simulation.engine.simulated_pods import SimulatedPod

__all__ = ["Scheduler"]

# Entries of before a change stay in the heap until they are taken out together, which is cheaper than a search for
# each.
_SPARE: Final = 64

_Entry = tuple[int, int, int, "SimulatedNode"]
"""The negative score, number and version of a node, and the node."""


class Scheduler:
    """Binds pods to nodes.

    Args:
        workloads: The number of workloads that share the nodes.

    Attributes:
        bound: The number of pods of each workload that are on nodes.
        changed: Whether anything has changed that a decision about nodes reads.
        nominated: The nodes that are kept for pods of each workload, until others have left them.
        workloads: The pods of the workloads.
    """

    __slots__ = ("_entries", "_known", "_open", "bound", "changed", "nominated", "workloads")

    def __init__(self, workloads: int = 1) -> None:
        self._open: dict[str, SimulatedNode] = {}
        self._known: dict[str, SimulatedNode] = {}
        self._entries: list[list[_Entry]] = [[] for _ in range(workloads)]
        self.workloads: list[Pods] = []
        self.changed = True
        self.bound = [0] * workloads
        self.nominated: list[list[SimulatedNode]] = [[] for _ in range(workloads)]

    def join(self, pods: "Pods") -> int:
        """Let the pods of a workload wait for nodes; return its position, as the workloads join in their order."""
        self.workloads.append(pods)
        return len(self.workloads) - 1

    def open(self, node: "SimulatedNode") -> None:
        """Let a node take pods."""
        self._open[node.name] = self._known[node.name] = node
        self._offer(node)

    def close(self, node: "SimulatedNode") -> None:
        """Let a node take no more pods."""
        self._open.pop(node.name, None)
        for position, nodes in enumerate(self.nominated):
            while node in nodes:
                self._forget(position, node)
        self._touch(node)

    def schedule(self, now: int) -> None:
        """Bind the pods that wait, as far as nodes have room, or pods of a lower priority make way.

        Those of the highest priority come first, then the oldest: the order of the queue of the scheduler.
        """
        self._place(now)
        # Room that is kept for pods that have a place elsewhere, or do not wait any more, is for others.
        while any(len(nodes) > len(self.workloads[at].waiting) for at, nodes in enumerate(self.nominated)):
            for position, nodes in enumerate(self.nominated):
                while len(nodes) > len(self.workloads[position].waiting):
                    self._forget(position, nodes[-1])
            self._place(now)

    def _place(self, now: int) -> None:
        trying = [pods for pods in self.workloads if pods.waiting]
        while trying:
            pods = min(trying, key=_place_in_queue)
            pod = next(iter(pods.waiting.values()))
            # Pods of a workload are alike: where one has no place, the others have none.
            if self._bind_nominated(pod) or self.bind(pod):
                pods.start_first(now)
            elif self._preempt(pod.workload, now):
                # The pods that replace the victims wait now, too.
                trying = [each for each in self.workloads if each.waiting]
            else:
                trying.remove(pods)
            trying = [each for each in trying if each.waiting]

    def _preempt(self, position: int, now: int) -> bool:
        """Evict pods of a lower priority for a pod that has no place; return whether there are such."""
        pods, nominated = self.workloads[position], self.nominated[position]
        # A pod whose victims are leaving waits for them.
        if len(nominated) >= len(pods.waiting) or all(each.priority >= pods.priority for each in self.workloads):
            return False
        found = preemption(sorted(self._open.values(), key=_age), self.workloads, position)
        if found is None:
            return False
        nominated.append(found.node)
        self._count(found.node, position, 1)
        for workload, victims in self._by_workload(pod for pod in found.victims if not pod.deleted):
            workload.replace(victims, now)
        return True

    def _bind_nominated(self, pod: "SimulatedPod") -> bool:
        """Bind a pod to a node that is kept for its workload, if others have left it; return whether there is one."""
        for node in self.nominated[pod.workload]:
            counts = _changed(node.counts, pod.workload, -1)
            if node.kind.score(pod.workload, counts) is not None:
                self._forget(pod.workload, node)
                self._bind(pod, node)
                return True
        return False

    def _forget(self, position: int, node: "SimulatedNode") -> None:
        """Keep a node no longer for a pod."""
        self.nominated[position].remove(node)
        self._count(node, position, -1)

    def _bind(self, pod: "SimulatedPod", node: "SimulatedNode") -> None:
        node.pods[pod.name] = pod
        pod.node = node
        self.bound[pod.workload] += 1
        self._count(node, pod.workload, 1)

    def bind(self, pod: "SimulatedPod") -> bool:
        """Bind a pod to the best node with room.

        Returns:
            Whether there was such a node; its attribute `node` has it then.
        """
        entries = self._entries[pod.workload]
        while entries:
            _, _, version, node = entries[0]
            heappop(entries)
            if version == node.version and node.name in self._open:
                self._bind(pod, node)
                return True
        return False

    def release(self, pods: "Iterable[SimulatedPod]") -> None:
        """Take pods that are gone off their nodes."""
        for pod in pods:
            node = None if pod.node is None else self._known[pod.node.name]
            if node is not None and node.pods.pop(pod.name, None) is not None:
                self.bound[pod.workload] -= 1
                self._count(node, pod.workload, -1)

    def evict(self, pods: "Iterable[SimulatedPod]", now: int) -> "list[SimulatedPod]":
        """Evict pods of any workload, as far as disruption budgets allow it; new ones replace them at once.

        Returns:
            The pods that stay.
        """
        kept: list[SimulatedPod] = []
        for workload, found in self._by_workload(pods):
            evicted = workload.evictable(found, now)
            kept += [pod for pod in found if pod not in evicted]
            workload.evict(evicted, now)
        return kept

    def lose(self, pods: "Iterable[SimulatedPod]", now: int) -> None:
        """Remove pods of any workload that vanish; new ones replace those that were not being deleted."""
        for workload, found in self._by_workload(pods):
            workload.lose(found, now)

    def note(self, pods: "Iterable[SimulatedPod]") -> None:
        """Note that pods are new or being deleted; the latter hold their room until they are gone."""
        for pod in pods:
            if pod.node is not None:
                self._known[pod.node.name].seen_pods = None
        self.changed = True

    def _by_workload(self, pods: "Iterable[SimulatedPod]") -> "Iterator[tuple[Pods, list[SimulatedPod]]]":
        given = list(pods)
        for position, workload in enumerate(self.workloads):
            found = [pod for pod in given if pod.workload == position]
            if found or len(self.workloads) == 1:
                yield workload, found

    def _count(self, node: "SimulatedNode", position: int, change: int) -> None:
        node.counts = _changed(node.counts, position, change)
        self._offer(node)

    def _offer(self, node: "SimulatedNode") -> None:
        """Enter a node with its present scores, for the workloads for which it has room."""
        self._touch(node)
        if node.name not in self._open:
            return
        for workload, entries in enumerate(self._entries):
            score = node.kind.score(workload, node.counts)
            if score is None:
                continue
            heappush(entries, (-score, node.number, node.version, node))
            if len(entries) > _SPARE + 4 * len(self._open):
                entries[:] = [each for each in entries if each[2] == each[3].version]
                heapify(entries)

    def _touch(self, node: "SimulatedNode") -> None:
        node.seen_pods = None
        node.version += 1
        self.changed = True


def _age(node: "SimulatedNode") -> int:
    return node.number


def _changed(counts: tuple[int, ...], position: int, change: int) -> tuple[int, ...]:
    return (*counts[:position], counts[position] + change, *counts[position + 1 :])


def _place_in_queue(pods: "Pods") -> tuple[int, int]:
    return -pods.priority, next(iter(pods.waiting.values())).created
