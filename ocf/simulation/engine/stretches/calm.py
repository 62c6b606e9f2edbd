"""Measurements of a workload that is calm: no pod changes, no load waits, and all that arrives is served.

They follow from the load alone. So they are computed for many syncs at once, and are the same for all runs with this
load, whatever the settings of their HPA.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from ocf.autoscaling.algorithm.arithmetic import INT64_MAX
from ocf.simulation.arrays import IntArray
from ocf.simulation.engine.averages import Gauge
from ocf.simulation.engine.load_steps import LoadSteps
from ocf.simulation.engine.meters import Meter, amount
from ocf.simulation.engine.pipeline import Times
from ocf.simulation.engine.scrapes import Scrape
from ocf.simulation.scenario.workload import SignalSource

__all__ = ["TOO_MUCH", "Calm", "CalmSamples"]

TOO_MUCH: Final = INT64_MAX
"""The largest value that is kept; it stands for larger ones, too."""
# A limit of the memory, see `ocf.simulation.engine.outcomes`.
_MOST_PAGES: Final = 1 << 14
_NO_PODS: Final[dict[str, tuple[int, ...]]] = {}
_NONE: Final[frozenset[str]] = frozenset()

Values: TypeAlias = tuple[IntArray, ...]
"""The values of each meter at some syncs."""


class Calm(NamedTuple):
    """The pods of a calm workload.

    Args:
        capacity: Load units per second that they can serve, more than 0.
        ready: Number of pods that are ready, more than 0.
    """

    capacity: float
    ready: int

    def level(self, meter: Meter) -> Callable[[float], float]:
        """Return the function from a load to what a meter averages."""
        if meter.source is not None and not meter.per_pod:
            return float
        # The same division as in the queue and the pipeline, so that the floats are the same, too.
        share = self.capacity if meter.source is None else self.ready
        return lambda rate: rate / share


class CalmSamples:
    """The measurements of a calm workload."""

    __slots__ = ("_known", "_meters", "_steps", "_times")

    def __init__(self, steps: LoadSteps, meters: Sequence[Meter], times: Times) -> None:
        self._steps = steps
        self._meters = tuple(meters)
        self._times = times
        self._known: dict[tuple[int, Calm], Values] = {}

    def of_syncs(self, page: int, syncs: Sequence[int], calm: Calm) -> Values:
        """Return the values that each sync of a page of the timetable reads; at most `TOO_MUCH`."""
        known = self._known.get((page, calm))
        if known is None:
            if len(self._known) >= _MOST_PAGES:
                self._known.clear()
            known = self._known[page, calm] = self._read(syncs, calm)
        return known

    def measured(self, first: int, last: int, calm: Calm) -> Iterator[Scrape]:
        """Yield the measurements from one number to another, which is not before it."""
        period = self._times.period
        times = range(first * period, last * period + 1, period)
        values = zip(*(self._values(meter, times, calm) for meter in self._meters), strict=True)
        return (Scrape(at, each, _NO_PODS, _NONE) for at, each in zip(times, values, strict=True))

    def restore(self, gauge: Gauge, meter: Meter, calm: Calm, *, begin: int, end: int) -> None:
        """Set a gauge to what it measured.

        Args:
            begin: The begin of the next window, in microseconds.
            end: The instant before which levels are set, in microseconds.
        """
        level = calm.level(meter)
        gauge.restart(level(self._steps.rates[self._steps.at(min(begin, end - 1))]))
        for at, rate in self._steps.between(begin, end - 1):
            gauge.set(at, level(rate))

    def _read(self, syncs: Sequence[int], calm: Calm) -> Values:
        numbers = [self._times.readable(now) for now in syncs]
        first, last, period = numbers[0], numbers[-1], self._times.period
        times = range(first * period, last * period + 1, period)
        found: list[IntArray] = []
        for meter in self._meters:
            values = self._values(meter, times, calm)
            # Usually there is a measurement for each sync.
            each = values if len(values) == len(numbers) else [values[number - first] for number in numbers]
            found.append(array("q", [min(value, TOO_MUCH) for value in each]))
        return tuple(found)

    def _values(self, meter: Meter, times: range, calm: Calm) -> list[int]:
        idle, slope, window, steps = meter.idle, meter.slope, self._times.window, self._steps
        if meter.source is SignalSource.QUEUE:
            return [amount(idle)] * len(times)
        if meter.source is SignalSource.BACKLOG:
            level, rates = calm.level(meter), (steps.rates[steps.at(time)] for time in times)
            return [amount(idle + slope * level(meter.in_work * rate)) for rate in rates]
        if meter.timed is not None:
            return [amount(idle + slope * meter.timed.at(time)) for time in times]
        if meter.latency is not None:
            latency, rates = meter.latency, (steps.rates[steps.at(time)] for time in times)
            return [amount(idle + slope * latency.at(rate=rate, capacity=calm.capacity, waiting=0)) for rate in rates]
        begin, level = times[0] - window, calm.level(meter)
        gauge, found = Gauge(level(steps.rates[steps.at(begin)])), list[int]()
        following = steps.between(begin, times[-1])
        step = next(following, None)
        for now in times:
            while step is not None and step[0] <= now:
                gauge.set(step[0], level(step[1]))
                step = next(following, None)
            found.append(amount(idle + slope * gauge.window(now - window, now)))
        return found
