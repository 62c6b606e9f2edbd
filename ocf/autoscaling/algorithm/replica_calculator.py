"""Replica calculator: the number of replicas that one metric proposes.

There is one function per kind of target. Each returns its proposal with every number that led to it, or why there is no
proposal. A metric with one value per pod is computed twice if pods are missing or unready: first with the existing
samples, then with the gaps filled in against the direction of the first result. So a gap can only make a change
smaller.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from ocf.autoscaling.algorithm.arithmetic import (
    INT32_MAX,
    INT64_MAX,
    ceil64,
    divide,
    ratio,
    saturate64,
    saturating_ceil32,
)
from ocf.autoscaling.algorithm.pod import Pod
from ocf.autoscaling.algorithm.pod_groups import PodGroups, count_ready_pods, group_pods, measured_samples
from ocf.autoscaling.algorithm.pod_requests import pod_requests
from ocf.autoscaling.algorithm.rules import Rule
from ocf.autoscaling.algorithm.settings import Settings
from ocf.autoscaling.algorithm.snapshot import Sample, Unavailable

__all__ = [
    "Calculation",
    "CalculatorInputs",
    "Tolerances",
    "average_of_totals",
    "from_average",
    "from_total",
    "from_total_per_pod",
    "from_utilization",
    "sum_series",
    "utilization_of_totals",
]

_NO_PODS = Unavailable("no pods returned by selector while calculating replica count")
_NO_SAMPLES = Unavailable("did not receive metrics for targeted pods (pods might be unready)")
_NO_REQUESTS = Unavailable("no metrics returned matched known pods")
_FULL = 100
_INT64_END = 2.0**63


class Tolerances(NamedTuple):
    """Range around 1 in which a ratio does not change the number of replicas.

    Args:
        down: How far the ratio may be below 1.
        up: How far the ratio may be above 1.
        by_bounds: Whether a ratio is compared with both ends of the range; otherwise its distance from 1 is compared
            with `down`, as before Kubernetes 1.33.

    Example:
        >>> print(Tolerances(0.1, 0.05), 1.05 in Tolerances(0.1, 0.05))
        [down:10.0%, up:5.0%] True
    """

    down: float
    up: float
    by_bounds: bool = True

    def __contains__(self, value: object) -> bool:
        """Return whether a ratio is tolerated; both ends of the range are."""
        if not isinstance(value, float):
            return False
        if self.by_bounds:
            return 1.0 - self.down <= value <= 1.0 + self.up
        # Not the same at the ends: 1.0 - 0.9 is 0.09999999999999998 and tolerated by 0.1, as is 0.9 by the lower bound,
        # while abs(1.0 - 1.1) is 0.10000000000000009 and 1.1 only by the upper bound.
        return abs(1.0 - value) <= self.down

    def __str__(self) -> str:
        return f"[down:{self.down * 100.0:.1f}%, up:{self.up * 100.0:.1f}%]"


class CalculatorInputs(NamedTuple):
    """Inputs that all metrics of a sync share.

    Args:
        current: `spec.replicas` of the scale.
        observed: `status.replicas` of the scale.
        pods: The pods of the workload.
        tolerances: The tolerated ratios.
        settings: The controller's settings.
        now: Time of the sync.
    """

    current: int
    observed: int
    pods: Sequence[Pod]
    tolerances: Tolerances
    settings: Settings
    now: datetime


class Calculation(NamedTuple):
    """The proposal of a metric, with the numbers that led to it; amounts are thousandths.

    Args:
        replicas: The proposed number of replicas.
        rule: The rule that led to it.
        ratio: The measured value divided by the target.
        measured: The value for the status: an average or a total.
        utilization: Percent of the requests, for a utilization target.
        groups: The pods by group, for metrics with one value per pod.
        usage: Sum of the counted samples.
        requests: Sum of the requests that the usage is compared with.
        filled: The ratio after filling in; None if nothing was filled in.
        counted: Number of samples after filling in; None if nothing was filled in.
        ready: Number of pods that are running and ready, for targets that need it.
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
    inputs: CalculatorInputs, samples: Mapping[str, Sample], target: int, *, resource: str, container: str = ""
) -> Calculation | Unavailable:
    """Compute the replicas for a utilization: a percentage of the requests of the pods.

    The utilization is truncated to whole percents before it is compared with the target.

    Args:
        inputs: The inputs that all metrics share.
        samples: The samples by pod name.
        target: Percent.
        resource: Name of the resource.
        container: Name of the only container to count; empty for whole pods.
    """
    grouped = _group_samples(inputs, samples, resource)
    if isinstance(grouped, Unavailable):
        return grouped
    groups, kept, usage = grouped
    features = inputs.settings.features
    requests = pod_requests(
        inputs.pods,
        resource,
        container,
        pod_level=features.pod_level_resources,
        container_required=features.named_container_required,
    )
    if isinstance(requests, Unavailable):
        return requests
    # The requests of pods without a sample do not count: GetResourceUtilizationRatio skips these pods.
    if kept.keys() == requests.keys():  # as usual: every pod has a sample that counts
        requested = sum(requests.values())
    else:
        names = kept.keys() & requests.keys()
        usage, requested = sum(kept[name].value for name in names), sum(requests[name] for name in names)
    return utilization_of_totals(
        inputs,
        groups,
        target,
        usage=saturate64(usage),
        requested=saturate64(requested),
        samples=len(kept),
        requests=requests,
    )


def utilization_of_totals(
    inputs: CalculatorInputs,
    groups: PodGroups,
    target: int,
    *,
    usage: int,
    requested: int,
    samples: int,
    requests: Mapping[str, int],
) -> Calculation | Unavailable:
    """Compute the replicas for a utilization of pods that are grouped and added up already.

    Args:
        inputs: The inputs that all metrics share; the pods are not used.
        groups: The pods by group.
        target: Percent.
        usage: Sum of the samples of the ready pods, thousandths.
        requested: Sum of the requests of these pods, thousandths.
        samples: Number of counted samples, with those of unknown pods.
        requests: Thousandths by pod name; those of the missing and the unready pods are used.
    """
    # After grouping and requests, as in GetResourceReplicas: of several problems the first one is what users see.
    if not requested:
        return _NO_REQUESTS
    utilization = _percent(usage, requested)
    first = ratio(utilization, target)
    filled = counted = None
    if _has_gaps(groups, first):
        filled = _filled_utilization(groups, first, usage, requested, requests=requests, target=target)
        if filled is None:
            return _NO_REQUESTS
        counted = samples + len(_pods_to_fill_in(groups, first))
        replicas, rule = _propose_after_filling(inputs, first, filled, counted)
    else:
        replicas, rule = _propose(inputs, first, groups)
    measured = divide(usage, groups.ready)
    return Calculation(replicas, rule, first, measured, utilization, groups, usage, requested, filled, counted)


def from_average(
    inputs: CalculatorInputs, samples: Mapping[str, Sample], target: int, *, resource: str = ""
) -> Calculation | Unavailable:
    """Compute the replicas for an average value per pod.

    The average is truncated to whole thousandths before it is compared with the target. Readiness matters for cpu only.

    Args:
        inputs: The inputs that all metrics share.
        samples: The samples by pod name.
        target: Thousandths per pod.
        resource: Name of the resource; empty for a metric that is not a resource.
    """
    grouped = _group_samples(inputs, samples, resource)
    if isinstance(grouped, Unavailable):
        return grouped
    groups, kept, usage = grouped
    return average_of_totals(inputs, groups, saturate64(usage), len(kept), target)


def average_of_totals(
    inputs: CalculatorInputs, groups: PodGroups, usage: int, samples: int, target: int
) -> Calculation:
    """Compute the replicas for an average value of pods that are grouped and added up already.

    Args:
        inputs: The inputs that all metrics share; the pods are not used.
        groups: The pods by group.
        usage: Sum of the counted samples, thousandths.
        samples: Number of counted samples, at least 1.
        target: Thousandths per pod.
    """
    average = divide(usage, samples)
    first = ratio(average, target)
    filled = counted = None
    if _has_gaps(groups, first):
        # Exactly the target for each missing pod on the way down, and nothing on the way up: either way it only weakens
        # the change (calcPlainMetricReplicas).
        filled_usage = saturate64(usage + target * len(groups.missing)) if first < 1.0 else usage
        counted = samples + len(_pods_to_fill_in(groups, first))
        filled = ratio(divide(filled_usage, counted), target)
        replicas, rule = _propose_after_filling(inputs, first, filled, counted)
    else:
        replicas, rule = _propose(inputs, first, groups)
    return Calculation(replicas, rule, first, average, None, groups, usage, None, filled, counted)


def from_total(
    inputs: CalculatorInputs, total: int, target: int, *, ready: int | None = None
) -> Calculation | Unavailable:
    """Compute the replicas for a value of the whole workload.

    Pods that are being deleted count as long as they are ready. From zero replicas, the tolerance is ignored.

    Args:
        inputs: The inputs that all metrics share.
        total: The measured value, thousandths.
        target: Thousandths for the whole workload.
        ready: Number of pods that are running and ready; None counts them.
    """
    first = ratio(total, target)
    # No pod is ready, so the ratio itself is the proposal: one replica serves one target value. A tolerated ratio must
    # not keep the workload at zero.
    if inputs.current == 0:
        return Calculation(replicas=saturating_ceil32(first), rule=Rule.FROM_ZERO, ratio=first, measured=total)
    if first in inputs.tolerances:
        return Calculation(replicas=inputs.current, rule=Rule.WITHIN_TOLERANCE, ratio=first, measured=total)
    if ready is None:
        if not inputs.pods:
            return Unavailable(f"unable to calculate ready pods: {_NO_PODS.message}")
        ready = count_ready_pods(inputs.pods)
    replicas = saturating_ceil32(first * ready)
    return Calculation(replicas=replicas, rule=Rule.READY_PODS, ratio=first, measured=total, ready=ready)


def from_total_per_pod(inputs: CalculatorInputs, total: int, target: int) -> Calculation:
    """Compute the replicas for a value that is divided by the observed number of replicas.

    Pods are not used. The reported value is the one per replica; it has no meaning with zero replicas.

    Args:
        inputs: The inputs that all metrics share.
        total: The measured value, thousandths.
        target: Thousandths per replica.
    """
    # `status.replicas`, unlike all other targets: the controller divides by the pods that exist
    # (GetExternalPerPodMetricReplicas). With 0 of them the ratio is infinite or NaN, so never tolerated.
    first = ratio(total, float(target) * float(inputs.observed))
    replicas, rule = inputs.observed, Rule.WITHIN_TOLERANCE
    if first not in inputs.tolerances:
        replicas, rule = saturating_ceil32(ratio(total, target)), Rule.TOTAL
    # Not divided, as in GetExternalPerPodMetricReplicas: such a total is the cap of a sum that has overflowed.
    measured = INT64_MAX if float(total) >= _INT64_END else ceil64(ratio(total, inputs.observed))
    return Calculation(replicas=replicas, rule=rule, ratio=first, measured=measured)


def sum_series(values: Sequence[int], *, per_pod: bool) -> int:
    """Add up the series of an External metric, capped at the largest integer of 64 bits.

    Args:
        values: Thousandths.
        per_pod: Whether a negative sum counts as an overflow, as it does for a target per replica.
    """
    total = 0
    for value in values:
        total += value
        # From 1.34 the controller detects an overflow by the sign, and takes a sum of negative values for one.
        if total > INT64_MAX or (per_pod and total < 0):
            return INT64_MAX
    return saturate64(total)


def _group_samples(
    inputs: CalculatorInputs, samples: Mapping[str, Sample], resource: str
) -> tuple[PodGroups, Mapping[str, Sample], int] | Unavailable:
    """Return the pods by group, the samples that count, and their sum.

    Those of unready and ignored pods do not count, those of unknown pods do.
    """
    if not inputs.pods:
        return _NO_PODS
    kept, usage = measured_samples(samples)
    groups = group_pods(inputs.pods, kept, resource=resource, settings=inputs.settings, now=inputs.now)
    if groups.unready or groups.ignored:
        dropped = {*groups.unready, *groups.ignored}
        kept = {name: sample for name, sample in kept.items() if name not in dropped}
        usage = sum([sample.value for sample in kept.values()])
    return (groups, kept, usage) if kept else _NO_SAMPLES


def _pods_to_fill_in(groups: PodGroups, first: float) -> tuple[str, ...]:
    """Return the pods that are counted without a sample, depending on the direction of the first result."""
    if first > 1.0:
        return (*groups.missing, *groups.unready)
    # At exactly 1 neither direction can be weakened, so missing pods are not counted at all.
    return groups.missing if first < 1.0 else ()


def _percent(usage: int, requests: int) -> int:
    return min(divide(usage * _FULL, requests), INT32_MAX)


def _has_gaps(groups: PodGroups, first: float) -> bool:
    return bool(groups.missing) or (bool(groups.unready) and first > 1.0)


def _filled_utilization(
    groups: PodGroups, first: float, usage: int, total: int, *, requests: Mapping[str, int], target: int
) -> float | None:
    """Return the ratio after filling in; None if the pods request nothing."""
    if first < 1.0:
        # All of its request, or the target where that is higher: with a target of 150 percent, a pod that is filled in
        # with 100 would support the scale-down.
        share = max(_FULL, target)
        usage = saturate64(usage + sum(divide(requests[name] * share, _FULL) for name in groups.missing))
    total = saturate64(total + sum(requests[name] for name in _pods_to_fill_in(groups, first)))
    return ratio(_percent(usage, total), target) if total else None


def _propose(inputs: CalculatorInputs, first: float, groups: PodGroups) -> tuple[int, Rule]:
    if first in inputs.tolerances:
        return inputs.current, Rule.WITHIN_TOLERANCE
    return saturating_ceil32(first * groups.ready), Rule.READY_PODS


def _propose_after_filling(inputs: CalculatorInputs, first: float, filled: float, counted: int) -> tuple[int, Rule]:
    """Propose by the filled-in ratio; keep the current replicas if filling in reverses the first result."""
    current = inputs.current
    if filled in inputs.tolerances:
        return current, Rule.FILLED_WITHIN_TOLERANCE
    # The gaps alone would decide the direction then, and they are guesses: rolling updates scaled workloads up that way
    # (kubernetes/kubernetes#84142).
    if first < 1.0 < filled or filled < 1.0 < first:
        return current, Rule.FILLED_TURNED_RATIO
    wanted = saturating_ceil32(filled * counted)
    # More or fewer pods have been counted than the Scale asks for, as in a rolling update, so the product can
    # contradict the ratio.
    if (filled < 1.0 and wanted > current) or (filled > 1.0 and wanted < current):
        return current, Rule.FILLED_TURNED_COUNT
    return wanted, Rule.FILLED
