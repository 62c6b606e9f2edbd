"""A scenario that replays a recording: the HPA, replicas and pods at its start, and the load that was measured."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil
from pathlib import Path
from typing import Final

from ocf.autoscaling.algorithm import Autoscaler, Metric, Pod
from ocf.autoscaling.targets.pod_resources import read_pods
from ocf.objects import Manifest, ObjectKey
from ocf.objects.paths import get_field
from ocf.objects.timestamps import parse_time
from ocf.schema.metric_sources import RESOURCE_METRICS
from ocf.simulation.input_errors import InputError, InputProblem
from ocf.simulation.load.files import RecordingLoad
from ocf.simulation.recording.format import State, read_states
from ocf.simulation.recording.metric_totals import autoscaler_of, metric_total
from ocf.simulation.scenario.controller import MetricsPipeline, Outage
from ocf.simulation.scenario.scenario import HpaEdit, Scenario
from ocf.simulation.scenario.workload import Delay, Signal, Usage, Workload

__all__ = ["recorded_scenario", "replicas_of"]

_HPA: Final = "HorizontalPodAutoscaler"


@dataclass(slots=True)
class _Seen:
    """What one pass over a recording finds."""

    file: Path
    hpa: Manifest | None = None
    autoscaler: Autoscaler | None = None
    edits: list[tuple[datetime, Manifest, bool]] = field(default_factory=list)
    """Time and `spec` of each edit of the HPA, and whether it was created anew."""
    created: str | None = None
    """When the HPA was created; None where that was not recorded."""
    metrics: list[Metric] = field(default_factory=list)
    """The metrics of the HPA at the start, and then those that edits add."""
    replicas: int | None = None
    start: datetime | None = None
    end: datetime | None = None
    requests: dict[str, int] = field(default_factory=dict)
    totals: dict[int, float] = field(default_factory=dict)
    """Sum over time of the totals, by position of the metric."""
    both: dict[int, float] = field(default_factory=dict)
    """Sum of the totals of the first metric at the instants at which the metric was measured, too."""
    highest: float = 0.0
    """The highest mean use of a pod, of the first metric if that is one of resources."""
    outages: list[Outage] = field(default_factory=list)
    """The times in which no metric could be read."""
    down: datetime | None = None
    """Since when no metric has a value; None if one has."""
    is_noticed: bool = False
    """Whether the controller may have noticed that."""
    pods: dict[str, tuple[datetime, datetime | None, datetime | None]] = field(default_factory=dict)
    """Creation, start and readiness, by name."""

    def add(self, state: State) -> None:
        """Add a state."""
        if self.start is None:
            self.start = state.at
            self._begin(state)
        self.end = state.at
        self._add_edit(state)
        for pod in state.of("Pod"):
            self._add_pod(pod)
        totals = [metric_total(state, metric) for metric in self.metrics]
        first = totals[0] if totals else None
        for position, total in enumerate(totals):
            if total is not None and first is not None:
                self.totals[position] = self.totals.get(position, 0.0) + total
                self.both[position] = self.both.get(position, 0.0) + first
        if first is not None:
            used = len(state.of("PodMetrics"))
            self.highest = max(self.highest, first / used if used else 0.0)
        self._add_outage(state, totals)

    def _add_outage(self, state: State, totals: Sequence[float | None]) -> None:
        """Note since when no metric can be read; without replicas, the controller reads none."""
        is_down = all(total is None for total in totals) and replicas_of(state) > 0
        if self.down is None and not is_down:
            return
        self.down = self.down or state.at
        # The series of Prometheus may lack values that the controller had. It writes its status after its reads.
        self.is_noticed |= _scaling_active(state) != "True"
        if not is_down:
            self.end_outage(state.at)

    def end_outage(self, at: datetime) -> None:
        """End the time without a value of any metric, if there is one."""
        if self.down is not None and self.is_noticed and at > self.down:
            self.outages.append(Outage(at=self.down - (self.start or at), duration=at - self.down))
        self.down, self.is_noticed = None, False

    def _add_edit(self, state: State) -> None:
        found = state.of(_HPA)
        known = self.edits[-1][1] if self.edits else (self.hpa or {}).get("spec")
        if not found:
            return
        before, self.created = self.created, _created(found[0])
        is_new = before != self.created
        if not is_new and found[0].get("spec") == known:
            return
        self.edits.append((state.at, found[0]["spec"], is_new))
        autoscaler = Autoscaler.of(found[0])
        identities = [_identity(each) for each in self.metrics]
        self.metrics += [each for each in autoscaler.metrics if _identity(each) not in identities]

    def _begin(self, state: State) -> None:
        self.autoscaler = autoscaler_of(state)
        self.metrics += () if self.autoscaler is None else self.autoscaler.metrics
        if self.autoscaler is None:
            raise InputError([InputProblem(str(self.file), f"the first change must hold the {_HPA}", state.line)])
        (self.hpa,) = state.of(_HPA)[:1]
        self.created = _created(self.hpa)
        if state.of("Scale"):
            self.replicas = replicas_of(state)

    def _add_pod(self, manifest: Manifest) -> None:
        created = (manifest.get("metadata") or {}).get("creationTimestamp")
        if created is None:
            return
        pod = Pod.of(manifest)
        ready = pod.ready.since if pod.ready is not None and pod.ready.status == "True" else None
        known = self.pods.get(pod.name)
        # The first time that it was ready: later changes of the condition are about its health.
        ready = known[2] if known is not None and known[2] is not None else ready
        self.pods[pod.name] = parse_time(created), pod.started, ready
        if not self.requests:
            resources = read_pods(manifest)
            found = ((name, resources.requested(name)) for name in ("cpu", "memory"))
            self.requests = {name: requested for name, requested in found if requested}


def recorded_scenario(path: str | Path) -> Scenario:
    """Return a scenario that replays a recording.

    The load is the total of the first metric of the HPA, in the unit of the metric: one core or byte of a resource,
    or one unit of another metric. A pod is at its capacity where it uses its request, or the most that pods have used
    if that is more; or where it has the target value. While no metric could be read, the replay has an outage.
    Other metrics follow the load, at their mean ratio to it. Delays of pods are those that were recorded.

    A load is only known as far as it was served: in an overload that was recorded, demand may have been higher.

    Args:
        path: The recording.

    Returns:
        The scenario. Its `hpa` is that of the start, and its `hpa_edits` are those that were recorded.

    Raises:
        InputError: If the file is not a recording, or nothing can be replayed of it.
    """
    file = Path(path)
    seen = _Seen(file)
    for state in read_states(file):
        seen.add(state)
    autoscaler, hpa = seen.autoscaler, seen.hpa
    if autoscaler is None or hpa is None or seen.start is None or seen.end is None or 0 not in seen.totals:
        raise InputError([InputProblem(str(file), "the first metric of the HPA was never measured: nothing to replay")])
    seen.end_outage(seen.end)
    if seen.end == seen.start:
        raise InputError([InputProblem(str(file), "there is only one instant: a replay needs at least two")])
    capacity = _capacity(autoscaler.metrics[0], seen)
    return Scenario(
        name=ObjectKey.of(hpa).name,
        hpa={name: part for name, part in hpa.items() if name != "status"},
        workload=Workload.model_validate(
            {
                "capacity": capacity,
                "replicas": seen.replicas,
                "startup": _delay((created, started) for created, started, _ in seen.pods.values()),
                "readiness": _delay((started, ready) for _, started, ready in seen.pods.values()),
            }
        ).model_copy(
            update={
                # Not validated, which would read these numbers, in thousandths, as quantities.
                "requests": seen.requests,
                "usage": _usage(seen, capacity),
                "signals": dict(_signals(seen)),
            }
        ),
        metrics=MetricsPipeline(outages=tuple(seen.outages)),
        hpa_edits=tuple(HpaEdit(at=at - seen.start, spec=spec, recreated=is_new) for at, spec, is_new in seen.edits),
        load=(RecordingLoad(type="Recording", path=file.name),),
        start=seen.start,
        duration=seen.end - seen.start,
    )


def replicas_of(state: State) -> int:
    """Return the replicas of the target; 0 without a Scale."""
    return next((int((scale.get("spec") or {}).get("replicas") or 0) for scale in state.of("Scale")), 0)


def _scaling_active(state: State) -> str | None:
    """Return the status of the condition ScalingActive of the HPA; None without it."""
    conditions = (get_field(each, ("status", "conditions")) or () for each in state.of(_HPA))
    found = (each.get("status") for several in conditions for each in several if each.get("type") == "ScalingActive")
    return next(found, None)


def _created(manifest: Manifest) -> str | None:
    created = get_field(manifest, ("metadata", "creationTimestamp"))
    return created if isinstance(created, str) else None


def _identity(metric: Metric) -> tuple[object, ...]:
    """Return what a metric measures, without its target."""
    return metric.type, metric.name, metric.container, metric.selector


def _capacity(metric: Metric, seen: _Seen) -> float:
    """Return the load that one pod serves: its request, or the target value of the metric for one pod.

    Pods that were seen to use more than their request serve more: at their request they were not at their capacity.
    """
    if metric.type in RESOURCE_METRICS and seen.requests.get(metric.name):
        # A little more, so that the load which was served does not wait because of the last digit of a sum.
        return max(seen.requests[metric.name], ceil(seen.highest * 1010)) / 1000
    target = metric.target.average or metric.target.value
    if not target:
        detail = f"no pod has a request for {metric.name}, and its target is a utilization: nothing to replay"
        raise InputError([InputProblem(str(seen.file), detail)])
    return target / 1000


def _usage(seen: _Seen, capacity: float) -> Mapping[str, Usage]:
    """Return the use of resources at full capacity: by the first metric itself, or at the mean ratio to it."""
    found: dict[str, Usage] = {}
    for position, metric in enumerate(seen.metrics):
        if metric.type in RESOURCE_METRICS and seen.both.get(position):
            busy = round(1000 * capacity * seen.totals[position] / seen.both[position])
            # Written as in a file, where a number is a quantity.
            found.setdefault(metric.name, Usage.model_validate({"busy": f"{busy}m"}))
    return found


def _signals(seen: _Seen) -> Iterator[tuple[str, Signal]]:
    for position, metric in enumerate(seen.metrics):
        if metric.type not in RESOURCE_METRICS:
            # A metric that was always 0 has no ratio; a factor is more than 0.
            factor = seen.totals.get(position, 0.0) / (seen.both.get(position) or 1.0)
            yield metric.name, Signal(factor=round(factor, 9) or 1.0)


def _delay(pairs: Iterator[tuple[datetime | None, datetime | None]]) -> Delay:
    """Return mean and spread of the times between pairs of instants; none if no pair is known."""
    lengths = [max(after - before, timedelta()) for before, after in pairs if before is not None and after is not None]
    if not lengths:
        return Delay(mean=timedelta())
    mean = sum(lengths, timedelta()) / len(lengths)
    return Delay(mean=mean, spread=max(abs(length - mean) for length in lengths))
