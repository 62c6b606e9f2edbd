"""Pods of the simulated workload: they start, become ready, warm up, fail and leave."""

from collections.abc import Iterator
from datetime import timedelta
from enum import IntEnum
from heapq import heappop, heappush
from random import Random
from typing import Final

from ocf.autoscaling.algorithm import Container, Pod, Readiness
from ocf.simulation.engine.clock import NEVER, Clock, microseconds
from ocf.simulation.scenario import Delay, Workload

__all__ = ["FULLY_WARM", "Pods", "SimulatedPod"]

_WARM_UP_STEPS: Final = 10
FULLY_WARM: Final = 2 * _WARM_UP_STEPS
"""Warmth of a pod that serves its full capacity."""
_LONG_AGO: Final = timedelta(days=30)
_NANOSECONDS: Final = 1_000


class _Step(IntEnum):
    START = 0
    READY = 1
    WARMER = 2
    GONE = 3


class SimulatedPod:
    """A pod of the workload; times are microseconds since the start.

    Attributes:
        name: Its name.
        created: Its creation.
        started: The start of its containers.
        ready: The instant at which it becomes ready.
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
        "deleted",
        "name",
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
        self.deleted = False
        self.settled = False
        self.warmth = 0


class Pods:
    """The pods of a workload, and what happens to them next.

    At the start all pods are ready and warm for a long time.

    Args:
        workload: The workload.
        count: Number of pods at the start.
        name: Name of the workload.
        container: Name of the container of a pod.
        clock: The clock.
        seed: Seed of the delays.

    Attributes:
        settled: The pods whose samples are alike: ready since before the window of a sample began.
        unsettled: The other pods that are not being deleted, in the order of their creation.
        count: Number of pods that are not being deleted.
        ready: Number of those that are ready.
        capacity: Load units per second that the ready pods can serve.
        terminating: The pods that are being deleted, by name.
        due: The instant at which something happens next.
    """

    __slots__ = (
        "_clock",
        "_container",
        "_delays",
        "_name",
        "_next",
        "_numbers",
        "_serial",
        "_warmth",
        "_workload",
        "capacity",
        "count",
        "due",
        "ready",
        "settled",
        "terminating",
        "unsettled",
    )

    def __init__(self, workload: Workload, count: int, *, name: str, container: str, clock: Clock, seed: int) -> None:
        self._workload = workload
        self._name = name
        self._container = Container(container, dict(workload.requests))
        self._clock = clock
        self._delays = {part: Random(f"{seed}/{part}") for part in ("startup", "readiness", "termination", "uid")}  # noqa: S311 (a simulation)
        self._numbers = self._serial = 0
        self._next: list[tuple[int, int, _Step, SimulatedPod]] = []
        self.due = NEVER
        self.settled: list[SimulatedPod] = []
        self.unsettled: list[SimulatedPod] = []
        self.terminating: dict[str, SimulatedPod] = {}
        self.count = self.ready = count
        self._warmth = 0
        self._warm(FULLY_WARM * count)
        long_ago = -microseconds(_LONG_AGO)
        for _ in range(count):
            pod = self._new(long_ago, long_ago, long_ago)
            pod.settled, pod.warmth = True, FULLY_WARM
            pod.seen = self._seen(pod, ready=True)
            self.settled.append(pod)

    def ready_to_count(self) -> int:
        """Return the number of running and ready pods, including those that are being deleted."""
        return self.ready + sum(pod.warmth > 0 for pod in self.terminating.values())

    def advance(self, now: int) -> None:
        """Take the steps that are due.

        Args:
            now: The instant in microseconds.
        """
        queue = self._next
        while queue and queue[0][0] <= now:
            _, _, step, pod = heappop(queue)
            if step is _Step.GONE:
                del self.terminating[pod.name]
            elif not pod.deleted:
                self._take(pod, step, now)
        self.due = queue[0][0] if queue else NEVER

    def scale(self, count: int, now: int) -> None:
        """Create or delete pods.

        Args:
            count: Number of pods that are wanted.
            now: The instant in microseconds.
        """
        surplus = self.count - count
        for _ in range(-surplus):
            self._create(now)
        if surplus > 0:
            chosen = sorted((*self.settled, *self.unsettled), key=lambda pod: _rank(pod, now))[:surplus]
            self._remove(chosen)
            for pod in chosen:
                self.terminating[pod.name] = pod
                self._after(now + self._delay("termination", self._workload.termination), _Step.GONE, pod)
        self.advance(now)

    def fail(self, count: int, now: int) -> None:
        """Let the oldest running pods fail; new ones replace them.

        Args:
            count: Number of pods.
            now: The instant in microseconds.
        """
        running = [pod for pod in (*self.settled, *self.unsettled) if pod.started <= now]
        self._remove(sorted(running, key=lambda pod: (pod.created, pod.uid))[:count])
        for _ in range(min(count, len(running))):
            self._create(now)
        self.advance(now)

    def settle(self, sampled: int, window: int) -> None:
        """Regard the pods as settled that were ready when the window of the samples began.

        Args:
            sampled: The end of the window, in microseconds since the start.
            window: Its length in microseconds.
        """
        # The autoscaler compares the times that the API server stores.
        begin, seen = sampled - window, self._clock.stored(sampled) - window
        rest: list[SimulatedPod] = []
        for pod in self.unsettled:
            pod.settled = pod.ready <= begin and pod.ready_stored <= seen
            (self.settled if pod.settled else rest).append(pod)
        self.unsettled = rest

    def _take(self, pod: SimulatedPod, step: _Step, now: int) -> None:
        if step is _Step.START:
            pod.seen = self._seen(pod, ready=False)
            self._after(pod.ready, _Step.READY, pod)
            return
        if step is _Step.READY:
            pod.seen = self._seen(pod, ready=True)
            self.ready += 1
        for number, at in self._warm_up(pod):
            if at > now:
                self._after(at, _Step.WARMER, pod)
                break
            # A pod is in the middle of a step on average, so that the capacity adds up to that of a straight line.
            warmth = FULLY_WARM if number == _WARM_UP_STEPS else 2 * number + 1
            self._warm(warmth - pod.warmth)
            pod.warmth = warmth

    def _warm_up(self, pod: SimulatedPod) -> Iterator[tuple[int, int]]:
        """Yield the steps of the warm-up from the present one on, with the instants at which they begin."""
        length = microseconds(self._workload.warm_up)
        for number in range(pod.warmth // 2, _WARM_UP_STEPS + 1):
            yield number, pod.ready + length * number // _WARM_UP_STEPS

    def _create(self, now: int) -> None:
        started = now + self._delay("startup", self._workload.startup)
        ready = started + self._delay("readiness", self._workload.readiness)
        pod = self._new(now, started, ready)
        self.unsettled.append(pod)
        self.count += 1
        self._after(started, _Step.START, pod)

    def _new(self, created: int, started: int, ready: int) -> SimulatedPod:
        seen = Pod(name=f"{self._name}-{self._numbers}", phase="Pending", containers=(self._container,))
        self._numbers += 1
        return SimulatedPod(
            seen, self._clock, created=created, started=started, ready=ready, uid=self._delays["uid"].random()
        )

    def _warm(self, change: int) -> None:
        self._warmth += change
        self.capacity = self._workload.capacity * (self._warmth / FULLY_WARM)

    def _remove(self, chosen: list[SimulatedPod]) -> None:
        self.count -= len(chosen)
        for pod in chosen:
            pod.deleted = True
            self.ready -= pod.warmth > 0
            self._warm(-pod.warmth)
        self.settled = [pod for pod in self.settled if not pod.deleted]
        self.unsettled = [pod for pod in self.unsettled if not pod.deleted]

    def _after(self, at: int, step: _Step, pod: SimulatedPod) -> None:
        self._serial += 1
        heappush(self._next, (at, self._serial, step, pod))
        self.due = self._next[0][0]

    def _delay(self, part: str, delay: Delay) -> int:
        least = max(0, microseconds(delay.mean - delay.spread))
        most = microseconds(delay.mean + delay.spread)
        return least + int(self._delays[part].random() * (most - least + 1)) if most > least else least

    def _seen(self, pod: SimulatedPod, *, ready: bool) -> Pod:
        at, stored = self._clock.at, self._clock.stored
        since = at(stored(pod.ready if ready else pod.started))
        condition = Readiness("True" if ready else "False", since)
        started = at(stored(pod.started))
        return Pod(name=pod.name, started=started, ready=condition, containers=pod.seen.containers)


def _rank(pod: SimulatedPod, now: int) -> tuple[bool, bool, int, float]:
    """Return the place of a pod in the order in which the ReplicaSet controller deletes pods.

    Pods that have not started come first, then those that are not ready, then younger ones. Pods of about the same age,
    by the logarithm of it, come in a random order.
    """
    ready = pod.warmth > 0
    age = now - (pod.ready_stored if ready else pod.created_stored)
    return pod.started <= now, ready, (age * _NANOSECONDS).bit_length(), pod.uid
