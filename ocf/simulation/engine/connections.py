"""Load that arrives over long connections: a pod that has just become ready gets only those that are opened anew.

Each ready pod has a share of the connections, and a queue of its own. A connection stays with its pod until it ends.
New ones, also those of pods that leave, are spread evenly over the ready pods.
"""

from typing import Final

from ocf.simulation.engine.clock import NEVER
from ocf.simulation.engine.pods import Pods
from ocf.simulation.engine.queue import FluidQueue, PodLoad
from ocf.simulation.engine.simulated_pods import FULLY_WARM, SimulatedPod

__all__ = ["ConnectionQueues"]

# Between two changes all rates are constant, so connections are opened anew in steps; each is a row of the result.
_STEPS: Final = 20
_EVEN: Final = 0.001
"""Shares that differ by less from the mean, as a share of it, are the same."""
_REFUSAL: Final = 1.0
"""Seconds in which load that finds no room is dropped: a row of the result has drops for each second, not at once."""


class ConnectionQueues(FluidQueue):
    """The queues in front of the pods, one for each.

    Args:
        limit: The load units that can wait in all of them; None for no limit.
        lifetime: The mean lifetime of a connection, in microseconds.
        pods: Those that may get load; which of them are ready is seen at each change.

    Attributes:
        loads: The loads of the ready pods by name.
    """

    __slots__ = ("_excess", "_lost", "_pod_capacity", "_pods", "_step", "_step_at", "_total", "loads")

    def __init__(self, limit: float | None, *, lifetime: int, pods: Pods, pod_capacity: float) -> None:
        super().__init__(limit)
        self._pods = pods
        self._pod_capacity = pod_capacity
        self._total = limit
        self._step = max(1, lifetime // _STEPS)
        self._step_at = NEVER
        self.loads: dict[str, PodLoad] = {}
        # What waits while no pod is ready.
        self._lost = FluidQueue(limit)
        # What has left a pod and finds no room at the others; what it serves is dropped.
        self._excess = FluidQueue(None)

    def advance(self, now: int) -> None:
        """Compute the lengths at an instant, and open anew the connections that have ended."""
        self._lost.advance(now)
        self._excess.advance(now)
        for load in self.loads.values():
            load.queue.advance(now)
        if self._step_at <= now:
            mean = 1 / len(self.loads)
            for load in self.loads.values():
                load.share += (mean - load.share) / _STEPS
            self._step_at = NEVER
            self._plan(now)
        self.length = self._waiting()

    def change(self, now: int, *, rate: float, capacity: float) -> None:
        """Set the rates that hold from an instant on, for the pods that are ready then.

        Args:
            now: The instant in microseconds, to which the queue has advanced.
            capacity: Load units per second that the pods could serve if all had as much as they can.
        """
        ready = {pod.name: pod for pod in self._pods.unsettled if pod.warmth}
        self._join(now, ready)
        loads = self.loads
        self._lost.change(now, rate=0.0 if loads else rate, capacity=0.0)
        most = NEVER if not loads else capacity
        for name, load in loads.items():
            of_pod = self._pod_capacity * (ready[name].warmth / FULLY_WARM)
            load.queue.change(now, rate=rate * load.share, capacity=of_pod)
            if load.share:
                most = min(most, of_pod / load.share)
        self._excess.change(now, rate=0.0, capacity=self._excess.capacity)
        queues = [self._lost, *(load.queue for load in loads.values())]
        self.capacity = float(most) if loads else 0.0
        self.length = self._waiting()
        self.served = sum(queue.served for queue in queues)
        self.dropped = sum(queue.dropped for queue in queues) + self._excess.served
        self.utilization = min(1.0, self.served / capacity) if capacity else 0.0
        self.due = min(self._step_at, self._excess.due, *(queue.due for queue in queues))

    def _join(self, now: int, ready: dict[str, SimulatedPod]) -> None:
        """Let pods join and leave; the connections of those that leave are opened anew."""
        loads = self.loads
        if loads.keys() == ready.keys():
            return
        waiting = self._lost.length
        gone = [loads.pop(name) for name in [*loads] if name not in ready]
        limit = None if self._total is None or not ready else self._total / len(ready)
        for name, pod in ready.items():
            if name not in loads:
                loads[name] = pod.load = PodLoad(limit)
                pod.load.queue.advance(now)
        waiting += sum(load.queue.length for load in gone)
        self._lost.length = 0.0
        if not ready:
            self._refuse(self._lost.refill(self._total, waiting))
            self._step_at = NEVER
            return
        mean = 1 / len(ready)
        free = sum(load.share for load in gone)
        is_first = not any(load.share for load in (*loads.values(), *gone))
        excess = 0.0
        for load in loads.values():
            load.share = mean if is_first else load.share + free * mean
            excess += load.queue.refill(limit, waiting * mean)
        self._refuse(excess)
        self._plan(now)

    def _refuse(self, excess: float) -> None:
        """Drop load that finds no room, from now on."""
        if excess > 0:
            self._excess.refill(None, excess)
            self._excess.capacity = self._excess.length / _REFUSAL

    def _plan(self, now: int) -> None:
        """Plan when connections are opened anew, unless all pods have as many."""
        mean = 1 / len(self.loads)
        if all(abs(load.share - mean) <= _EVEN * mean for load in self.loads.values()):
            self._step_at = NEVER
            for load in self.loads.values():
                load.share = mean
        elif self._step_at == NEVER:
            self._step_at = now + self._step

    def _waiting(self) -> float:
        return self._lost.length + self._excess.length + sum(load.queue.length for load in self.loads.values())
