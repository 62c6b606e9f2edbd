"""Text of one metric: its measurement, its target and its proposal."""

import math
from collections.abc import Iterator
from typing import Final

from ocf.autoscaling.algorithm import Decision, Metric, Pod, Rule
from ocf.autoscaling.algorithm.metric_proposals import Failure, MetricOutcome
from ocf.autoscaling.algorithm.replica_calculator import Calculation
from ocf.autoscaling.explain.advice import advice
from ocf.autoscaling.explain.explanation import Explanation
from ocf.autoscaling.explain.formatting import bounded_amount, clock, duration, listed, number
from ocf.autoscaling.explain.next_syncs import expiry
from ocf.autoscaling.explain.reasons import negative_text, negative_total, series_of, target_text

__all__ = ["metric_lines"]

_FULL: Final = 100


def metric_lines(outcome: MetricOutcome, explanation: Explanation, *, chosen: bool) -> tuple[str, Iterator[str]]:
    """Render one metric."""
    result, metric = outcome.result, outcome.metric
    if isinstance(result, Failure):
        name = metric.name or "without a name"
        return f"{metric.type} {name} failed", iter((f"{result.reason}: {result.message}", *advice(result.message)))
    several = len(explanation.decision.snapshot.autoscaler.metrics) > 1
    counts = "; it counts" if chosen and several else ""
    return f"{outcome.name} wants {result.replicas}{counts}", _calculated(metric, result, explanation)


def _calculated(metric: Metric, result: Calculation, explanation: Explanation) -> Iterator[str]:
    tolerated = explanation.decision.trace.tolerances
    low, high = number(1.0 - tolerated.down), number(1.0 + tolerated.up)
    yield _measured(metric, result)
    yield from _series(metric, result, explanation.decision)
    yield f"Target {target_text(metric)}: the ratio is {number(result.ratio)}; the tolerance is {low} to {high}."
    if result.groups is not None:
        yield from _pods(metric, result, explanation)
    if result.filled is not None:
        yield from _filled(metric, result)
    yield _proposal(metric, result, explanation.decision.trace.current)


def _measured(metric: Metric, result: Calculation) -> str:
    measured = bounded_amount(result.measured, metric)
    if result.utilization is not None:
        usage, requests = (bounded_amount(each or 0, metric) for each in (result.usage, result.requests))
        return f"Measured {result.utilization}% of the requests: {usage} of {requests}, {measured} per pod."
    if result.usage is not None:
        return f"Measured {measured} per pod, {bounded_amount(result.usage, metric)} in total."
    if not math.isfinite(result.ratio):
        return "Not measured per replica, as the status of the target has no replicas."
    per_replica = metric.target.average is not None and metric.type in {"Object", "External"}
    return f"Measured {measured} {'per replica' if per_replica and metric.target.type != 'Value' else 'in total'}."


def _series(metric: Metric, result: Calculation, decision: Decision) -> Iterator[str]:
    """Render the series that are added up, as a selector that matches too many is found by their number."""
    series = series_of(decision, metric)
    if len(series) > 1:
        parts = listed([bounded_amount(each, metric) for each in sorted(series, reverse=True)])
        yield f"  The sum of {len(series)} series: {parts}."
    total = negative_total(decision, metric)
    if total is not None:
        text = negative_text(metric, total, result)
        yield f"  {text[:1].upper()}{text[1:]}."


def _pods(metric: Metric, result: Calculation, explanation: Explanation) -> Iterator[str]:
    groups = result.groups
    if groups is None:
        return
    yield f"Pods: {groups.ready} ready and measured."
    pods = {each.name: each for each in explanation.decision.snapshot.pods}
    is_cpu = metric.name == "cpu" and metric.type in {"Resource", "ContainerResource"}
    for names, group in (
        (groups.unready, "unready (samples do not count)"),
        (groups.missing, "missing (no samples)"),
        (groups.ignored, "ignored (being deleted or failed)"),
    ):
        if names:
            states = (
                _state(pods.get(name), explanation, is_young=is_cpu and names is groups.unready) for name in names
            )
            shown = [f"{name} ({state})" if state else name for name, state in zip(names, states, strict=True)]
            yield f"  {len(names)} {group}: {listed(shown)}"


def _state(pod: Pod | None, explanation: Explanation, *, is_young: bool) -> str:
    """Return why a pod does not count as an ordinary one.

    Args:
        is_young: Whether the sample of the pod may be left out because the pod is starting.
    """
    if pod is None or pod.deleted or pod.phase not in {"Running", ""}:
        return "" if pod is None else "being deleted" if pod.deleted else pod.phase
    now, settings = explanation.decision.trace.now, explanation.settings
    is_ready = pod.ready is not None and pod.ready.status == "True"
    if pod.started is None:
        return "" if is_ready else "not ready"
    age = now - pod.started
    if is_ready and age >= settings.cpu_initialization_period:
        return ""
    started = f"started {duration(age)} ago"
    if not is_young or not is_ready:
        return started if is_ready else f"{started}, not ready"
    counts = clock(expiry(pod.started, settings.cpu_initialization_period), now)
    return f"{started}, its sample began before it was ready; counts from {counts} on at the latest"


def _filled(metric: Metric, result: Calculation) -> Iterator[str]:
    groups = result.groups
    if groups is None or result.filled is None:
        return
    if result.ratio < 1.0:
        share = max(_FULL, metric.target.utilization or 0)
        assumed = f"{share}% of their requests" if result.utilization is not None else "exactly the target"
        yield f"Assumed: missing pods use {assumed}."
    elif result.ratio > 1.0:
        which = "missing and unready" if groups.missing and groups.unready else "missing"
        yield f"Assumed: {which if groups.missing else 'unready'} pods use nothing."
    yield f"With them, the ratio is {number(result.filled)} over {result.counted} pods."


_PROPOSALS: Final = {
    Rule.READY_PODS: "{ratio} times {ready} ready pods, rounded up: {wanted}.",
    Rule.FILLED: "{filled} times {counted} pods, rounded up: {wanted}.",
    Rule.FROM_ZERO: "There are no replicas, so the ratio is rounded up: {wanted}.",
    Rule.TOTAL: "The total divided by {target}, rounded up: {wanted}.",
    Rule.FILLED_TURNED_RATIO: "That reverses the direction of the ratio, so it keeps {wanted}.",
    Rule.FILLED_TURNED_COUNT: "That change is opposite to the ratio, so it keeps {wanted}.",
}


def _proposal(metric: Metric, result: Calculation, current: int | None) -> str:
    within = "That is within the tolerance, so it keeps {wanted}."
    if result.replicas != current and result.rule is Rule.WITHIN_TOLERANCE:
        # GetExternalPerPodMetricReplicas returns status.replicas (kubernetes/kubernetes#138505).
        within = "That is within the tolerance, so it takes the {wanted} replicas of the status, not the {current}."
    return _PROPOSALS.get(result.rule, within).format(
        current=current,
        ratio=number(result.ratio),
        filled=number(result.filled or 0),
        ready=result.ready if result.groups is None else result.groups.ready,
        counted=result.counted,
        target=target_text(metric),
        wanted=result.replicas,
    )
