"""The metrics pipeline: measurements become samples that the autoscaler can read later, if they are not lost.

A measurement of a pod averages over the window of the pipeline, as far as the pod ran in it. Ready pods share the load
in proportion to what they can serve, so the samples of all pods that were ready throughout the window are equal, and
are computed once.
"""

from collections import deque
from collections.abc import Mapping
from random import Random
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm import MetricValues, Sample, Unavailable
from ocf.schema.metric_sources import METRIC_SOURCES
from ocf.simulation.engine.averages import Gauge
from ocf.simulation.engine.clock import Clock, microseconds
from ocf.simulation.engine.meters import Meter, amount
from ocf.simulation.engine.pods import Pods, SimulatedPod
from ocf.simulation.engine.queue import FluidQueue
from ocf.simulation.scenario import MetricsPipeline, SignalSource

__all__ = ["Pipeline", "Scrape"]

_REFUSED: Final = "the server is currently unable to handle the request"


class Scrape(NamedTuple):
    """A measurement of the whole workload.

    Args:
        at: Its instant, in microseconds since the start.
        values: The value of each metric: of every settled pod, or of the workload; thousandths.
        apart: The values of the pods that are not settled, by name.
        lost: The pods whose samples are missing.
    """

    at: int
    values: tuple[int, ...]
    apart: Mapping[str, tuple[int, ...]]
    lost: tuple[SimulatedPod, ...]


class Pipeline:
    """The metrics pipeline of a simulation.

    Args:
        settings: The pipeline as the scenario describes it.
        meters: The meters of the metrics of the HPA.
        pods: The pods of the workload.
        queue: The queue in front of them.
        clock: The clock.
        seed: Seed of the samples that are lost.

    Attributes:
        meters: The meters of the metrics of the HPA.
        pods: The pods of the workload.
        scrape: The last measurement that can be read.
        due: The instant of the next measurement, or at which the next one can be read.
    """

    __slots__ = (
        "_clock",
        "_delay",
        "_dropped",
        "_gauges",
        "_next",
        "_outages",
        "_period",
        "_queue",
        "_random",
        "_waiting",
        "_window",
        "due",
        "meters",
        "pods",
        "scrape",
    )

    def __init__(
        self,
        settings: MetricsPipeline,
        meters: tuple[Meter, ...],
        *,
        pods: Pods,
        queue: FluidQueue,
        clock: Clock,
        seed: int,
    ) -> None:
        self.meters = meters
        self.pods = pods
        self._queue = queue
        self._clock = clock
        self._period = microseconds(settings.scrape_period)
        self._window = microseconds(settings.window or settings.scrape_period)
        self._delay = microseconds(settings.delay)
        self._dropped = settings.dropped
        self._random = Random(f"{seed}/dropped")  # noqa: S311 (a simulation)
        self._outages = tuple(
            (microseconds(each.at), microseconds(each.at + each.duration)) for each in settings.outages
        )
        self._gauges = tuple(Gauge(0.0) for _ in meters)
        self._waiting: deque[Scrape] = deque()
        self._next = self.due = 0

    def start(self, rate: float) -> None:
        """Begin with the samples of a workload that served the same load long before the start.

        Args:
            rate: Offered load, in load units per second.
        """
        self._gauges = tuple(Gauge(self._level(meter, rate)) for meter in self.meters)
        # The last measurement that can be read already.
        number = -(-self._delay // self._period)
        self.scrape = self._measure(-number * self._period)
        for earlier in range(number - 1, 0, -1):
            self._waiting.append(self._measure(-earlier * self._period))

    def observe(self, now: int, rate: float) -> None:
        """Note the levels that hold from an instant on.

        Args:
            now: The instant in microseconds.
            rate: Offered load, in load units per second.
        """
        for meter, gauge in zip(self.meters, self._gauges, strict=True):
            gauge.set(now, self._level(meter, rate))

    def advance(self, now: int) -> None:
        """Measure, and make measurements readable, if that is due.

        Args:
            now: The instant in microseconds.
        """
        if now == self._next:
            self._next += self._period
            self._waiting.append(self._measure(now))
        waiting = self._waiting
        while waiting and waiting[0].at + self._delay <= now:
            self.scrape = waiting.popleft()
            if self.pods.unsettled:
                self.pods.settle(self.scrape.at, self._window)
        self.due = min(self._next, waiting[0].at + self._delay) if waiting else self._next

    def is_down(self, now: int) -> bool:
        """Return whether no metric can be read.

        Args:
            now: The instant in microseconds.
        """
        return any(begin <= now < end for begin, end in self._outages)

    def samples(self, position: int) -> dict[str, Sample]:
        """Return the samples of the pods that are not settled.

        Args:
            position: Position of the metric in the spec.
        """
        at, apart, lost = self._clock.at(self._clock.stored(self.scrape.at)), self.scrape.apart, self.scrape.lost
        window = self._clock.span(self._window)
        return {
            pod.name: Sample(apart[pod.name][position], at, window)
            for pod in self.pods.unsettled
            if pod.name in apart and pod not in lost
        }

    def lost(self) -> list[str]:
        """Return the names of the settled pods whose samples are missing."""
        return [pod.name for pod in self.scrape.lost if pod.settled and not pod.deleted]

    def read(self, now: int) -> tuple[MetricValues, ...]:
        """Return everything that the autoscaler can read, as the metrics APIs return it.

        Args:
            now: The instant in microseconds.
        """
        return tuple(self._values(position, now) for position in range(len(self.meters)))

    def _values(self, position: int, now: int) -> MetricValues:
        meter = self.meters[position]
        api = METRIC_SOURCES[meter.metric.type].api
        if self.is_down(now):
            return Unavailable(f"unable to fetch metrics from {api} metrics API: {_REFUSED}")
        value = self.scrape.values[position]
        if not meter.per_pod:
            return (value,)
        at = self._clock.at(self._clock.stored(self.scrape.at))
        lost = set(self.lost())
        sample = Sample(value, at, self._clock.span(self._window))
        found = {pod.name: sample for pod in self.pods.settled if pod.name not in lost}
        found.update(self.samples(position))
        return found or Unavailable(f"no metrics returned from {api} metrics API")

    def _measure(self, now: int) -> Scrape:
        begin = now - self._window
        values: list[int] = []
        for meter, gauge in zip(self.meters, self._gauges, strict=True):
            gauge.forget(begin)
            level = self._length(meter) if meter.source is SignalSource.QUEUE else gauge.mean(begin, now)
            values.append(amount(meter.idle + meter.slope * level))
        pods = self.pods
        measured = [pod for pod in pods.unsettled if pod.started < now] if pods.unsettled else ()
        apart = {pod.name: self._apart(pod, now) for pod in measured}
        lost: tuple[SimulatedPod, ...] = ()
        if self._dropped:
            lost = tuple(pod for pod in (*pods.settled, *measured) if self._random.random() < self._dropped)
        return Scrape(now, tuple(values), apart, lost)

    def _apart(self, pod: SimulatedPod, now: int) -> tuple[int, ...]:
        """Return the values of a pod that was not ready all the time; it used nothing but its idle amount before."""
        begin = now - self._window
        started, ready = max(begin, pod.started), max(begin, pod.ready)
        share = (now - ready) / (now - started) if ready < now else 0.0
        values: list[int] = []
        for meter, gauge in zip(self.meters, self._gauges, strict=True):
            level = 0.0
            if meter.per_pod and meter.source is SignalSource.QUEUE:
                level = self._length(meter) if ready <= now else 0.0
            elif meter.per_pod and share:
                level = gauge.mean(ready, now) * share
            values.append(amount(meter.idle + meter.slope * level))
        return tuple(values)

    def _level(self, meter: Meter, rate: float) -> float:
        """Return the level that a meter averages: of one ready pod, or of the workload."""
        if meter.source is None:
            return self._queue.utilization
        if meter.source is SignalSource.QUEUE:
            return 0.0
        level = rate if meter.source is SignalSource.LOAD else self._queue.served
        if not meter.per_pod:
            return level
        return level / self.pods.ready if self.pods.ready else 0.0

    def _length(self, meter: Meter) -> float:
        length = self._queue.length
        if not meter.per_pod:
            return length
        return length / self.pods.ready if self.pods.ready else 0.0
