"""The metrics pipeline: measurements become samples that the autoscaler can read later, if they are not lost.

A measurement of a pod averages over the window of the pipeline, as far as the pod ran in it. Ready pods share the load
in proportion to what they can serve, so the samples of all pods that were ready throughout the window are equal, and
are computed once.
"""

from collections import deque
from collections.abc import Callable, Iterable
from random import Random
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm import Sample
from ocf.simulation.engine.averages import Gauge, Peak
from ocf.simulation.engine.clock import NEVER, Clock, microseconds
from ocf.simulation.engine.meters import Meter, amount
from ocf.simulation.engine.pods import Pods
from ocf.simulation.engine.queue import FluidQueue, PodLoad
from ocf.simulation.engine.scrapes import Scrape
from ocf.simulation.engine.simulated_pods import SimulatedPod
from ocf.simulation.scenario.controller import MetricsPipeline
from ocf.simulation.scenario.workload import SignalSource

__all__ = ["Pipeline", "Times"]

_Level = Callable[[int, int], float]
_NO_PODS: Final[dict[str, tuple[int, ...]]] = {}
_NONE: Final[frozenset[str]] = frozenset()
_AT_ONCE: Final = frozenset({SignalSource.QUEUE, SignalSource.BACKLOG, SignalSource.LATENCY, SignalSource.SCHEDULE})
"""Sources whose value is that of the moment, and not an average."""


class Times(NamedTuple):
    """The times of the metrics pipeline, in microseconds.

    Args:
        period: Time between two measurements.
        window: Time over which a measurement averages.
        delay: Time from a measurement until it can be read.
    """

    period: int
    window: int
    delay: int

    def readable(self, now: int) -> int:
        """Return the number of the last measurement that can be read; the one at the start has the number 0."""
        return (now - self.delay) // self.period

    def begin(self, number: int) -> int:
        """Return the begin of the window of a measurement."""
        return number * self.period - self.window


class Pipeline:
    """The metrics pipeline of a simulation."""

    __slots__ = (
        "_clock",
        "_delay",
        "_dropped",
        "_gauges",
        "_kept",
        "_levels",
        "_next",
        "_observed",
        "_outages",
        "_period",
        "_random",
        "_rate",
        "_waiting",
        "_window",
        "due",
        "meters",
        "pods",
        "queue",
        "scrape",
        "times",
        "window",
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
        self.queue = queue
        self._clock = clock
        self.times = times = _times(settings)
        self._period, self._window, self._delay = times
        self.window = settings.window or settings.scrape_period
        self._dropped = settings.dropped
        # A stream of its own, so that lost samples do not change the delays of pods.
        self._random = Random(f"{seed}/dropped")  # noqa: S311 (a simulation)
        self._outages = tuple(
            (microseconds(each.at), microseconds(each.at + each.duration)) for each in settings.outages
        )
        self._gauges: tuple[Gauge | Peak, ...] = ()
        self._levels: tuple[tuple[float, float, _Level], ...] = ()
        self._observed: tuple[tuple[Meter, Gauge | Peak], ...] = ()
        # How far back a sample depends on the load.
        self._kept = max((self._window, *(each.kept for each in meters)))
        self._waiting: deque[Scrape] = deque()
        self._next = self.due = 0
        self._rate = 0.0

    def start(self, rate: float) -> None:
        """Begin with the samples of a workload that served the same load long before the start."""
        self._rate = rate
        levels = (self._level(meter, rate) for meter in self.meters)
        self._gauges = tuple(_gauge(meter, level) for meter, level in zip(self.meters, levels, strict=True))
        pairs = tuple(zip(self.meters, self._gauges, strict=True))
        self._observed = tuple(each for each in pairs if each[0].source not in _AT_ONCE)
        self._observe_pods(None)
        self._levels = tuple((meter.idle, meter.slope, self._reader(meter, gauge)) for meter, gauge in pairs)
        # The last measurement that can be read already.
        number = -(-self._delay // self._period)
        self.scrape = self._measure(-number * self._period)
        for earlier in range(number - 1, 0, -1):
            self._waiting.append(self._measure(-earlier * self._period))

    def observe(self, now: int, rate: float) -> None:
        """Note the levels that hold from an instant on."""
        self._rate = rate
        for meter, gauge in self._observed:
            level = self.queue.utilization if meter.source is None else self._level(meter, rate)
            if level != gauge.value:
                gauge.set(now, level)
        if self._gauges:
            self._observe_pods(now)

    def _observe_pods(self, now: int | None) -> None:
        """Note the levels of the pods that have a load of their own.

        Args:
            now: The instant from which they hold; None: since long before the start.
        """
        for pod in self.pods.unsettled if self.pods.are_apart else ():
            load = pod.load
            if load is None:
                continue
            levels = [self._level_of(meter, load) for meter in self.meters]
            if not load.gauges:
                pairs = zip(self.meters, levels, strict=True)
                load.gauges = tuple(_gauge(meter, 0.0 if now is not None else level) for meter, level in pairs)
            for gauge, level in zip(load.gauges, levels, strict=True):
                if now is not None and level != gauge.value:
                    gauge.set(now, level)

    def _level_of(self, meter: Meter, load: PodLoad) -> float:
        """Return the level of a ready pod that has a load of its own."""
        if meter.source is None:
            return load.queue.utilization
        if meter.source is SignalSource.LOAD:
            return self._rate * load.share
        return load.queue.served if meter.source is SignalSource.SERVED else 0.0

    def advance(self, now: int) -> None:
        """Measure, and make measurements readable, if that is due."""
        waiting = self._waiting
        if now == self._next:
            self._next += self._period
            waiting.append(self._measure(now))
        while waiting and waiting[0].at + self._delay <= now:
            self.scrape = waiting.popleft()
            if self.pods.unsettled:
                self.pods.settle(self.scrape.at, self._window, kept=self._kept)
        self.due = min(self._next, waiting[0].at + self._delay) if waiting else self._next

    def resume(
        self, now: int, rate: float, scrapes: Iterable[Scrape], restore: Callable[[Gauge, Meter], object]
    ) -> None:
        """Continue at an instant in microseconds, with the load before it, and with what was measured elsewhere.

        The first of the measurements can be read already; `restore` sets the gauges.
        """
        self._rate = rate
        self._next = -(-now // self._period) * self._period
        self._waiting = deque(scrapes)
        self.scrape = self._waiting.popleft()
        self.due = min(self._next, self._waiting[0].at + self._delay) if self._waiting else self._next
        for meter, gauge in self._observed:
            assert isinstance(gauge, Gauge)  # noqa: S101 (there are no stretches where usage is kept)
            restore(gauge, meter)

    @property
    def is_kept(self) -> bool:
        """Whether usage is kept when the load has fallen, so that it does not follow from the present load."""
        return any(meter.kept for meter in self.meters)

    def available_until(self, now: int) -> int:
        """Return the instant until which samples are neither lost nor in an outage; now, if they already are."""
        if self._dropped:
            return now
        return min((max(begin, now) for begin, end in self._outages if end > now), default=NEVER)

    def is_down(self, now: int) -> bool:
        """Return whether no metric can be read."""
        return bool(self._outages) and any(begin <= now < end for begin, end in self._outages)

    def samples(self, position: int) -> dict[str, Sample]:
        """Return the samples of the pods that are not settled."""
        at, apart, lost = self._clock.at(self._clock.stored(self.scrape.at)), self.scrape.apart, self.scrape.lost
        names = [pod.name for pod in self.pods.unsettled if pod.name in apart and pod.name not in lost]
        return {name: Sample(apart[name][position], at, self.window) for name in names}

    def lost(self) -> list[str]:
        """Return the names of the settled pods whose samples are missing."""
        lost = self.scrape.lost
        return [pod.name for pod in self.pods.settled if pod.name in lost] if lost else []

    def _measure(self, now: int) -> Scrape:
        begin = now - self._window
        values = tuple([amount(idle + slope * level(begin, now)) for idle, slope, level in self._levels])
        pods, apart, lost = self.pods, _NO_PODS, _NONE
        if pods.unsettled:
            apart = {pod.name: self._apart(pod, now) for pod in pods.unsettled if pod.begun < now}
        if self._dropped:
            # In the order of the pods, so that a seed always loses the same samples.
            names = (*(pod.name for pod in pods.settled), *apart)
            lost = frozenset(name for name in names if self._random.random() < self._dropped)
        return Scrape(now, values, apart, lost)

    def _apart(self, pod: SimulatedPod, now: int) -> tuple[int, ...]:
        """Return the values of a pod that was not ready all the time; before, it used what it needs without load."""
        begin = now - self._window
        begun, ready = max(begin, pod.begun), max(begin, pod.ready)
        share = (now - ready) / (now - begun) if ready < now else 0.0
        values: list[int] = []
        load = pod.load
        gauges = self._gauges if load is None else load.gauges
        for meter, gauge in zip(self.meters, gauges, strict=True):
            level = 0.0
            if meter.per_pod and meter.source in _AT_ONCE:
                level = self._moment(meter, load) if ready <= now else 0.0
            elif isinstance(gauge, Peak):
                level = gauge.highest(max(now - meter.kept, pod.ready)) if pod.ready <= now else 0.0
            elif meter.per_pod and load is not None:
                level = gauge.window(begun, now)  # it was 0 before the pod was ready
            elif meter.per_pod and share:
                level = gauge.mean(ready, now) * share
            used = meter.idle + meter.slope * level
            if meter.starting:
                used += meter.starting * meter.starting_share(pod.begun, pod.ready, begun, now)
            values.append(amount(used))
        return tuple(values)

    def _level(self, meter: Meter, rate: float) -> float:
        """Return the level that a meter averages: of one ready pod, or of the workload."""
        if meter.source is None:
            return self.queue.utilization
        if meter.source in _AT_ONCE:
            return 0.0
        level = rate if meter.source is SignalSource.LOAD else self.queue.served
        if not meter.per_pod:
            return level
        return level / self.pods.ready if self.pods.ready else 0.0

    def _reader(self, meter: Meter, gauge: Gauge | Peak) -> _Level:
        """Return the function that measures."""
        if isinstance(gauge, Peak):
            return lambda _begin, end: gauge.highest(end - meter.kept)
        if meter.source not in _AT_ONCE:
            return gauge.window
        if (timed := meter.timed) is not None:
            return lambda _begin, end: timed.at(end)
        return lambda _begin, _end: self._moment(meter)

    def _moment(self, meter: Meter, load: PodLoad | None = None) -> float:
        """Return the level of a source that is not averaged."""
        queue, pods = self.queue, self.pods
        if meter.latency is not None:
            # All pods have the same latency, which is that of the load units that they share.
            return meter.latency.at(rate=self._rate, capacity=queue.capacity, waiting=queue.length)
        counted = queue if load is None or not meter.per_pod else load.queue
        units = counted.length + meter.in_work * counted.served
        if counted is not queue or not meter.per_pod:
            return units
        return units / pods.ready if pods.ready else 0.0


def _gauge(meter: Meter, level: float) -> Gauge | Peak:
    return Peak(level, kept=meter.kept) if meter.kept else Gauge(level)


def _times(settings: MetricsPipeline) -> Times:
    """Return the times of a metrics pipeline."""
    period = microseconds(settings.scrape_period)
    window = period if settings.window is None else microseconds(settings.window)
    return Times(period, window, microseconds(settings.delay))
