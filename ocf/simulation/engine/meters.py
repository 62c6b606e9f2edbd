"""Values of the metrics of an HPA, as the simulated workload produces them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from ocf.autoscaling.algorithm import Metric
from ocf.errors import ConfigError
from ocf.schema.metric_sources import PODLESS_METRICS, RESOURCE_METRICS
from ocf.simulation.engine.clock import Clock, microseconds
from ocf.simulation.engine.scheduled import Scheduled
from ocf.simulation.measures.instant_latency import LatencyModel
from ocf.simulation.scenario.prediction import PREDICTED
from ocf.simulation.scenario.workload import Signal, SignalSource, Workload

__all__ = ["Meter", "Timed", "amount", "container_of", "meters_of"]

_MILLI: Final = 1_000
_NANO_PER_MILLI: Final = 10**6


class Timed(Protocol):
    """A value that depends on the time, and on the load before it."""

    parameters: tuple[object, ...]

    def at(self, now: int) -> float:
        """Return the value at an instant, in microseconds since the start."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """How the value of one metric follows from the load.

    Args:
        source: What the value follows; None for the utilization of the ready pods.
        per_pod: Whether each pod has a sample of its own.
        idle: Value without load, in thousandths.
        slope: What one unit of the source adds, in thousandths.
        starting: What a pod uses in addition while it starts, in thousandths; less than 0 if that is less than `idle`.
        starting_time: How long that lasts from the start of the containers, in microseconds; None: until it is ready.
        kept: How long a pod keeps what its load needed, in microseconds.
        request: Request of a pod, in thousandths, for a target that needs it; None if the pods have none.
        in_work: Seconds for which a load unit is in work and counts, for the source `backlog`; otherwise 0.
        latency: The model of the latency, for the source `latency`; otherwise None.
        timed: What the value is at an instant, if it is no measurement: a schedule or a forecast; otherwise None.
    """

    metric: Metric
    source: SignalSource | None
    per_pod: bool
    idle: float
    slope: float
    starting: float = 0.0
    starting_time: int | None = None
    kept: int = 0
    request: int | None = None
    in_work: float = 0.0
    latency: LatencyModel | None = None
    timed: Timed | None = None

    @property
    def measured(self) -> tuple[object, ...]:
        """What decides the values: equal for meters with equal values, whatever their targets are."""
        latency = None if self.latency is None else self.latency.parameters
        timed = None if self.timed is None else self.timed.parameters
        return self.source, self.per_pod, self.idle, self.slope, self.in_work, latency, timed

    def starting_share(self, begun: int, ready: int, begin: int, end: int) -> float:
        """Return the share of a time in which a pod starts.

        Args:
            begun: The start of its containers, in microseconds; not after `begin`.
            ready: The instant at which it becomes ready.
        """
        until = ready if self.starting_time is None else begun + self.starting_time
        return (min(until, end) - begin) / (end - begin) if until > begin else 0.0

    @property
    def resource(self) -> str:
        """The resource whose usage is measured; empty for other metrics."""
        return self.metric.name if self.source is None else ""


def amount(value: float) -> int:
    """Return an amount in thousandths as the controller reads it: rounded to billionths, then up.

    Example:
        >>> amount(350.0000000001), amount(350.001)
        (350, 351)
    """
    return -(-int(value * _NANO_PER_MILLI + 0.5) // _NANO_PER_MILLI)


def meters_of(
    metrics: Sequence[Metric], workload: Workload, clock: Clock, forecast: Timed | None = None
) -> tuple[Meter, ...]:
    """Return the meters of the metrics of an HPA; a forecast is that of the metric `PREDICTED`."""
    return tuple(
        _meter(metric, workload, clock)
        if forecast is None or metric.name != PREDICTED
        else _predicted(metric, forecast)
        for metric in metrics
    )


def container_of(metrics: Sequence[Metric]) -> str:
    """Return the name of the container of the pods: the one that metrics of type ContainerResource name.

    Example:
        >>> container_of([])
        'app'
    """
    names = list(dict.fromkeys(metric.container for metric in metrics if metric.type == "ContainerResource"))
    if len(names) > 1:
        raise ConfigError(f"the pods of a scenario have one container, but the metrics of the HPA name {names}")
    return names[0] if names else "app"


def _meter(metric: Metric, workload: Workload, clock: Clock) -> Meter:
    if metric.type in RESOURCE_METRICS:
        request = workload.requests.get(metric.name)
        usage = workload.usage.get(metric.name)
        if usage is None and request is None:
            raise ConfigError(
                f"the HPA scales on the resource {metric.name}, but the workload has no usage and no request of it:"
                f" add workload.usage.{metric.name} or workload.requests.{metric.name}"
            )
        # Without a usage, a busy pod uses what it requests.
        idle, busy = (0, request or 0) if usage is None else (usage.idle, usage.busy)
        if usage is None:
            return Meter(metric=metric, source=None, per_pod=True, idle=idle, slope=busy, request=request)
        return Meter(
            metric=metric,
            source=None,
            per_pod=True,
            idle=idle,
            slope=busy - idle,
            starting=0 if usage.starting is None else usage.starting - idle,
            starting_time=None if usage.starting_time is None else microseconds(usage.starting_time),
            kept=microseconds(usage.release_after),
            request=request,
        )
    signal = workload.signals.get(metric.name)
    if signal is None:
        raise ConfigError(
            f"the HPA scales on the metric {metric.name} of type {metric.type}, but the workload does not define it:"
            f" add workload.signals.{metric.name}"
        )
    per_pod = metric.type not in PODLESS_METRICS
    latency = _latency(signal, workload) if signal.source is SignalSource.LATENCY else None
    slope = signal.factor * _MILLI
    return Meter(
        metric=metric,
        source=signal.source,
        per_pod=per_pod,
        idle=0.0,
        slope=slope,
        in_work=_service_time(workload) if signal.source is SignalSource.BACKLOG else 0.0,
        latency=latency,
        timed=None if signal.schedule is None else Scheduled(signal.schedule, clock),
    )


def _predicted(metric: Metric, forecast: Timed) -> Meter:
    return Meter(metric=metric, source=SignalSource.SCHEDULE, per_pod=False, idle=0.0, slope=_MILLI, timed=forecast)


def _latency(signal: Signal, workload: Workload) -> LatencyModel:
    service_time = _service_time(workload)
    return LatencyModel(pod_capacity=workload.capacity, service_time=service_time, percentile=signal.percentile)


def _service_time(workload: Workload) -> float:
    return workload.service_time.total_seconds() if workload.service_time else 1 / workload.capacity
