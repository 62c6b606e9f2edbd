"""Simulated pods, and the order in which they are deleted."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ocf.autoscaling.algorithm import Pod
from ocf.simulation.engine.clock import Clock

if TYPE_CHECKING:
    from ocf.simulation.engine.nodes.machines import SimulatedNode

__all__ = ["SimulatedPod", "deletion_rank"]

_NANOSECONDS: Final = 1_000


class SimulatedPod:
    """A pod of the workload; times are microseconds since the start.

    Attributes:
        name: Its name.
        created: Its creation.
        node: The node that it is on; None for a pod that waits for one, and where no nodes are simulated.
        delays: From its binding to the start of its containers, and from there until it is ready.
        started: The start of its containers; `NEVER` while it waits for a node.
        ready: The instant at which it becomes ready; `NEVER` while it waits for a node.
        created_stored: Its creation as the API server stores it, in full seconds.
        ready_stored: The instant at which it becomes ready, as the API server stores it.
        uid: A random number, by which the ReplicaSet controller orders pods that are otherwise equal.
        deleted: Whether it is being deleted, or has failed.
        settled: Whether its samples equal those of all other settled pods.
        warmth: Its share of the full capacity, in parts of `FULLY_WARM`.
        seen: The pod as the autoscaler sees it, but for its deletion.
    """

    __slots__ = (
        "created",
        "created_stored",
        "delays",
        "deleted",
        "name",
        "node",
        "ready",
        "ready_stored",
        "seen",
        "settled",
        "started",
        "uid",
        "warmth",
    )

    def __init__(self, seen: Pod, clock: Clock, *, created: int, started: int, ready: int, uid: float) -> None:
        self.seen = seen
        self.created_stored = clock.stored(created)
        self.ready_stored = clock.stored(ready)
        self.name = seen.name
        self.created = created
        self.started = started
        self.ready = ready
        self.uid = uid
        self.node: SimulatedNode | None = None
        self.delays = (0, 0)
        self.deleted = False
        self.settled = False
        self.warmth = 0


def deletion_rank(pod: SimulatedPod, now: int, together: Mapping[str, int]) -> tuple[bool, bool, bool, int, int, float]:
    """Return the place of a pod in the order in which the ReplicaSet controller deletes pods.

    Pods without a node come first, then those that have not started, then those that are not ready, then those on the
    nodes with the most pods of the workload, then younger ones. Pods of about the same age, by the logarithm of it,
    come in a random order. Source: `ActivePodsWithRanks` in `pkg/controller/controller_utils.go`.

    Args:
        pod: The pod.
        now: The instant in microseconds.
        together: Number of pods of the workload on each node by its name.
    """
    ready = pod.warmth > 0
    age = now - (pod.ready_stored if ready else pod.created_stored)
    is_bound, rank = (False, 0) if pod.node is None else (True, -together[pod.node.name])
    return is_bound, pod.started <= now, ready, rank, (age * _NANOSECONDS).bit_length(), pod.uid
