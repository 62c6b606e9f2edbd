"""Text of one metric: its measurement, its target and its proposal."""

from collections.abc import Iterator, Sequence
from typing import Final

from ocf.autoscaling.algorithm import Metric, Rule
from ocf.autoscaling.algorithm.metric_proposals import Failure, MetricOutcome
from ocf.autoscaling.algorithm.replica_calculator import Calculation
from ocf.autoscaling.explain.advice import advice
from ocf.autoscaling.explain.explanation import Explanation
from ocf.autoscaling.explain.formatting import amount, number

__all__ = ["metric_lines"]

_SHOWN: Final = 5
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
    yield f"Target {_target(metric)}: the ratio is {number(result.ratio)}; the tolerance is {low} to {high}."
    if result.groups is not None:
        yield from _pods(result)
    if result.filled is not None:
        yield from _filled(metric, result)
    yield _proposal(metric, result)


def _measured(metric: Metric, result: Calculation) -> str:
    measured = amount(result.measured, metric)
    if result.utilization is not None:
        usage, requests = (amount(each or 0, metric) for each in (result.usage, result.requests))
        return f"Measured {result.utilization}% of the requests: {usage} of {requests}, {measured} per pod."
    if result.usage is not None:
        return f"Measured {measured} per pod, {amount(result.usage, metric)} in total."
    per_replica = metric.target.average is not None and metric.type in {"Object", "External"}
    return f"Measured {measured} {'per replica' if per_replica and metric.target.type != 'Value' else 'in total'}."


def _target(metric: Metric) -> str:
    target = metric.target
    if target.average is not None and (metric.type != "Object" or target.type == "AverageValue"):
        return f"{amount(target.average, metric)} per pod"
    if target.utilization is not None and metric.type in {"Resource", "ContainerResource"}:
        return f"{target.utilization}%"
    return f"{amount(target.value or 0, metric)} in total"


def _pods(result: Calculation) -> Iterator[str]:
    groups = result.groups
    if groups is None:
        return
    yield f"Pods: {groups.ready} ready and measured."
    for names, group in (
        (groups.unready, "unready (samples do not count)"),
        (groups.missing, "missing (no samples)"),
        (groups.ignored, "ignored (being deleted or failed)"),
    ):
        if names:
            yield f"  {len(names)} {group}: {_listed(names)}"


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


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


def _proposal(metric: Metric, result: Calculation) -> str:
    return _PROPOSALS.get(result.rule, "That is within the tolerance, so it keeps {wanted}.").format(
        ratio=number(result.ratio),
        filled=number(result.filled or 0),
        ready=result.ready if result.groups is None else result.groups.ready,
        counted=result.counted,
        target=_target(metric),
        wanted=result.replicas,
    )
