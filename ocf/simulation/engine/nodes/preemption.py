"""Preemption: which pods of a lower priority make way for one that has no place; as the scheduler selects them.

Source: `SelectVictimsOnNode` and `pickOneNodeForPreemption` in `pkg/scheduler/framework/preemption` of Kubernetes 1.36.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ocf.simulation.engine.nodes.machines import SimulatedNode
    from ocf.simulation.engine.pods import Pods
    from ocf.simulation.engine.simulated_pods import SimulatedPod

__all__ = ["Preemption", "preemption"]


class Preemption(NamedTuple):
    """A node, and the pods that have to leave it."""

    node: "SimulatedNode"
    victims: "tuple[SimulatedPod, ...]"


def preemption(nodes: "Iterable[SimulatedNode]", workloads: "Sequence[Pods]", position: int) -> Preemption | None:
    """Return the node on which a pod of a workload does the least harm; None if no node has pods that make way.

    Args:
        nodes: The nodes that take pods, in the order of their creation.
        workloads: The pods of all workloads.
        position: The position of the workload.
    """
    found = [Preemption(node, victims) for node in nodes if (victims := _victims(node, workloads, position))]

    def harm(each: Preemption) -> tuple[int, int, int, int, int]:
        priorities = [workloads[pod.workload].priority for pod in each.victims]
        # The youngest of the most important pods has run the shortest time.
        started = min(pod.started for pod in each.victims if workloads[pod.workload].priority == max(priorities))
        return _violations(each.victims, workloads), max(priorities), sum(priorities), len(priorities), -started

    return min(found, key=harm, default=None)


def _victims(node: "SimulatedNode", workloads: "Sequence[Pods]", position: int) -> "tuple[SimulatedPod, ...]":
    """Return the pods that have to leave a node, the fewest that are enough; none if all of them are not."""
    priority = workloads[position].priority
    lower = [pod for pod in node.pods.values() if workloads[pod.workload].priority < priority]
    counts = [*node.counts]
    for pod in lower:
        counts[pod.workload] -= 1
    if node.kind.score(position, tuple(counts)) is None:
        return ()
    # Those that are leaving anyway are kept last; of the others, the most important and oldest are kept first.
    lower.sort(key=lambda pod: (pod.deleted, -workloads[pod.workload].priority, pod.started, pod.uid))
    victims: list[SimulatedPod] = []
    for pod in lower:
        counts[pod.workload] += 1
        if node.kind.score(position, tuple(counts)) is None:
            counts[pod.workload] -= 1
            victims.append(pod)
    return tuple(victims)


def _violations(victims: "Sequence[SimulatedPod]", workloads: "Sequence[Pods]") -> int:
    """Return how many of the victims are beyond what the disruption budgets of their workloads allow."""
    return sum(
        max(0, sum(pod.workload == at and not pod.deleted for pod in victims) - allowed)
        for at, allowed in enumerate(workload.disruptions_allowed() for workload in workloads)
        if allowed is not None
    )
