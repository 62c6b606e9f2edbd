"""From all metrics of an autoscaler to one number.

Each metric makes a proposal or fails. The largest proposal wins, because a workload that one metric calls too small is
too small. A failed metric might have been the largest, so with one failing a workload may grow but never shrink.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from ocf.autoscaling.algorithm.hpa_spec import Metric
from ocf.autoscaling.algorithm.pod_selectors import format_selector
from ocf.autoscaling.algorithm.replica_calculator import (
    Calculation,
    CalculatorInputs,
    from_average,
    from_total,
    from_total_per_pod,
    from_utilization,
    sum_series,
)
from ocf.autoscaling.algorithm.snapshot import MetricValues, Sample, Unavailable
from ocf.autoscaling.algorithm.status import MetricStatus

__all__ = ["Combination", "Failure", "MetricOutcome", "choose_proposal", "evaluate"]

_NO_VALUES: Final = Unavailable("no reading of it was handed over")


class Failure(NamedTuple):
    """Why a metric made no proposal.

    Args:
        reason: The reason of the event and of the condition.
        message: The message of the event, and the end of the condition's.
        error: The message of the error that the round returns.
        spec: Whether the HPA itself is to blame.
    """

    reason: str
    message: str
    error: str
    spec: bool = False


class MetricOutcome(NamedTuple):
    """What became of one metric.

    Args:
        metric: The metric.
        name: What messages call it.
        result: Its proposal with every number on the way, or why there is none.
        status: What the status reports.
    """

    metric: Metric
    name: str
    result: Calculation | Failure
    status: MetricStatus

    def action(self, before: int) -> Literal["scale_up", "scale_down", "none"]:
        """Return what the metric wants, in the words of the controller's metrics.

        Args:
            before: `currentReplicas` of the status, as it was read: the controller compares with that one.
        """
        if isinstance(self.result, Failure) or self.result.replicas == before:
            return "none"
        return "scale_up" if self.result.replicas > before else "scale_down"

    @property
    def error_kind(self) -> Literal["spec", "internal", "none"]:
        """What kind of failure it is, in the words of the controller's metrics."""
        if isinstance(self.result, Failure):
            return "spec" if self.result.spec else "internal"
        return "none"


class Combination(NamedTuple):
    """What became of all metrics.

    Args:
        outcomes: One per metric, in the order of the spec.
        chosen: The position of the one that counts; None if none does.
        replicas: The number that counts; None if there is none, or none that may be acted on.
        first_failure: The first failure, in the order of the spec.
        error: What the round returns in the end; empty if nothing failed.
    """

    outcomes: tuple[MetricOutcome, ...]
    chosen: int | None = None
    replicas: int | None = None
    first_failure: Failure | None = None
    error: str = ""

    @property
    def name(self) -> str:
        """What messages call the metric that counts."""
        return "" if self.chosen is None else self.outcomes[self.chosen].name


def evaluate(metric: Metric, reading: MetricValues, count: CalculatorInputs, namespace: str) -> MetricOutcome:
    """Let one metric make its proposal.

    Args:
        metric: The metric.
        reading: What was measured of it.
        count: What all metrics of the round share.
        namespace: The namespace of the autoscaler, for messages.

    Returns:
        Its proposal or its failure.
    """
    compute = _BY_TYPE.get(metric.type)
    if compute is None:
        message = f'unknown metric source type "{metric.type}"'
        return MetricOutcome(
            metric, "", Failure("InvalidMetricSourceType", message, message, spec=True), MetricStatus()
        )
    return compute(metric, reading, count, namespace)


def choose_proposal(
    metrics: Sequence[Metric], readings: Sequence[MetricValues], count: CalculatorInputs, namespace: str = "default"
) -> Combination:
    """Let every metric make its proposal, and choose.

    The largest proposal wins, the first of equal ones. If all metrics failed, or some did and the others would make the
    workload smaller, nothing is chosen.

    Args:
        metrics: The metrics, in the order of the spec.
        readings: What was measured, in the same order; what is missing counts as failed.
        count: What all metrics of the round share.
        namespace: The namespace of the autoscaler, for messages.
    """
    outcomes: list[MetricOutcome] = []
    best = failed = 0
    chosen = first_failure = None
    for position, metric in enumerate(metrics):
        reading = readings[position] if position < len(readings) else _NO_VALUES
        outcome = evaluate(metric, reading, count, namespace)
        outcomes.append(outcome)
        result = outcome.result
        if isinstance(result, Failure):
            first_failure = first_failure or result
            failed += 1
        elif best == 0 or result.replicas > best:
            best, chosen = result.replicas, position
    error = "" if metrics else "there is no metric"
    if first_failure:
        error = f"invalid metrics ({failed} invalid out of {len(metrics)}), first error is: {first_failure.error}"
    if failed >= len(metrics) or (failed and best < count.current):
        return Combination(tuple(outcomes), first_failure=first_failure, error=error)
    return Combination(tuple(outcomes), chosen, best, first_failure, error)


def _resource(metric: Metric, reading: MetricValues, count: CalculatorInputs, _namespace: str) -> MetricOutcome:
    resource, target = metric.name, metric.target
    whole = metric.type == "Resource"
    words = f"{resource} resource" if whole else f"{metric.container} container"
    reason = "FailedGetResourceMetric" if whole else "FailedGetContainerResourceMetric"
    if target.average is None and target.utilization is None:
        kind = "neither an average utilization target nor an average value (usage) target was set"
        return _failed(metric, reason, f"invalid resource metric source: {kind}", words)
    samples = _pod_samples(reading)
    if isinstance(samples, Unavailable):
        result: Calculation | Unavailable = Unavailable(
            f"unable to get metrics for resource {resource}: {samples.message}"
        )
    elif target.average is not None:
        result = from_average(count, samples, target.average, resource=resource)
    else:
        result = from_utilization(
            count, samples, target.utilization or 0, resource=resource, container=metric.container
        )
    if isinstance(result, Unavailable):
        measure = "utilization" if target.average is None else "usage"
        return _failed(metric, reason, f"failed to get {resource} {measure}: {result.message}", words)
    if target.average is not None:
        name = f"{resource} resource"
    else:
        name = f"{resource} {'' if whole else 'container '}resource utilization (percentage of request)"
    return MetricOutcome(metric, name, result, MetricStatus(metric, result.utilization, result.measured))


def _pods(metric: Metric, reading: MetricValues, count: CalculatorInputs, _namespace: str) -> MetricOutcome:
    reason, words = "FailedGetPodsMetric", "pods"
    if metric.selector_error:
        return _failed(metric, reason, metric.selector_error, words)
    if metric.target.average is None:
        return _failed(metric, reason, "invalid pods metric source: no average value target was set", words)
    samples = _pod_samples(reading)
    if isinstance(samples, Unavailable):
        return _failed(metric, reason, f"unable to get metric {metric.name}: {samples.message}", words)
    result = from_average(count, samples, metric.target.average)
    if isinstance(result, Unavailable):
        return _failed(metric, reason, result.message, words)
    return MetricOutcome(metric, f"pods metric {metric.name}", result, MetricStatus(metric, average=result.measured))


def _object(metric: Metric, reading: MetricValues, count: CalculatorInputs, namespace: str) -> MetricOutcome:
    reason, words, target = "FailedGetObjectMetric", "object", metric.target
    described = metric.described_object or {}
    kind = described.get("kind") or ""
    if metric.selector_error:
        return _failed(metric, reason, metric.selector_error, words)
    per_pod = target.type == "AverageValue" and target.average is not None
    if not per_pod and not (target.type == "Value" and target.value is not None):
        message = "invalid object metric source: neither a value target nor an average value target was set"
        return _failed(metric, reason, message, words)
    values = _series_values(reading)
    wrapped = f"failed to get {metric.name} object metric: " if per_pod else ""
    if isinstance(values, Unavailable):
        # The controller hands these over in the wrong order; who searches for its text must find it.
        place = f"{kind} on {namespace} {described.get('name') or ''}"
        message = f"unable to get metric {metric.name}: {place}/{values.message}"
        return _failed(metric, reason, message, words, wrapped)
    if per_pod:
        found = from_total_per_pod(count, values[0], target.average or 0, external=False)
        name = f"external metric {metric.name}({format_selector(metric.selector)})"
        return MetricOutcome(metric, name, found, MetricStatus(metric, average=found.measured))
    result = from_total(count, values[0], target.value or 0)
    if isinstance(result, Unavailable):
        return _failed(metric, reason, result.message, words)
    return MetricOutcome(metric, f"{kind} metric {metric.name}", result, MetricStatus(metric, value=result.measured))


def _external(metric: Metric, reading: MetricValues, count: CalculatorInputs, namespace: str) -> MetricOutcome:
    reason, words, target = "FailedGetExternalMetric", f"{metric.name} external", metric.target
    if target.average is None and target.value is None:
        message = "invalid external metric source: neither a value target nor an average value target was set"
        return _failed(metric, reason, message, words)
    per_pod = target.average is not None
    wrapped = f"failed to get {metric.name} external metric: " if per_pod else ""
    wrapped = wrapped or f"failed to get external metric {metric.name}: "
    if metric.selector_error:
        return _failed(metric, reason, metric.selector_error, words, wrapped)
    values = _series_values(reading)
    if isinstance(values, Unavailable):
        place = f"{namespace}/{metric.name}/{format_selector(metric.selector)}"
        return _failed(metric, reason, f"unable to get external metric {place}: {values.message}", words, wrapped)
    total = sum_series(values, per_pod=per_pod)
    if target.average is not None:
        result: Calculation | Unavailable = from_total_per_pod(count, total, target.average, external=True)
    else:
        result = from_total(count, total, target.value or 0)
    if isinstance(result, Unavailable):
        return _failed(metric, reason, result.message, words, wrapped)
    measured = MetricStatus(metric, average=result.measured) if per_pod else MetricStatus(metric, value=result.measured)
    return MetricOutcome(metric, f"external metric {metric.name}({format_selector(metric.selector)})", result, measured)


_BY_TYPE: Final = {
    "Resource": _resource,
    "ContainerResource": _resource,
    "Pods": _pods,
    "Object": _object,
    "External": _external,
}


def _failed(metric: Metric, reason: str, message: str, words: str, wrapped: str = "") -> MetricOutcome:
    error = f"failed to get {words} metric value: {wrapped}{message}"
    return MetricOutcome(metric, "", Failure(reason, message, error), MetricStatus())


def _pod_samples(reading: MetricValues) -> Mapping[str, Sample] | Unavailable:
    if isinstance(reading, dict):  # asked first, as asking for a Mapping takes ten times as long
        return reading
    return reading if isinstance(reading, Mapping | Unavailable) else _NO_VALUES


def _series_values(reading: MetricValues) -> Sequence[int] | Unavailable:
    if isinstance(reading, Unavailable):
        return reading
    return _NO_VALUES if isinstance(reading, Mapping) or not reading else reading
