"""Latency of a load unit that arrives at one instant, by the queueing model of the measures.

Behind a backlog, a load unit waits until that is served, and then takes its own service. Without one, it meets the
stationary queue M/M/c, up to the utilization at which the backlog counts. A pod is `capacity` times `service_time`
servers, and all of them together serve the capacity.
"""

from math import log
from typing import Final

from ocf.simulation.measures.latency import HIGHEST_UTILIZATION
from ocf.simulation.measures.queueing import exceeding, servers_of, waiting_probability

__all__ = ["LatencyModel"]

_CLOSE: Final = 1e-9
# Each step halves the range: the digits of a float end long before.
_MOST_STEPS: Final = 200


class LatencyModel:
    """The latency of a workload as a function of its state.

    Args:
        pod_capacity: Load units per second that a warm pod serves.
        service_time: Seconds that a load unit takes on an idle pod, more than 0.
        percentile: The percentile of the latency, from 0 to 100, exclusive; None for the mean.

    Example:
        >>> model = LatencyModel(pod_capacity=10, service_time=0.1, percentile=None)
        >>> round(model.at(rate=8, capacity=10, waiting=0), 6)  # M/M/1: 1 / (10 - 8)
        0.5
        >>> model.at(rate=8, capacity=10, waiting=30)  # three seconds of backlog
        3.1
    """

    __slots__ = ("_known", "_pod_capacity", "_service_time", "_share")

    def __init__(self, *, pod_capacity: float, service_time: float, percentile: float | None) -> None:
        self._pod_capacity = pod_capacity
        self._service_time = service_time
        self._share = None if percentile is None else 1 - percentile / 100
        # The load and the pods are the same at most measurements.
        self._known: tuple[float, float, float] = (-1.0, -1.0, 0.0)

    @property
    def parameters(self) -> tuple[float, float, float | None]:
        """What decides the latencies: equal for equal models."""
        return self._pod_capacity, self._service_time, self._share

    def at(self, *, rate: float, capacity: float, waiting: float) -> float:
        """Return the latency in seconds.

        Without any capacity, a load unit waits as if there were one pod.

        Args:
            rate: Load units per second that arrive.
            capacity: Load units per second that can be served.
            waiting: Load units that wait.
        """
        if waiting > 0 or not capacity:
            _, service_rate = servers_of(capacity or self._pod_capacity, self._pod_capacity, self._service_time)
            # The percentile of the exponential service time, in multiples of its mean.
            served = 1.0 if self._share is None else -log(self._share)
            return waiting / (capacity or self._pod_capacity) + served / service_rate
        known = self._known
        if known[:2] != (rate, capacity):
            known = rate, capacity, self._stationary(min(rate / capacity, HIGHEST_UTILIZATION), capacity)
            self._known = known
        return known[2]

    def _stationary(self, utilization: float, capacity: float) -> float:
        servers, service_rate = servers_of(capacity, self._pod_capacity, self._service_time)
        slack = servers * service_rate * (1 - utilization)
        waiting = waiting_probability(servers, utilization)
        if self._share is None:
            return waiting / slack + 1 / service_rate
        least, most = 0.0, -log(self._share) * (1 / service_rate + 1 / slack)
        while exceeding(most, service_rate=service_rate, slack=slack, waiting=waiting) > self._share:
            least, most = most, 2 * most
        for _ in range(_MOST_STEPS):
            middle = (least + most) / 2
            if exceeding(middle, service_rate=service_rate, slack=slack, waiting=waiting) > self._share:
                least = middle
            else:
                most = middle
            if most - least <= _CLOSE * most:
                break
        return most
