"""Preemption: which pods of a lower priority make way for one that has no place; as the scheduler selects them.

Source: `SelectVictimsOnNode` of `pkg/scheduler/framework/plugins/defaultpreemption` and `pickOneNodeForPreemption` of
`pkg/scheduler/framework/preemption`, Kubernetes 1.36.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from ocf.simulation.engine.nodes.machines import SimulatedNode
    from ocf.simulation.engine.pods import Pods
    from ocf.simulation.engine.simulated_pods import SimulatedPod

__all__ = ["Preemption", "preemption"]

_LEAST_PRIORITY: Final = -(2**31)


class Preemption(NamedTuple):
    """A node, and the pods that have to leave it.

    Attributes:
        victims: The pods, the most important first.
        violations: How many of them are beyond what the disruption budgets of their workloads allow.
    """

    node: "SimulatedNode"
    victims: "tuple[SimulatedPod, ...]"
    violations: int


def preemption(nodes: "Iterable[SimulatedNode]", workloads: "Sequence[Pods]", position: int) -> Preemption | None:
    """Return the node on which a pod of a workload does the least harm; None if no node has pods that make way.

    Args:
        nodes: The nodes that take pods, in the order of their creation.
        workloads: The pods of all workloads.
        position: The position of the workload.
    """
    found = [each for node in nodes if (each := _on_node(node, workloads, position)) is not None]

    def harm(each: Preemption) -> tuple[int, int, int, int, int]:
        priorities = [workloads[pod.workload].priority for pod in each.victims]
        # From the least one that there may be: a pod of a negative priority does not offset another pod.
        total = sum(priority - _LEAST_PRIORITY for priority in priorities)
        # The most important pods of that node have run the shortest time.
        started = min(pod.started for pod in each.victims if workloads[pod.workload].priority == max(priorities))
        return each.violations, max(priorities), total, len(priorities), -started

    return min(found, key=harm, default=None)


def _on_node(node: "SimulatedNode", workloads: "Sequence[Pods]", position: int) -> Preemption | None:
    """Return the pods that have to leave a node, the fewest that are enough; None if there are none, or not enough."""

    def importance(pod: "SimulatedPod") -> tuple[int, int, float]:
        return -workloads[pod.workload].priority, pod.started, pod.uid

    priority = workloads[position].priority
    lower = sorted((pod for pod in node.pods.values() if workloads[pod.workload].priority < priority), key=importance)
    counts = [*node.counts]
    for pod in lower:
        counts[pod.workload] -= 1
    if not lower or node.kind.score(position, tuple(counts)) is None:
        return None
    violating = _violating(lower, workloads)
    victims: list[SimulatedPod] = []
    # Those that no budget lets go are kept first, then the others, in both cases the most important first.
    for pod in (*violating, *(each for each in lower if each not in violating)):
        counts[pod.workload] += 1
        if node.kind.score(position, tuple(counts)) is None:
            counts[pod.workload] -= 1
            victims.append(pod)
    violations = sum(pod in violating for pod in victims)
    return Preemption(node, tuple(sorted(victims, key=importance)), violations) if victims else None


def _violating(pods: "Iterable[SimulatedPod]", workloads: "Sequence[Pods]") -> "list[SimulatedPod]":
    """Return those of the pods that the disruption budgets of their workloads do not let go."""
    left = {position: workload.disruptions_allowed() for position, workload in enumerate(workloads)}
    found: list[SimulatedPod] = []
    for pod in pods:
        allowed = left[pod.workload]
        # A pod that is leaving already is counted by its budget.
        if allowed is None or pod.deleted:
            continue
        left[pod.workload] = allowed - 1
        if allowed <= 0:
            found.append(pod)
    return found
