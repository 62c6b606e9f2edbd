"""How many replicas one metric asks for.

One function per kind of target. Each returns its proposal together with every number that led to it, or why there is
none. Metrics by pod are computed twice if pods are missing or not ready: once with the samples that are there, and
once with the gaps filled in against the direction of the first result, so that a gap can only make a change smaller.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from ocf.autoscaling.algorithm.arithmetic import (
    INT32_MAX,
    INT64_MAX,
    ceil32,
    ceil64,
    divide,
    ratio,
    wrap32,
    wrap64,
)
from ocf.autoscaling.algorithm.pod_groups import PodGroups, count_ready_pods, group_pods
from ocf.autoscaling.algorithm.pod_requests import pod_requests
from ocf.autoscaling.algorithm.rules import Rule
from ocf.autoscaling.algorithm.settings import Settings
from ocf.autoscaling.algorithm.snapshot import Pod, Sample, Unavailable

__all__ = [
    "Calculation",
    "CalculatorInputs",
    "Tolerances",
    "from_average",
    "from_total",
    "from_total_per_pod",
    "from_utilization",
    "sum_series",
]

_NO_PODS = Unavailable("no pods returned by selector while calculating replica count")
_NO_SAMPLES = Unavailable("did not receive metrics for targeted pods (pods might be unready)")
_NO_REQUESTS = Unavailable("no metrics returned matched known pods")
_FULL = 100
_INT64_END = 2.0**63


class Tolerances(NamedTuple):
    """By how much a ratio may differ from 1 without consequence.

    Args:
        down: How far below.
        up: How far above.

    Example:
        >>> print(Tolerances(0.1, 0.05), 1.05 in Tolerances(0.1, 0.05))
        [down:10.0%, up:5.0%] True
    """

    down: float
    up: float

    def __contains__(self, value: object) -> bool:
        """Tell whether a ratio is close enough to 1; both ends are."""
        return isinstance(value, float) and 1.0 - self.down <= value <= 1.0 + self.up

    def __str__(self) -> str:
        return f"[down:{self.down * 100.0:.1f}%, up:{self.up * 100.0:.1f}%]"


class CalculatorInputs(NamedTuple):
    """What all metrics of a round share.

    Args:
        current: `spec.replicas` of the scale.
        observed: `status.replicas` of the scale.
        pods: The pods of the workload.
        tolerances: What difference has no consequence.
        settings: The controller's settings.
        now: The instant of the round.
    """

    current: int
    observed: int
    pods: Sequence[Pod]
    tolerances: Tolerances
    settings: Settings
    now: datetime


class Calculation(NamedTuple):
    """A proposal, and how it came about; amounts are thousandths.

    Args:
        replicas: The proposal.
        rule: The rule that led to it.
        ratio: What was measured, divided by the target.
        measured: What the status reports: an average, or a total.
        utilization: Percent of the requests, for a target of that kind.
        groups: The pods by group, for metrics by pod.
        usage: The sum of the samples that counted.
        requests: The sum of the requests that it is compared with.
        filled: The ratio after filling in; None if nothing was.
        counted: How many samples the proposal is for, after filling in.
        ready: How many pods run and are ready, where that was asked.
    """

    replicas: int
    rule: Rule
    ratio: float
    measured: int
    utilization: int | None = None
    groups: PodGroups | None = None
    usage: int | None = None
    requests: int | None = None
    filled: float | None = None
    counted: int | None = None
    ready: int | None = None


def from_utilization(
    count: CalculatorInputs, samples: Mapping[str, Sample], target: int, *, resource: str, container: str = ""
) -> Calculation | Unavailable:
    """Compute the replicas for a percentage of what the pods request.

    The utilization is a whole number of percent before it is compared with anything.

    Args:
        count: What all metrics share.
        samples: What was measured, by the name of a pod.
        target: Percent.
        resource: Name of the resource.
        container: Only this container; empty for whole pods.
    """
    sorted_out = _group_samples(count, samples, resource)
    if isinstance(sorted_out, Unavailable):
        return sorted_out
    groups, kept = sorted_out
    whole = count.settings.features.pod_level_resources
    requests = pod_requests(count.pods, resource, container, pod_level=whole)
    if isinstance(requests, Unavailable):
        return requests
    usage, total, known = _totals(kept, requests)
    if not total:
        return _NO_REQUESTS
    utilization = _percent(usage, total)
    first = ratio(utilization, target)
    average = divide(usage, known)
    plain = Calculation(0, Rule.READY_PODS, first, average, utilization, groups, usage, total)
    if not _has_gaps(groups, first):
        return _of_ready_pods(count, plain)
    if first < 1.0:
        share = max(_FULL, target)
        usage = wrap64(usage + sum(divide(wrap64(requests[name] * share), _FULL) for name in groups.missing))
    added = _pods_to_fill_in(groups, first)
    total = wrap64(total + sum(requests[name] for name in added))
    if not total:
        return _NO_REQUESTS
    return _of_filled(count, plain, ratio(_percent(usage, total), target), len(kept) + len(added))


def from_average(
    count: CalculatorInputs, samples: Mapping[str, Sample], target: int, *, resource: str = ""
) -> Calculation | Unavailable:
    """Compute the replicas for an average per pod.

    The average is a whole number of thousandths before it is compared with anything. Readiness counts for cpu only.

    Args:
        count: What all metrics share.
        samples: What was measured, by the name of a pod.
        target: Thousandths per pod.
        resource: Name of the resource; empty for metrics that are none.
    """
    sorted_out = _group_samples(count, samples, resource)
    if isinstance(sorted_out, Unavailable):
        return sorted_out
    groups, kept = sorted_out
    usage = wrap64(sum(sample.value for sample in kept.values()))
    average = divide(usage, len(kept))
    first = ratio(average, target)
    plain = Calculation(0, Rule.READY_PODS, first, average, groups=groups, usage=usage)
    if not _has_gaps(groups, first):
        return _of_ready_pods(count, plain)
    if first < 1.0:
        usage = wrap64(usage + target * len(groups.missing))
    counted = len(kept) + len(_pods_to_fill_in(groups, first))
    return _of_filled(count, plain, ratio(divide(usage, counted), target), counted)


def from_total(count: CalculatorInputs, total: int, target: int) -> Calculation | Unavailable:
    """Compute the replicas for a number that the whole workload is measured by.

    Pods on their way out count here, as long as they are ready. From zero, tolerance does not count.

    Args:
        count: What all metrics share.
        total: What was measured, thousandths.
        target: Thousandths altogether.
    """
    first = ratio(total, target)
    if count.current == 0:
        return Calculation(ceil32(first), Rule.FROM_ZERO, first, total)
    if first in count.tolerances:
        return Calculation(count.current, Rule.WITHIN_TOLERANCE, first, total)
    if not count.pods:
        return Unavailable(f"unable to calculate ready pods: {_NO_PODS.message}")
    ready = count_ready_pods(count.pods)
    wanted = first * ready
    replicas = INT32_MAX if wanted > INT32_MAX else ceil32(wanted)
    return Calculation(replicas, Rule.READY_PODS, first, total, ready=ready)


def from_total_per_pod(count: CalculatorInputs, total: int, target: int, *, external: bool) -> Calculation:
    """Compute the replicas for a number that is divided among the replicas that there are.

    No pod is looked at. What is reported is the number per replica; it is senseless where there is none.

    Args:
        count: What all metrics share.
        total: What was measured, thousandths.
        target: Thousandths per replica.
        external: Whether it is an external metric: only of those, what is too large ends at the largest number.
    """
    first = ratio(total, float(target) * float(count.observed))
    replicas, rule = count.observed, Rule.WITHIN_TOLERANCE
    if first not in count.tolerances:
        wanted, rule = ratio(total, target), Rule.TOTAL
        replicas = INT32_MAX if external and wanted > INT32_MAX else ceil32(wanted)
    if external and float(total) >= _INT64_END:
        return Calculation(replicas, rule, first, INT64_MAX)
    return Calculation(replicas, rule, first, ceil64(ratio(total, count.observed)))


def sum_series(values: Sequence[int], *, per_pod: bool) -> int:
    """Add up the series of an external metric; what is too large ends at the largest number.

    Args:
        values: Thousandths.
        per_pod: Whether the target is one per replica: then a sum below zero counts as too large.
    """
    total = 0
    for value in values:
        if not per_pod and value > 0 and total > INT64_MAX - value:
            return INT64_MAX
        total = wrap64(total + value)
        if per_pod and total < 0:
            return INT64_MAX
    return total


def _group_samples(
    count: CalculatorInputs, samples: Mapping[str, Sample], resource: str
) -> tuple[PodGroups, Mapping[str, Sample]] | Unavailable:
    if not count.pods:
        return _NO_PODS
    groups = group_pods(count.pods, samples, resource=resource, settings=count.settings, now=count.now)
    kept = _counted_samples(samples, groups)
    return (groups, kept) if kept else _NO_SAMPLES


def _counted_samples(samples: Mapping[str, Sample], groups: PodGroups) -> Mapping[str, Sample]:
    """Leave out the samples of pods that do not count; those of pods that nobody knows stay."""
    if not groups.unready and not groups.ignored:
        return samples
    dropped = {*groups.unready, *groups.ignored}
    return {name: sample for name, sample in samples.items() if name not in dropped}


def _totals(samples: Mapping[str, Sample], requests: Mapping[str, int]) -> tuple[int, int, int]:
    """Add up samples and requests of the pods that have both, and count them."""
    usage = total = known = 0
    for name, sample in samples.items():
        request = requests.get(name)
        if request is not None:
            usage += sample.value
            total += request
            known += 1
    return wrap64(usage), wrap64(total), known


def _pods_to_fill_in(groups: PodGroups, first: float) -> tuple[str, ...]:
    """Return the pods that count from now on although no sample of them does."""
    if first > 1.0:
        return (*groups.missing, *groups.unready)
    return groups.missing if first < 1.0 else ()


def _percent(usage: int, requests: int) -> int:
    return wrap32(divide(wrap64(usage * _FULL), requests))


def _has_gaps(groups: PodGroups, first: float) -> bool:
    return bool(groups.missing) or (bool(groups.unready) and first > 1.0)


def _of_ready_pods(count: CalculatorInputs, plain: Calculation) -> Calculation:
    if plain.ratio in count.tolerances:
        return Calculation(count.current, Rule.WITHIN_TOLERANCE, *plain[2:])
    groups = plain.groups
    ready = 0 if groups is None else groups.ready
    return Calculation(ceil32(plain.ratio * ready), Rule.READY_PODS, *plain[2:])


def _of_filled(count: CalculatorInputs, plain: Calculation, second: float, counted: int) -> Calculation:
    """Judge by the filled-in ratio, and stay where filling in turns the first result around."""
    first, replicas = plain.ratio, count.current
    if second in count.tolerances:
        rule = Rule.FILLED_WITHIN_TOLERANCE
    elif first < 1.0 < second or second < 1.0 < first:
        rule = Rule.FILLED_TURNED_RATIO
    else:
        wanted = ceil32(second * counted)
        turned = (second < 1.0 and wanted > replicas) or (second > 1.0 and wanted < replicas)
        rule = Rule.FILLED_TURNED_COUNT if turned else Rule.FILLED
        replicas = replicas if turned else wanted
    return plain._replace(replicas=replicas, rule=rule, filled=second, counted=counted)
