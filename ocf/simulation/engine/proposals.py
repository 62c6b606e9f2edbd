"""Proposals of metrics from counts of alike pods.

The arithmetic is that of `ocf.autoscaling.algorithm`. Only the pods that are not settled are grouped one by one; the
settled ones are alike, so that their number is enough.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from ocf.autoscaling.algorithm import CalculatorInputs, Rule, Unavailable, from_total, from_total_per_pod, group_pods
from ocf.autoscaling.algorithm.arithmetic import INT64_MAX
from ocf.autoscaling.algorithm.decide import tolerances_of
from ocf.autoscaling.algorithm.pod_groups import PodGroups
from ocf.autoscaling.algorithm.replica_calculator import Calculation, average_of_totals, utilization_of_totals
from ocf.schema.metric_sources import RESOURCE_METRICS
from ocf.simulation.engine.meters import Meter
from ocf.simulation.engine.moments import Subject
from ocf.simulation.engine.pipeline import Pipeline

__all__ = ["Proposal", "Proposals", "Propose"]

_ANY_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)
_FULL: Final = 100
# A limit of the memory, see `ocf.simulation.engine.outcomes`.
_REMEMBERED: Final = 1 << 16

Proposal = tuple[int, float, Rule, int]
"""The proposal of a metric: replicas, ratio, rule, and the position of the metric in the spec."""
Propose = Callable[[int, int], Proposal | None]
"""A function of `spec.replicas` and the time of the sync, in microseconds; None if the sync needs a snapshot."""
_Calculate = Callable[[int, PodGroups, int, int], Calculation | Unavailable]


class Proposals:
    """The proposals of the metrics of an HPA.

    Attributes:
        choose: The function that chooses between the proposals of all metrics for `spec.replicas`, which is not 0. It
            returns None if a metric fails or has no common value for alike pods.
    """

    __slots__ = ("_clock", "_first", "_inputs", "_meters", "_pipeline", "_settings", "_tolerances", "choose")

    def __init__(self, subject: Subject, pipeline: Pipeline) -> None:
        self._settings = subject.settings
        self._meters, self._first = subject.meters, subject.first
        self._pipeline = pipeline
        self._clock = subject.clock
        self._tolerances = tolerances_of(subject.autoscaler, subject.settings)
        self._inputs: dict[tuple[int, int], CalculatorInputs] = {}
        self.choose: Propose = self._chooser()

    def _chooser(self) -> Propose:
        metrics = tuple(self._metric(position, meter) for position, meter in enumerate(self._meters))
        if len(metrics) == 1:
            return metrics[0]

        def choose(current: int, now: int) -> Proposal | None:
            best = None
            for propose in metrics:
                found = propose(current, now)
                if found is None:
                    return None
                # The first of equal proposals counts, but any other than 0 counts before 0, as in `choose_proposal`.
                if best is None or best[0] == 0 or found[0] > best[0]:
                    best = found
            return best

        return choose

    def _metric(self, position: int, meter: Meter) -> Propose:
        metric, target = meter.metric, meter.metric.target
        if metric.selector_error:
            return _impossible
        if metric.type in RESOURCE_METRICS and target.average is None:
            if target.utilization is None or not meter.request:
                return _impossible
            return self._by_utilization(position, meter, target.utilization, meter.request)
        if meter.per_pod:
            return _impossible if target.average is None else self._by_average(position, meter, target.average)
        per_replica = target.average is not None and (metric.type != "Object" or target.type == "AverageValue")
        if per_replica:
            return self._by_replica(position, target.average or 0)
        return _impossible if target.value is None else self._by_total(position, target.value)

    def _by_utilization(self, position: int, meter: Meter, target: int, request: int) -> Propose:
        def calculate(current: int, groups: PodGroups, usage: int, samples: int) -> Calculation | Unavailable:
            return utilization_of_totals(
                self._shared(current),
                groups,
                target,
                usage=usage,
                requested=request * samples,
                samples=samples,
                requests=dict.fromkeys((*groups.missing, *groups.unready), request),
            )

        # If no pod is to be filled in, the share in whole percents decides, which many usages have in common.
        return self._per_pod(position, meter, calculate, lambda value: value * _FULL // request, request)

    def _by_average(self, position: int, meter: Meter, target: int) -> Propose:
        def calculate(current: int, groups: PodGroups, usage: int, samples: int) -> Calculation:
            return average_of_totals(self._shared(current), groups, usage, samples, target)

        return self._per_pod(position, meter, calculate, lambda value: value, 0)

    def _per_pod(
        self, position: int, meter: Meter, calculate: _Calculate, decisive: Callable[[int], int], request: int
    ) -> Propose:
        remembered: dict[tuple[int, int, int, int], Proposal] = {}
        pipeline, pods, resource, at = self._pipeline, self._pipeline.pods, meter.resource, self._first + position

        def propose(current: int, now: int) -> Proposal | None:
            scrape = pipeline.scrape
            value = scrape.values[at]
            lost = pipeline.lost() if scrape.lost else []
            measured = len(pods.settled) - len(lost)
            key = None
            if not pods.unsettled:
                key = (value if lost else decisive(value), measured, len(lost), current)
                known = remembered.get(key)
                if known is not None:
                    return known
            # Neither sum may reach the end of an integer, where the controller stops adding.
            if max(value, request) * (measured + len(pods.unsettled) + 1) > INT64_MAX:
                return None
            groups, usage, samples = self._grouped(at, resource, lost, now)
            if not samples:
                return None
            result = calculate(current, groups, usage, samples)
            if isinstance(result, Unavailable):
                return None
            found = (result.replicas, result.ratio, result.rule, position)
            if key is not None:
                if len(remembered) >= _REMEMBERED:
                    remembered.clear()
                remembered[key] = found
            return found

        return propose

    def _grouped(self, at: int, resource: str, lost: list[str], now: int) -> tuple[PodGroups, int, int]:
        """Return the pods by group, and the sum and the number of the samples that count."""
        pipeline, pods = self._pipeline, self._pipeline.pods
        count = len(pods.settled) - len(lost)
        usage = pipeline.scrape.values[at] * count
        if not pods.unsettled:
            return PodGroups(count, (), tuple(lost), ()), usage, count
        samples = pipeline.samples(at)
        seen = [pod.seen for pod in pods.unsettled]
        groups = group_pods(seen, samples, resource=resource, settings=self._settings, now=self._clock.at(now))
        kept = [sample.value for name, sample in samples.items() if name not in groups.unready]
        groups = groups._replace(ready=groups.ready + count, missing=(*lost, *groups.missing))
        return groups, usage + sum(kept), count + len(kept)

    def _by_total(self, position: int, target: int) -> Propose:
        pipeline, at = self._pipeline, self._first + position

        def propose(current: int, _now: int) -> Proposal | None:
            value = pipeline.scrape.values[at]
            result = from_total(self._shared(current), value, target, ready=pipeline.pods.ready_to_count())
            return None if isinstance(result, Unavailable) else (result.replicas, result.ratio, result.rule, position)

        return propose

    def _by_replica(self, position: int, target: int) -> Propose:
        pipeline, at = self._pipeline, self._first + position

        def propose(current: int, _now: int) -> Proposal | None:
            # In a rollout the observed replicas are not those that are wanted.
            inputs = self._shared(current, pipeline.pods.count)
            result = from_total_per_pod(inputs, pipeline.scrape.values[at], target)
            return result.replicas, result.ratio, result.rule, position

        return propose

    def _shared(self, current: int, observed: int = 0) -> CalculatorInputs:
        """Return the inputs that all metrics share; neither pods nor time are used with them.

        Args:
            observed: Number of pods that are not being deleted, for a total per replica.
        """
        found = self._inputs.get((current, observed))
        if found is None:
            found = self._inputs[current, observed] = CalculatorInputs(
                current=current,
                observed=observed,
                pods=(),
                tolerances=self._tolerances,
                settings=self._settings,
                now=_ANY_TIME,
            )
        return found


def _impossible(_current: int, _now: int) -> None:
    """Leave the metric to a full sync: it fails."""
