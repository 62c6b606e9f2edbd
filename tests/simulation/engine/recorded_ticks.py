"""Recorded ticks of the real HPA controller, as inputs of the simulated one."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ocf.autoscaling.algorithm import (
    CalculatorInputs,
    Metric,
    Pod,
    Sample,
    Scale,
    Settings,
    Snapshot,
    Unavailable,
    from_total_per_pod,
    group_pods,
)
from ocf.autoscaling.algorithm.decide import tolerances_of
from ocf.autoscaling.algorithm.pod_groups import count_ready_pods
from ocf.autoscaling.algorithm.pod_requests import pod_requests
from ocf.autoscaling.algorithm.replica_calculator import Tolerances, sum_series
from ocf.autoscaling.algorithm.snapshot import MetricValues
from ocf.schema.metric_sources import METRIC_SOURCES, RESOURCE_METRICS
from ocf.simulation.engine.clock import Clock, microseconds
from ocf.simulation.engine.meters import Meter
from ocf.simulation.engine.pipeline import Pipeline
from ocf.simulation.engine.pods import Pods
from ocf.simulation.engine.queue import FluidQueue
from ocf.simulation.engine.scrapes import Scrape
from ocf.simulation.engine.simulated_pods import SimulatedPod
from ocf.simulation.scenario.controller import MetricsPipeline
from ocf.simulation.scenario.workload import SignalSource, Workload

__all__ = ["RecordedPipeline", "Stage", "UnlikeError", "stage_of"]

_ANY_WINDOW = timedelta(seconds=30)
_ANY_TIME = datetime(2026, 1, 1, tzinfo=UTC)


class UnlikeError(Exception):
    """Raised where a recorded tick has something that a simulated workload never has."""


class Stage(NamedTuple):
    """A workload and its metrics at one tick.

    Args:
        meters: The meters of the metrics.
        window: The window of the samples.
        settled: The pods that are alike.
        unsettled: The other pods.
        terminating: The pods that do not count.
        ready: Number of pods that are running and ready.
        scrape: The samples.
        outage: Whether no metric has a value.
    """

    meters: tuple[Meter, ...]
    window: timedelta
    settled: Sequence[Pod]
    unsettled: Sequence[Pod]
    terminating: Sequence[Pod]
    ready: int
    scrape: Scrape
    outage: bool


def stage_of(seen: Snapshot, settings: Settings, clock: Clock, now: datetime) -> Stage:
    """Return a recorded snapshot as the simulation has it.

    Args:
        seen: The snapshot.
        settings: The controller's settings.
        clock: The clock.
        now: Time of the tick.

    Raises:
        UnlikeError: If a simulated workload is never like that.
    """
    scale, metrics = seen.scale, seen.autoscaler.metrics
    if isinstance(scale, Unavailable):
        raise UnlikeError("no Scale")
    if not scale.selector or seen.others:
        raise UnlikeError("a selector of pods that another HPA has, or an empty one")
    failed = [isinstance(values, Unavailable) for values in seen.metric_values]
    outage = bool(failed) and all(failed)
    if any(failed) and not outage:
        raise UnlikeError("a metric that fails while another one has a value")
    counted = [pod for pod in seen.pods if not pod.deleted and pod.phase != "Failed"]
    gone = [replace(pod, deleted=False) for pod in seen.pods if pod not in counted]
    meters = tuple(_meter(metric, seen.pods, settings) for metric in metrics)
    # Where the controller is disabled, it reads no metrics.
    totals = [_total(values) for values in seen.metric_values] or [0] * len(meters)
    for meter, total in zip(meters, totals, strict=True):
        if not meter.per_pod and meter.metric.target.average is not None:
            counted = _as_many_as_wanted(counted, scale, meters)
            _check_observed(scale, total, meter.metric.target.average, tolerances_of(seen.autoscaler, settings))
    samples = {} if outage else _samples(seen, counted)
    at, window = _timing(samples.values(), now)
    apart = {
        name: tuple(each.value if each else total for each, total in zip(found, totals, strict=True))
        for name, found in samples.items()
    }
    alike, example = _alike(counted, samples, meters, settings, now)
    return Stage(
        meters=meters,
        window=window,
        settled=alike,
        unsettled=[pod for pod in counted if pod not in alike],
        terminating=gone,
        ready=count_ready_pods(seen.pods),
        scrape=Scrape(
            microseconds(at - clock.at(0)),
            apart.get(example, tuple(totals)),
            apart,
            frozenset(pod.name for pod in alike if pod.name not in samples),
        ),
        outage=outage,
    )


def _as_many_as_wanted(pods: list[Pod], scale: Scale, meters: Sequence[Meter]) -> list[Pod]:
    """Return as many pods as the Scale wants, which a simulated workload always has."""
    if len(pods) == scale.replicas:
        return pods
    if any(each.per_pod for each in meters):
        raise UnlikeError("a total per replica, metrics of pods, and other pods than replicas")
    return [Pod(name=f"pod-{number}") for number in range(scale.replicas)]


def _check_observed(scale: Scale, total: int, target: int, tolerances: Tolerances) -> None:
    """Check that other observed replicas than wanted ones make no difference; a simulated workload never has them."""

    def proposed(observed: int) -> int:
        inputs = CalculatorInputs(scale.replicas, observed, (), tolerances, Settings(), _ANY_TIME)
        return from_total_per_pod(inputs, total, target).replicas

    if proposed(scale.observed) != proposed(scale.replicas):
        raise UnlikeError("a total per replica, where observed replicas decide that are not those that are wanted")


def _meter(metric: Metric, pods: Sequence[Pod], settings: Settings) -> Meter:
    resource = metric.type in RESOURCE_METRICS
    request = None
    if resource and metric.target.utilization is not None:
        found = pod_requests(pods, metric.name, metric.container, pod_level=settings.features.pod_level_resources)
        amounts = set() if isinstance(found, Unavailable) else set(found.values())
        if len(amounts) > 1:
            raise UnlikeError("pods with different requests")
        request = amounts.pop() if amounts else None
    kind = METRIC_SOURCES.get(metric.type)
    return Meter(
        metric=metric,
        source=None if resource else SignalSource.LOAD,
        per_pod=kind is None or kind.per_pod,
        idle=0.0,
        slope=0.0,
        request=request,
    )


def _total(values: MetricValues) -> int:
    """Return the sum of the series of a metric; 0 for a metric of pods."""
    return 0 if isinstance(values, Unavailable | Mapping) else sum_series(values, per_pod=False)


def _samples(seen: Snapshot, pods: Sequence[Pod]) -> dict[str, list[Sample | None]]:
    """Return the samples of each pod, one for each metric; None for a metric without pods."""
    per_metric = [values for values in seen.metric_values if isinstance(values, Mapping)]
    known = {pod.name for pod in seen.pods}
    if any(not known.issuperset(values) for values in per_metric):
        raise UnlikeError("a sample of a pod that does not exist")
    if any(each.value < 0 for values in per_metric for each in values.values()):
        raise UnlikeError("a sample below zero")
    names = {name for values in per_metric for name in values} & {pod.name for pod in pods}
    if any(not names <= values.keys() for values in per_metric):
        raise UnlikeError("a pod with a sample of one metric only")
    return {
        name: [values[name] if isinstance(values, Mapping) else None for values in seen.metric_values]
        for name in sorted(names)
    }


def _timing(samples: Iterable[Sequence[Sample | None]], now: datetime) -> tuple[datetime, timedelta]:
    """Return time and window of all samples."""
    timings = {(each.at, each.window) for found in samples for each in found if each is not None}
    if len(timings) > 1:
        raise UnlikeError("samples of different times")
    return timings.pop() if timings else (now, _ANY_WINDOW)


def _alike(
    pods: Sequence[Pod],
    samples: Mapping[str, Sequence[Sample | None]],
    meters: Sequence[Meter],
    settings: Settings,
    now: datetime,
) -> tuple[list[Pod], str]:
    """Return the ready pods with the same samples that are most, with those whose samples are missing.

    The second item is the name of a pod with these samples.
    """

    def is_ready(pod: Pod) -> bool:
        found = samples[pod.name]
        return all(
            each is None
            or group_pods([pod], {pod.name: each}, resource=meter.resource, settings=settings, now=now).ready
            for meter, each in zip(meters, found, strict=True)
        )

    ready = [pod for pod in pods if pod.name in samples and is_ready(pod)]
    if not ready:
        return [], ""
    values = Counter(tuple(samples[pod.name]) for pod in ready).most_common(1)[0][0]
    alike = [pod for pod in ready if tuple(samples[pod.name]) == values]
    missing = [pod for pod in pods if pod.name not in samples and pod.phase != "Pending"]
    return [*alike, *missing], alike[0].name


class _RecordedPods(Pods):
    """The pods of a tick."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(Workload(capacity=1), 0, name="recorded", container="app", clock=clock, seed=0)
        self._of_now = clock
        self._ready = 0

    def show(self, stage: Stage) -> None:
        self.settled, self.unsettled = self._simulated(stage.settled), self._simulated(stage.unsettled)
        self.terminating = {pod.name: pod for pod in self._simulated(stage.terminating)}
        self._ready = stage.ready
        self.count = len(self.settled) + len(self.unsettled)

    def ready_to_count(self) -> int:
        return self._ready

    def _simulated(self, pods: Sequence[Pod]) -> list[SimulatedPod]:
        return [SimulatedPod(pod, self._of_now, created=0, started=0, ready=0, uid=0.0) for pod in pods]


class RecordedPipeline(Pipeline):
    """A metrics pipeline that shows what was recorded.

    Args:
        stage: The first tick.
        clock: The clock.
    """

    def __init__(self, stage: Stage, clock: Clock) -> None:
        self._recorded = _RecordedPods(clock)
        settings = MetricsPipeline(window=stage.window)
        super().__init__(settings, stage.meters, pods=self._recorded, queue=FluidQueue(None), clock=clock, seed=0)
        self._outage = False

    def fits(self, stage: Stage) -> bool:
        """Return whether a tick has the same metrics."""
        return (self.meters, self.window) == (stage.meters, stage.window)

    def show(self, stage: Stage) -> None:
        """Show a tick to the controller."""
        self._recorded.show(stage)
        self.scrape, self._outage = stage.scrape, stage.outage

    def is_down(self, now: int) -> bool:  # noqa: ARG002 (its name is that of the base class)
        """Return whether no metric has a value in the tick."""
        return self._outage
