"""Simulated pods, and the order in which they are deleted."""

from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from ocf.autoscaling.algorithm import Pod, Readiness
from ocf.simulation.engine.clock import Clock
from ocf.simulation.engine.queue import PodLoad

__all__ = ["FULLY_WARM", "PodHost", "SimulatedPod", "deletion_rank", "seen_pod", "warm_up"]

# Between two changes all rates are constant, so that the queue can be computed; each step is a row of the result.
_WARM_UP_STEPS: Final = 10
FULLY_WARM: Final = 2 * _WARM_UP_STEPS
"""Warmth of a pod that serves its full capacity."""
_NANOSECONDS: Final = 1_000


class PodHost(Protocol):
    """A node that a pod is on."""

    name: str


class SimulatedPod:
    """A pod of the workload; times are microseconds since the start.

    Attributes:
        node: The node that it is on; None for a pod that waits for one, and where no nodes are simulated.
        delays: From its binding until the kubelet takes it, from there to the start of its containers, and from there
            until it is ready.
        started: `status.startTime`, at which the kubelet takes it; `NEVER` while it waits for a node.
        begun: The start of its containers, after their images were pulled; `NEVER` while it waits for a node.
        ready: The instant at which it becomes ready; `NEVER` while it waits for a node.
        steady: The instant from which it uses what other ready pods use; `NEVER` while it waits for a node.
        created_stored: Its creation as the API server stores it, in full seconds.
        workload: The position of its workload among those that share the nodes.
        uid: A random number, by which the ReplicaSet controller orders pods that are otherwise equal.
        load: Its own load while it is ready; None where all ready pods share one queue.
        revision: The number of the template that it is of; a rollout makes a new one.
        warmth: Its share of the full capacity, in parts of `FULLY_WARM`.
    """

    __slots__ = (
        "begun",
        "created",
        "created_stored",
        "delays",
        "deleted",
        "load",
        "name",
        "node",
        "ready",
        "ready_stored",
        "revision",
        "seen",
        "settled",
        "started",
        "steady",
        "uid",
        "warmth",
        "workload",
    )

    def __init__(
        self, seen: Pod, clock: Clock, *, created: int, started: int, ready: int, uid: float, workload: int = 0
    ) -> None:
        self.seen = seen
        self.created_stored = clock.stored(created)
        self.ready_stored = clock.stored(ready)
        self.name = seen.name
        self.created = created
        self.started = self.begun = started
        self.ready = self.steady = ready
        self.uid = uid
        self.workload = workload
        self.node: PodHost | None = None
        self.delays: tuple[int, int, int] = (0, 0, 0)
        self.deleted = False
        self.settled = False
        self.load: PodLoad | None = None
        self.revision = 0
        self.warmth = 0


def seen_pod(pod: SimulatedPod, clock: Clock, *, ready: bool, pulling: bool = False) -> Pod:
    """Return a pod that has started as the autoscaler sees it, with the times that the API server stores."""
    since = clock.at(clock.stored(pod.ready if ready else pod.started))
    condition = Readiness("True" if ready else "False", since)
    started = clock.at(clock.stored(pod.started))
    phase = "Pending" if pulling else "Running"
    return Pod(name=pod.name, phase=phase, started=started, ready=condition, containers=pod.seen.containers)


def warm_up(pod: SimulatedPod, length: int) -> Iterator[tuple[int, int]]:
    """Yield warmth and begin of the steps of the warm-up from the present one on.

    Args:
        length: Microseconds from Ready to full capacity.
    """
    for number in range(pod.warmth // 2, _WARM_UP_STEPS + 1):
        # A pod is in the middle of a step on average, so that the capacity adds up to that of a straight line.
        warmth = FULLY_WARM if number == _WARM_UP_STEPS else 2 * number + 1
        yield warmth, pod.ready + length * number // _WARM_UP_STEPS


def deletion_rank(pod: SimulatedPod, now: int, together: Mapping[str, int]) -> tuple[bool, bool, bool, int, int, float]:
    """Return the place of a pod in the order in which the ReplicaSet controller deletes pods.

    Pods without a node come first, then those that have not started, then those that are not ready, then those on the
    nodes with the most pods of the workload, then younger ones. Pods of about the same age, by the logarithm of it,
    come in a random order. Source: `ActivePodsWithRanks` in `pkg/controller/controller_utils.go`.

    Args:
        together: Number of pods of the workload on each node by its name.
    """
    ready = pod.warmth > 0
    age = now - (pod.ready_stored if ready else pod.created_stored)
    is_bound, rank = (False, 0) if pod.node is None else (True, -together[pod.node.name])
    return is_bound, pod.begun <= now, ready, rank, (age * _NANOSECONDS).bit_length(), pod.uid
