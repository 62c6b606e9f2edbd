"""Pods of the simulated workload: they wait for a node, start, become ready, warm up, fail and leave."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from enum import IntEnum
from heapq import heappop, heappush
from random import Random
from typing import Final, Protocol

from ocf.autoscaling.algorithm import Container, Pod
from ocf.simulation.engine.clock import NEVER, Clock, microseconds
from ocf.simulation.engine.delays import drawn
from ocf.simulation.engine.simulated_pods import FULLY_WARM, SimulatedPod, deletion_rank, seen_pod, warm_up
from ocf.simulation.scenario.workload import Delay, Workload

__all__ = ["PodScheduler", "Pods"]

# Beyond all periods that the HPA counts from the start of a pod.
_LONG_AGO: Final = timedelta(days=30)
_PARTS: Final = ("startup", "image_pull", "readiness", "termination", "uid")


class _Step(IntEnum):
    START = 0
    BEGIN = 1
    READY = 2
    WARMER = 3
    GONE = 4


class PodScheduler(Protocol):
    """What binds pods to nodes."""

    def join(self, pods: "Pods") -> int:
        """Let the pods of a workload wait for nodes; return the position of the workload."""
        ...

    def schedule(self, now: int) -> None:
        """Bind the pods that wait, of all workloads."""
        ...

    def bind(self, pod: SimulatedPod) -> bool:
        """Bind a pod, if a node has room for it."""
        ...

    def release(self, pods: Iterable[SimulatedPod]) -> None:
        """Take pods that are gone off their nodes."""
        ...

    def note(self, pods: Iterable[SimulatedPod]) -> None:
        """Note that pods are new or being deleted."""
        ...


class Pods:
    """The pods of a workload, and what happens to them next.

    At the start all pods are ready and warm for a long time, but for those that no node has room for.

    Args:
        scheduler: Binds the pods to nodes; None: a pod never waits for a node.

    Attributes:
        replicas: `spec.replicas` of the workload.
        priority: The priority of the pods.
        settled: The pods whose samples are alike: ready since before the window of a sample began.
        unsettled: The other pods that are not being deleted, in the order of their creation.
        count: Number of pods that are not being deleted.
        capacity: Load units per second that the ready pods can serve.
        revision: The number of the present template: that of new pods.
        waiting: The pods that wait for a node, by name; the oldest first.
    """

    __slots__ = (
        "_clock",
        "_container",
        "_delays",
        "_name",
        "_next",
        "_numbers",
        "_position",
        "_pull",
        "_scheduler",
        "_serial",
        "_starting",
        "_warm_up",
        "_warmth",
        "_workload",
        "capacity",
        "count",
        "due",
        "priority",
        "ready",
        "replicas",
        "revision",
        "settled",
        "terminating",
        "unsettled",
        "waiting",
    )

    def __init__(
        self,
        workload: Workload,
        count: int,
        *,
        name: str,
        container: str,
        clock: Clock,
        seed: int,
        scheduler: PodScheduler | None = None,
    ) -> None:
        self._workload = workload
        self._position = 0 if scheduler is None else scheduler.join(self)
        self.priority = workload.priority
        self.replicas = count
        self._warm_up = microseconds(workload.warm_up)
        # How long a pod uses more than other pods after its containers have started.
        self._starting = max(
            (microseconds(each.starting_time) for each in workload.usage.values() if each.starting_time), default=0
        )
        self._name = name
        self._container = Container(container, dict(workload.requests))
        self._clock = clock
        self._scheduler = scheduler
        # A stream for each purpose, so that another delay does not change the rest.
        self._delays = {part: Random(f"{seed}/{part}") for part in _PARTS}  # noqa: S311 (a simulation)
        self._numbers = self._serial = self.revision = 0
        self._pull = workload.image_pull
        self._next: list[tuple[int, int, _Step, SimulatedPod]] = []
        self.due = NEVER
        self.settled: list[SimulatedPod] = []
        self.unsettled: list[SimulatedPod] = []
        self.terminating: dict[str, SimulatedPod] = {}
        self.waiting: dict[str, SimulatedPod] = {}
        self.count = self.ready = count
        self._warmth = 0
        long_ago = -microseconds(_LONG_AGO)
        for _ in range(count):
            pod = self._new(long_ago, long_ago, long_ago)
            if scheduler is not None and not scheduler.bind(pod):
                self._wait(pod)
                continue
            pod.settled, pod.warmth = not self.are_apart, FULLY_WARM
            pod.seen = seen_pod(pod, clock, ready=True)
            (self.settled if pod.settled else self.unsettled).append(pod)
        self.ready = count - len(self.waiting)
        self._warm(FULLY_WARM * self.ready)

    @property
    def are_apart(self) -> bool:
        """Whether each pod has a load of its own."""
        return self._workload.connections is not None

    def ready_to_count(self) -> int:
        """Return the number of running and ready pods, including those that are being deleted."""
        return self.ready + sum(pod.warmth > 0 for pod in self.terminating.values())

    def disruptions_allowed(self) -> int | None:
        """Return how many ready pods may be evicted; None without a disruption budget."""
        budget = self._workload.disruption_budget
        return None if budget is None else max(0, self.ready - budget.least_ready(self.replicas))

    @property
    def is_healthy(self) -> bool:
        """Whether as many pods are ready as the disruption budget demands, so that others may be evicted freely."""
        budget = self._workload.disruption_budget
        return budget is None or self.ready >= budget.least_ready(self.replicas) > 0

    def evictable(self, pods: Iterable[SimulatedPod], now: int) -> list[SimulatedPod]:
        """Return the pods that the Eviction API evicts now, one after the other; the budget keeps the others.

        Source: `pkg/registry/core/pod/storage/eviction.go`. Pods that have not started are always evicted.
        """
        allowed = self.disruptions_allowed()
        if allowed is None:
            return list(pods)
        found: list[SimulatedPod] = []
        for pod in pods:
            if pod.warmth and allowed > 0:
                allowed -= 1
            elif pod.warmth or (pod.begun <= now and not self.is_healthy):
                continue
            found.append(pod)
        return found

    def advance(self, now: int) -> None:
        """Take the steps that are due."""
        queue = self._next
        while queue and queue[0][0] <= now:
            _, _, step, pod = heappop(queue)
            if step is _Step.GONE:
                self._gone(pod, now)
            # The steps of a deleted pod are not taken out of the queue, which would have to be searched.
            elif not pod.deleted:
                self._take(pod, step, now)
        self.due = queue[0][0] if queue else NEVER

    def revisions(self) -> dict[int, tuple[int, int]]:
        """Return the pods of each revision that has some, and how many of them are ready."""
        found: dict[int, tuple[int, int]] = {}
        for pod in (*self.settled, *self.unsettled):
            count, ready = found.get(pod.revision, (0, 0))
            found[pod.revision] = count + 1, ready + (pod.warmth > 0)
        return found

    def revise(self, image_pull: Delay | None, *, anew: bool = True) -> None:
        """Begin a revision, or end its rollout.

        Args:
            image_pull: The delay of the pods of the revision; None: that of the workload.
        """
        self.revision += anew
        self._pull = image_pull or self._workload.image_pull

    def scale(self, count: int, now: int, *, revision: int | None = None) -> None:
        """Create or delete pods.

        Args:
            revision: The revision whose pods are counted, created and deleted; None: all, and new ones are of the
                present revision.
        """
        pods = (*self.settled, *self.unsettled)
        chosen = pods if revision is None else [pod for pod in pods if pod.revision == revision]
        surplus = len(chosen) - count
        for _ in range(-surplus):
            self._create(now, revision)
        if surplus > 0:
            together = Counter(pod.node.name for pod in pods if pod.node is not None)
            self._delete(sorted(chosen, key=lambda pod: deletion_rank(pod, now, together))[:surplus], now)
        self.schedule(now)
        self.advance(now)

    def evict(self, pods: Iterable[SimulatedPod], now: int) -> None:
        """Delete pods; new ones replace them at once.

        Args:
            pods: Pods that are not being deleted.
        """
        self.replace(pods, now)
        self.schedule(now)
        self.advance(now)

    def replace(self, pods: Iterable[SimulatedPod], now: int) -> None:
        """Delete pods, and create others that wait for a node if there are nodes."""
        chosen = list(pods)
        self._delete(chosen, now)
        for pod in chosen:
            self._create(now, pod.revision)

    def lose(self, pods: Iterable[SimulatedPod], now: int) -> None:
        """Remove pods that vanish; new ones replace those that were not being deleted."""
        lost = list(pods)
        running = [pod for pod in lost if not pod.deleted]
        self._remove(running)
        for pod in lost:
            self.terminating.pop(pod.name, None)
        if self._scheduler is not None:
            self._scheduler.release(lost)
        for pod in running:
            self._create(now, pod.revision)
        self.schedule(now)
        self.advance(now)

    def schedule(self, now: int) -> None:
        """Bind the pods that wait, also those of other workloads on the same nodes, as far as nodes have room."""
        if self._scheduler is not None:
            self._scheduler.schedule(now)

    def start_first(self, now: int) -> None:
        """Start the oldest pod that waits, which has a node now."""
        pod = self.waiting.pop(next(iter(self.waiting)))
        self._start(pod, now)

    def fail(self, count: int, now: int) -> None:
        """Let the oldest running pods fail; new ones replace them."""
        running = [pod for pod in (*self.settled, *self.unsettled) if pod.begun <= now]
        self.lose(sorted(running, key=lambda pod: (pod.created, pod.uid))[:count], now)

    def settle(self, sampled: int, window: int, *, kept: int = 0) -> None:
        """Regard the pods as settled that were ready when the window of the samples began.

        Args:
            sampled: The end of the window, in microseconds since the start.
            window: Its length in microseconds.
            kept: How long pods keep what their load needed, in microseconds: until then, older ones may use more.
        """
        if self.are_apart:
            return
        # The autoscaler compares the times that the API server stores.
        begin, seen = sampled - max(window, kept), self._clock.stored(sampled) - window
        rest: list[SimulatedPod] = []
        for pod in self.unsettled:
            pod.settled = pod.steady <= begin and pod.ready_stored <= seen
            (self.settled if pod.settled else rest).append(pod)
        self.unsettled = rest

    def _take(self, pod: SimulatedPod, step: _Step, now: int) -> None:
        if step is _Step.START:
            pulling = pod.begun > pod.started
            pod.seen = seen_pod(pod, self._clock, ready=False, pulling=pulling)
            self._after(pod.begun if pulling else pod.ready, _Step.BEGIN if pulling else _Step.READY, pod)
            return
        if step is _Step.BEGIN:
            pod.seen = seen_pod(pod, self._clock, ready=False)
            self._after(pod.ready, _Step.READY, pod)
            return
        if step is _Step.READY:
            pod.seen = seen_pod(pod, self._clock, ready=True)
            self.ready += 1
        for warmth, at in warm_up(pod, self._warm_up):
            if at > now:
                self._after(at, _Step.WARMER, pod)
                break
            self._warm(warmth - pod.warmth)
            pod.warmth = warmth

    def _create(self, now: int, revision: int | None = None) -> None:
        pod = self._new(now, NEVER, NEVER)
        pod.revision = self.revision if revision is None else revision
        self.count += 1
        self._wait(pod)
        if self._scheduler is None:
            del self.waiting[pod.name]
            self._start(pod, now)

    def _wait(self, pod: SimulatedPod) -> None:
        """Let a pod wait for a node; its delays are drawn now, so that they do not depend on the nodes."""
        workload = self._workload
        pod.delays = (
            self._delay("startup", workload.startup),
            self._delay("image_pull", self._pull if pod.revision == self.revision else workload.image_pull),
            self._delay("readiness", workload.readiness),
        )
        pod.started = pod.begun = pod.ready = pod.ready_stored = pod.steady = NEVER
        self.unsettled.append(pod)
        self.waiting[pod.name] = pod
        if self._scheduler is not None:
            self._scheduler.note([pod])

    def _start(self, pod: SimulatedPod, now: int) -> None:
        """Start a pod that needs no node or has one."""
        startup, image_pull, readiness = pod.delays
        pod.started = now + startup
        pod.begun = pod.started + image_pull
        pod.ready = pod.begun + readiness
        pod.steady = max(pod.ready, pod.begun + self._starting)
        pod.ready_stored = self._clock.stored(pod.ready)
        self._after(pod.started, _Step.START, pod)

    def _delete(self, chosen: Sequence[SimulatedPod], now: int) -> None:
        """Delete pods; those that wait for a node are gone at once."""
        self._remove(chosen)
        for pod in chosen:
            if pod.name not in self.waiting:
                self.terminating[pod.name] = pod
                self._after(now + self._delay("termination", self._workload.termination), _Step.GONE, pod)
            else:
                del self.waiting[pod.name]
        if self._scheduler is not None:
            self._scheduler.note(chosen)

    def _gone(self, pod: SimulatedPod, now: int) -> None:
        """Remove a pod whose deletion has ended, unless it has vanished before."""
        if self.terminating.pop(pod.name, None) is not None and self._scheduler is not None:
            self._scheduler.release([pod])
            self.schedule(now)

    def _new(self, created: int, started: int, ready: int) -> SimulatedPod:
        seen = Pod(name=f"{self._name}-{self._numbers}", phase="Pending", containers=(self._container,))
        self._numbers += 1
        return SimulatedPod(
            seen,
            self._clock,
            created=created,
            started=started,
            ready=ready,
            uid=self._delays["uid"].random(),
            workload=self._position,
        )

    def _warm(self, change: int) -> None:
        self._warmth += change
        self.capacity = self._workload.capacity * (self._warmth / FULLY_WARM)

    def _remove(self, chosen: Sequence[SimulatedPod]) -> None:
        self.count -= len(chosen)
        for pod in chosen:
            pod.deleted = True
            # A pod has its first warmth when it becomes ready.
            self.ready -= pod.warmth > 0
            self._warm(-pod.warmth)
        self.settled = [pod for pod in self.settled if not pod.deleted]
        self.unsettled = [pod for pod in self.unsettled if not pod.deleted]

    def _after(self, at: int, step: _Step, pod: SimulatedPod) -> None:
        # Of equal instants the earlier entry counts; without the number, pods would be compared.
        self._serial += 1
        heappush(self._next, (at, self._serial, step, pod))
        self.due = self._next[0][0]

    def _delay(self, part: str, delay: Delay) -> int:
        return drawn(delay, self._delays[part])
