"""Latency of the accepted load, by a queueing model.

A load unit that arrives while others wait in the backlog, which the simulation tracks, waits until those are served,
and then for its own service. Any other meets the stationary queue M/M/c of its row: a pod is `capacity * service_time`
servers, so that all of them together serve the capacity of the row. Load units of a row count alike, with the wait in
its middle.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from math import frexp, fsum
from operator import mul
from typing import Final, NamedTuple

from ocf.simulation.measures.queueing import exceeding, servers_of, waiting_probability
from ocf.simulation.result import Columns

__all__ = ["HIGHEST_UTILIZATION", "Latencies", "latencies"]

HIGHEST_UTILIZATION: Final = 0.99
"""Utilization above which the stationary queue is not used: a row is too short to reach it, and the backlog counts."""

_STEPS: Final = 8
"""Steps per doubling of a value; rows within a step of each other are one class, with their mean."""
# Steps per doubling of the rate of a server; pods in the same step are alike.
_FINE_STEPS: Final = 128
_CLOSE: Final = 1e-12
_MOST_STEPS: Final = 100


class _Class(NamedTuple):
    """Load units with about the same distribution of the latency.

    Args:
        delay: Seconds that they wait in the backlog.
        service_rate: Service rate of one server.
        slack: Service rate of all servers minus arrival rate.
        waiting: Probability to wait in the stationary queue.
    """

    weight: float
    delay: float
    service_rate: float
    slack: float
    waiting: float

    def exceeding(self, time: float) -> float:
        if time < self.delay:
            return 1.0
        return exceeding(time - self.delay, service_rate=self.service_rate, slack=self.slack, waiting=self.waiting)


@dataclass(frozen=True, slots=True)
class Latencies:
    """The distribution of the latency.

    Args:
        total: Number of load units, more than 0.
    """

    classes: tuple[_Class, ...]
    total: float

    def exceeding(self, time: float) -> float:
        """Return the share of the load units whose latency exceeds a time.

        Args:
            time: Seconds, not negative.
        """
        return fsum(each.weight * each.exceeding(time) for each in self.classes) / self.total

    def percentile(self, percent: float) -> float:
        """Return the seconds within which a share of the load units is served.

        Args:
            percent: The share in percent, more than 0 and less than 100.
        """
        share = 1 - percent / 100
        low, high = 0.0, 1.0
        above, below = percent / 100, self.exceeding(high) - share
        while below > 0:
            low, high, above = high, high * 2, below
            below = self.exceeding(high) - share
        return self._root(share, (low, above), (high, below))

    def _root(self, share: float, low: tuple[float, float], high: tuple[float, float]) -> float:
        """Return the time that the share exceeds, by the Illinois method between two points of the curve."""
        side = 0
        (left, above), (right, below) = low, high
        for _ in range(_MOST_STEPS):
            if below == 0 or right - left <= _CLOSE * right:
                break
            middle = (left * below - right * above) / (below - above)
            found = self.exceeding(middle) - share
            if found > 0:
                left, above, below, side = middle, found, below / 2 if side > 0 else below, 1
            else:
                right, below, above, side = middle, found, above / 2 if side < 0 else above, -1
            if abs(found) <= _CLOSE:
                return middle
        return right


def latencies(
    columns: Columns, lengths: Sequence[float], duration: float, *, pod_capacity: float, service_time: float
) -> Latencies | None:
    """Return the distribution of the latency.

    Args:
        duration: Length of the run in seconds.
        pod_capacity: Load units per second that a warm pod serves.
        service_time: Seconds that a load unit takes on an idle pod, more than 0.

    Returns:
        The distribution; None if no load was accepted.
    """
    pools: dict[float, _Pool] = {}
    alike: dict[tuple[int, int], _Pool] = {}
    rows = zip(
        lengths, columns.load, columns.dropped, columns.capacity, _delays(columns, lengths, duration), strict=True
    )
    for length, load, dropped, capacity, delay in rows:
        weight = length * (load - dropped)
        if weight <= 0:
            continue
        pool = pools.get(capacity)
        if pool is None:
            fresh = _pool(capacity, pod_capacity, service_time)
            # Pods that warm up give many capacities.
            pool = pools[capacity] = alike.setdefault((fresh.servers, _fine_step(fresh.rate)), fresh)
        if delay > 0 or capacity == 0:
            value, scaled, groups = delay, delay, pool.behind
        else:
            value = min((load - dropped) / capacity, HIGHEST_UTILIZATION)
            # The latency grows with this, so that the classes are fine where the utilization is high.
            scaled, groups = 1 / (1 - value), pool.calm
        # A logarithm by steps, without the last bits in which machines differ.
        mantissa, exponent = frexp(scaled)
        sums = groups[exponent * 2 * _STEPS + int(mantissa * 2 * _STEPS)]
        sums[0] += weight
        sums[1] += weight * value
    classes = tuple(each for pool in alike.values() for each in _classes(pool))
    return Latencies(classes, fsum(each.weight for each in classes)) if classes else None


def _sums() -> defaultdict[int, list[float]]:
    return defaultdict(lambda: [0.0, 0.0])


@dataclass(frozen=True, slots=True)
class _Pool:
    """Servers, and the load units that they serve: sums of number and value by step of the value.

    Args:
        rate: Service rate of one.
        calm: Load units that meet the stationary queue; the value is the utilization.
        behind: Load units that wait in the backlog; the value is the delay.
    """

    servers: int
    rate: float
    calm: defaultdict[int, list[float]] = field(default_factory=_sums)
    behind: defaultdict[int, list[float]] = field(default_factory=_sums)


def _pool(capacity: float, pod_capacity: float, service_time: float) -> _Pool:
    return _Pool(*servers_of(capacity, pod_capacity, service_time))


def _fine_step(value: float) -> int:
    mantissa, exponent = frexp(value)
    return exponent * _FINE_STEPS + int(mantissa * _FINE_STEPS)


def _classes(pool: _Pool) -> Iterator[_Class]:
    for weight, total in pool.behind.values():
        yield _Class(weight, total / weight, pool.rate, 0.0, 0.0)
    for weight, total in pool.calm.values():
        utilization = total / weight
        slack = pool.servers * pool.rate * (1 - utilization)
        yield _Class(weight, 0.0, pool.rate, slack, waiting_probability(pool.servers, utilization))


def _delays(columns: Columns, lengths: Sequence[float], duration: float) -> Iterator[float]:
    """Yield for each row the seconds that a load unit that arrives in its middle waits in the backlog."""
    done = list(accumulate(map(mul, lengths, columns.served), initial=0.0))
    last = columns.capacity[-1] if columns.capacity else 0.0
    after = chain(columns.queue[1:], [columns.queue[-1]] if columns.queue else [])
    for row, (length, queue, next_queue) in enumerate(zip(lengths, columns.queue, after, strict=True)):
        if queue <= 0 and next_queue <= 0:
            yield 0.0
            continue
        target = (done[row] + done[row + 1] + queue + next_queue) / 2
        at = bisect_left(done, target)
        if at < len(done):
            finished = columns.time[at - 1] + (target - done[at - 1]) / columns.served[at - 1]
        else:  # It waits until after the end of the run.
            finished = duration + ((target - done[-1]) / last if last else 0.0)
        yield max(0.0, finished - columns.time[row] - length / 2)
