"""Text of the metric thresholds: which values would change the number of replicas."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from ocf.autoscaling.algorithm import Decision, Metric, Rule
from ocf.autoscaling.algorithm.replica_calculator import Calculation
from ocf.autoscaling.explain.explanation import Explanation
from ocf.autoscaling.explain.formatting import amount
from ocf.autoscaling.explain.levers import Lever
from ocf.autoscaling.explain.thresholds import Blocker, MetricThresholds, ValueRange

__all__ = ["blocker_text", "lever_lines", "required_changes", "threshold_lines"]

_FULL: Final = 100
_BLOCKER_TEXT: Final = {
    Rule.TOO_MANY: "maxReplicas is {maximum}",
    Rule.TOO_FEW: "minReplicas is {minimum}",
    Rule.SCALE_UP_LIMIT: "the scale-up rate limit applies",
    Rule.SCALE_DOWN_LIMIT: "the scale-down rate limit applies",
    Rule.SCALE_UP_STABILIZED: "a lower recommendation in the scale-up window holds it",
    Rule.SCALE_DOWN_STABILIZED: "a higher recommendation in the scale-down window holds it",
    Rule.FAILED: "another metric failed, and without all metrics nothing is scaled down",
}
_REQUIRED_CHANGES: Final = {
    Rule.UNREADABLE: "The scale of the target must be readable: check that the target exists and has"
    " a scale subresource.",
    Rule.DISABLED: "Set the replicas of the target to at least 1. The controller scales up from zero only a workload"
    " that it scaled to zero itself (HPAScaleToZero, and an Object or External metric).",
    Rule.ABOVE_MAXIMUM: "Metrics are evaluated when there are at most maxReplicas ({maximum}), which is the case after"
    " this sync.",
    Rule.BELOW_MINIMUM: "Metrics are evaluated when there are at least minReplicas ({minimum}), which is the case after"
    " this sync.",
    Rule.FAILED: "Fix the problem named above first.",
}


def threshold_lines(thresholds: MetricThresholds, explanation: Explanation) -> Iterator[str]:
    """Render the thresholds of a metric.

    Yields:
        Lines; none if the metric made no proposal.
    """
    found = explanation.decision.trace.combination
    if found is None:
        return
    outcome = found.outcomes[thresholds.position]
    metric, result = outcome.metric, outcome.result
    if not isinstance(result, Calculation):
        return
    yield f"{outcome.name}, now {_value(thresholds.total, thresholds, metric)}:"
    rows = [
        (_values(each, thresholds, metric), _consequence(each), _contains(each, thresholds.total))
        for each in thresholds.ranges
    ]
    width = max(len(values) for values, _, _ in rows)
    for values, consequence, here in rows:
        yield f"  {'>' if here else ' '} {values.ljust(width)}  {consequence}"
    for blocker, direction in ((thresholds.cannot_grow, "more"), (thresholds.cannot_shrink, "fewer")):
        if blocker is not None:
            yield f"    no value gives {direction}: {_blocked_by(blocker, thresholds, explanation)}"


def required_changes(explanation: Explanation) -> Iterator[str]:
    """Render what must change before metrics are evaluated.

    Args:
        explanation: An explanation without thresholds.
    """
    trace = explanation.decision.trace
    text = _REQUIRED_CHANGES.get(trace.decided_by)
    if text is not None:
        yield text.format(minimum=trace.minimum, maximum=trace.maximum)


_SIDES: Final = {1: "{value} or more", -1: "{value} or less", 0: "{value}"}


def lever_lines(found: Iterable[Lever]) -> Iterator[str]:
    """Render fields with which the number of replicas would differ.

    Yields:
        A line per field, and one per value below it.
    """
    for (field, present), several in groupby(found, key=lambda each: (each.field, each.present)):
        yield f"{field}, now {present}:"
        for each in several:
            value = _SIDES[each.side].format(value=each.value)
            yield f"  {value}: {'more' if each.change > 0 else 'fewer'}, {each.replicas}"


def _value(total: int, thresholds: MetricThresholds, metric: Metric) -> str:
    """Render a total, with its share per pod and of the requests."""
    written = amount(total, metric)
    notes = []
    if len(thresholds.pods) > 1:
        notes.append(f"{amount(total // len(thresholds.pods), metric)} per pod")
    if thresholds.requests:
        notes.append(f"{total * _FULL // thresholds.requests}%")
    return f"{written} ({', '.join(notes)})" if notes else written


def _values(values: ValueRange, thresholds: MetricThresholds, metric: Metric) -> str:
    low, high = (_value(total, thresholds, metric) for total in (values.low, values.high))
    if values == thresholds.ranges[-1]:
        return f"from {low}" if values.low else "any value"
    return f"{low} to {high}" if values.low else f"up to {high}"


def _consequence(values: ValueRange) -> str:
    if not values.change:
        return f"no change, {values.first}"
    replicas = f"{values.first}" if values.first == values.last else f"{values.first} to {values.last}"
    return f"{'more' if values.change > 0 else 'fewer'}, {replicas}"


def _contains(values: ValueRange, total: int) -> bool:
    return values.low <= total <= values.high


def _blocked_by(blocker: Blocker, thresholds: MetricThresholds, explanation: Explanation) -> str:
    reason = blocker_text(blocker.decision, thresholds)
    if blocker.release is None:
        return reason
    return f"{reason}; at {explanation.named(blocker.release.at)}, {blocker.release.replicas} would result"


def blocker_text(decision: Decision, thresholds: MetricThresholds) -> str:
    """Return why a metric cannot change the number of replicas in one direction."""
    trace = decision.trace
    found, chosen, rule = trace.combination, trace.chosen, trace.decided_by
    if found is not None and chosen is not None and found.chosen != thresholds.position:
        wanted = 0 if found.replicas is None else found.replicas
        if wanted >= (trace.current or 0):
            return f"{chosen.name} wants {wanted}"
    return _BLOCKER_TEXT.get(rule, str(rule)).format(minimum=trace.minimum, maximum=trace.maximum)
