"""Proposals of the metrics of an HPA, and the choice between them.

Each metric makes a proposal or fails. The largest proposal wins: a workload that is too small for one metric is too
small. A failed metric might have made the largest proposal, so if one fails, the workload may be scaled up but never
down.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, NamedTuple

from ocf.autoscaling.algorithm.arithmetic import INT64_MAX
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

_NO_VALUES: Final = Unavailable("no values were passed for it")
_NO_OBJECT: Final = {"kind": "", "name": ""}
_TOO_LOW: Final = Unavailable("a value is below the smallest 64-bit integer in thousandths")


class Failure(NamedTuple):
    """The reason why a metric made no proposal.

    Args:
        reason: The reason of the event and the condition.
        message: The message of the event, and the end of the condition's message.
        error: The message of the error that the sync returns.
        spec: Whether the cause is the spec of the HPA.
    """

    reason: str
    message: str
    error: str
    spec: bool = False


class MetricOutcome(NamedTuple):
    """The outcome of one metric.

    Args:
        name: Its name in messages.
        result: Its proposal with the numbers that led to it, or the failure.
        status: Its entry in the status.
    """

    metric: Metric
    name: str
    result: Calculation | Failure
    status: MetricStatus

    def action(self, before: int) -> Literal["scale_up", "scale_down", "none"]:
        """Return the label `action` of the controller's metrics.

        Args:
            before: `currentReplicas` of the status as it was read; the controller compares with it.
        """
        if isinstance(self.result, Failure) or self.result.replicas == before:
            return "none"
        return "scale_up" if self.result.replicas > before else "scale_down"

    @property
    def error_kind(self) -> Literal["spec", "internal", "none"]:
        """The label `error` of the controller's metrics."""
        if isinstance(self.result, Failure):
            return "spec" if self.result.spec else "internal"
        return "none"


class Combination(NamedTuple):
    """The outcomes of all metrics, and the chosen proposal.

    Args:
        outcomes: One per metric, in the order of the spec.
        chosen: Position of the metric with the chosen proposal; None if no proposal was chosen.
        replicas: The chosen proposal; None if no proposal was chosen.
        first_failure: The first failure, in the order of the spec.
        error: The error message of the sync; empty if no metric failed.
    """

    outcomes: tuple[MetricOutcome, ...]
    chosen: int | None = None
    replicas: int | None = None
    first_failure: Failure | None = None
    error: str = ""

    @property
    def name(self) -> str:
        """The name of the chosen metric in messages."""
        return "" if self.chosen is None else self.outcomes[self.chosen].name


def evaluate(metric: Metric, values: MetricValues, inputs: CalculatorInputs, namespace: str) -> MetricOutcome:
    """Evaluate one metric.

    Args:
        metric: The metric.
        values: The values that were measured.
        inputs: The inputs that all metrics of the sync share.
        namespace: The namespace of the HPA, for messages.

    Returns:
        The outcome: a proposal or a failure.
    """
    evaluator = _EVALUATORS.get(metric.type)
    if evaluator is None:
        message = f'unknown metric source type "{metric.type}"'
        return MetricOutcome(
            metric, "", Failure("InvalidMetricSourceType", message, message, spec=True), MetricStatus()
        )
    return evaluator(metric, values, inputs, namespace)


def choose_proposal(
    metrics: Sequence[Metric],
    metric_values: Sequence[MetricValues],
    inputs: CalculatorInputs,
    namespace: str = "default",
) -> Combination:
    """Evaluate all metrics and choose a proposal.

    The largest proposal wins, the first of equal ones. No proposal is chosen if all metrics failed, or if some failed
    and the others would scale the workload down.

    Args:
        metrics: The metrics, in the order of the spec.
        metric_values: The measured values, in the same order; a metric without values fails.
        inputs: The inputs that all metrics of the sync share.
        namespace: The namespace of the HPA, for messages.
    """
    outcomes: list[MetricOutcome] = []
    best = failed = 0
    chosen = first_failure = None
    for position, metric in enumerate(metrics):
        values = metric_values[position] if position < len(metric_values) else _NO_VALUES
        outcome = evaluate(metric, values, inputs, namespace)
        outcomes.append(outcome)
        result = outcome.result
        if isinstance(result, Failure):
            first_failure = first_failure or result
            failed += 1
        # 0 stands for "no proposal yet" as in computeReplicasForMetrics, so of metrics that all propose 0 the last is
        # chosen.
        elif best == 0 or result.replicas > best:
            best, chosen = result.replicas, position
    error = "" if metrics else "there is no metric"
    if first_failure:
        error = f"invalid metrics ({failed} invalid out of {len(metrics)}), first error is: {first_failure.error}"
    # The current replicas suffice to go on: holding the size needs no complete metrics, shrinking does. The failure is
    # still the error of the sync.
    if failed >= len(metrics) or (failed and best < inputs.current):
        return Combination(tuple(outcomes), first_failure=first_failure, error=error)
    return Combination(tuple(outcomes), chosen, best, first_failure, error)


def _resource(metric: Metric, values: MetricValues, inputs: CalculatorInputs, _namespace: str) -> MetricOutcome:
    resource, target = metric.name, metric.target
    whole = metric.type == "Resource"
    subject = f"{resource} resource" if whole else f"{metric.container} container"
    reason = "FailedGetResourceMetric" if whole else "FailedGetContainerResourceMetric"
    # Checked for the raw value first and the utilization last, so with both (which the API server rejects) the raw
    # value applies.
    if target.average is None and target.utilization is None:
        kind = "neither an average utilization target nor an average value (usage) target was set"
        return _failed(metric, reason, f"invalid resource metric source: {kind}", subject)
    samples = _pod_samples(values)
    if isinstance(samples, Unavailable):
        result: Calculation | Unavailable = Unavailable(
            f"unable to get metrics for resource {resource}: {samples.message}"
        )
    elif target.average is not None:
        result = from_average(inputs, samples, target.average, resource=resource)
    else:
        result = from_utilization(
            inputs, samples, target.utilization or 0, resource=resource, container=metric.container
        )
    if isinstance(result, Unavailable):
        measure = "utilization" if target.average is None else "usage"
        return _failed(metric, reason, f"failed to get {resource} {measure}: {result.message}", subject)
    if target.average is not None:
        name = f"{resource} resource"
    else:
        name = f"{resource} {'' if whole else 'container '}resource utilization (percentage of request)"
    # Until 1.33 amounts of memory have decimal suffixes in the status.
    binary = inputs.settings.features.binary_memory
    status = MetricStatus(metric, result.utilization, result.measured, None, binary)
    return MetricOutcome(metric, name, result, status)


def _pods(metric: Metric, values: MetricValues, inputs: CalculatorInputs, _namespace: str) -> MetricOutcome:
    reason, subject = "FailedGetPodsMetric", "pods"
    if metric.selector_error:
        return _failed(metric, reason, metric.selector_error, subject)
    if metric.target.average is None:
        return _failed(metric, reason, "invalid pods metric source: no average value target was set", subject)
    samples = _pod_samples(values)
    if isinstance(samples, Unavailable):
        return _failed(metric, reason, f"unable to get metric {metric.name}: {samples.message}", subject)
    result = from_average(inputs, samples, metric.target.average)
    if isinstance(result, Unavailable):
        return _failed(metric, reason, result.message, subject)
    return MetricOutcome(metric, f"pods metric {metric.name}", result, MetricStatus(metric, average=result.measured))


def _object(metric: Metric, values: MetricValues, inputs: CalculatorInputs, namespace: str) -> MetricOutcome:
    reason, subject, target = "FailedGetObjectMetric", "object", metric.target
    described = metric.described_object or {}
    kind = described.get("kind") or ""
    if metric.selector_error:
        return _failed(metric, reason, metric.selector_error, subject)
    # Only this source goes by `target.type`; the others take whichever amount is set.
    per_pod = target.type == "AverageValue" and target.average is not None
    if not per_pod and not (target.type == "Value" and target.value is not None):
        message = "invalid object metric source: neither a value target nor an average value target was set"
        return _failed(metric, reason, message, subject)
    series = _series_values(values)
    prefix = f"failed to get {metric.name} object metric: " if per_pod else ""
    if isinstance(series, Unavailable):
        name, problem = described.get("name") or "", series.message
        # Before 1.37, the controller formats these in a wrong order; its text is kept, so that searches for it match.
        message = f"unable to get metric {metric.name}: {kind} on {namespace} {name}/{problem}"
        if inputs.settings.features.causes_kept:
            message = f"unable to get metric {metric.name} on {kind} {namespace}/{name}: {problem}"
        return _failed(metric, reason, message, subject, prefix)
    if per_pod:
        found = from_total_per_pod(inputs, series[0], target.average or 0)
        # The controller calls it an external metric (computeStatusForObjectMetric), and users search events for that
        # text.
        name = f"external metric {metric.name}({format_selector(metric.selector)})"
        shown = (
            metric if inputs.settings.features.described_object_kept else replace(metric, described_object=_NO_OBJECT)
        )
        return MetricOutcome(metric, name, found, MetricStatus(shown, average=found.measured))
    result = from_total(inputs, series[0], target.value or 0)
    if isinstance(result, Unavailable):
        return _failed(metric, reason, result.message, subject)
    return MetricOutcome(metric, f"{kind} metric {metric.name}", result, MetricStatus(metric, value=result.measured))


def _external(metric: Metric, values: MetricValues, inputs: CalculatorInputs, namespace: str) -> MetricOutcome:
    reason, subject, target = "FailedGetExternalMetric", f"{metric.name} external", metric.target
    if target.average is None and target.value is None:
        message = "invalid external metric source: neither a value target nor an average value target was set"
        return _failed(metric, reason, message, subject)
    per_pod = target.average is not None
    prefix = f"failed to get {metric.name} external metric: " if per_pod else ""
    prefix = prefix or f"failed to get external metric {metric.name}: "
    if metric.selector_error:
        return _failed(metric, reason, metric.selector_error, subject, prefix)
    series = _series_values(values)
    if isinstance(series, Unavailable):
        place = f"{namespace}/{metric.name}/{format_selector(metric.selector)}"
        return _failed(metric, reason, f"unable to get external metric {place}: {series.message}", subject, prefix)
    total = sum_series(series, per_pod=per_pod and inputs.settings.features.negative_totals_overflow)
    if target.average is not None:
        result: Calculation | Unavailable = from_total_per_pod(inputs, total, target.average)
    else:
        result = from_total(inputs, total, target.value or 0)
    if isinstance(result, Unavailable):
        return _failed(metric, reason, result.message, subject, prefix)
    measured = MetricStatus(metric, average=result.measured) if per_pod else MetricStatus(metric, value=result.measured)
    return MetricOutcome(metric, f"external metric {metric.name}({format_selector(metric.selector)})", result, measured)


_EVALUATORS: Final = {
    "Resource": _resource,
    "ContainerResource": _resource,
    "Pods": _pods,
    "Object": _object,
    "External": _external,
}


def _failed(metric: Metric, reason: str, message: str, subject: str, prefix: str = "") -> MetricOutcome:
    error = f"failed to get {subject} metric value: {prefix}{message}"
    return MetricOutcome(metric, "", Failure(reason, message, error), MetricStatus())


def _pod_samples(values: MetricValues) -> Mapping[str, Sample] | Unavailable:
    if isinstance(values, dict):  # checked first: isinstance of Mapping takes ten times as long
        return values
    return values if isinstance(values, Mapping | Unavailable) else _NO_VALUES


def _series_values(values: MetricValues) -> Sequence[int] | Unavailable:
    if isinstance(values, Unavailable):
        return values
    if isinstance(values, Mapping) or not values:
        return _NO_VALUES
    return _TOO_LOW if min(values) <= -INT64_MAX else values
