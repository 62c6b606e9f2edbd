"""What would have to change to scale, in words."""

from collections.abc import Iterator
from typing import Final

from ocf.autoscaling.algorithm import Calculation, Decision, Metric, Rule
from ocf.autoscaling.explain.explanation import Explanation
from ocf.autoscaling.explain.formatting import amount, clock
from ocf.autoscaling.explain.thresholds import Blocker, MetricThresholds, ValueRange

__all__ = ["others_change", "threshold_lines", "why"]

_FULL: Final = 100
_HOLDS: Final = {
    Rule.TOO_MANY: "maxReplicas is {maximum}",
    Rule.TOO_FEW: "minReplicas is {minimum}",
    Rule.SCALE_UP_LIMIT: "it may not grow faster",
    Rule.SCALE_DOWN_LIMIT: "it may not shrink faster",
    Rule.SCALE_UP_STABILIZED: "a lower recommendation within the window of growing holds it",
    Rule.SCALE_DOWN_STABILIZED: "a higher recommendation within the window of shrinking holds it",
    Rule.FAILED: "another metric failed, and on incomplete knowledge nothing shrinks",
}
_OTHERS: Final = {
    Rule.UNREADABLE: "The scale of the target has to be readable: does the target exist, and has it"
    " a scale subresource?",
    Rule.DISABLED: "Somebody has to set the replicas of the target to at least 1; from zero, only a workload that the"
    " controller took there comes back (HPAScaleToZero, and an Object or External metric).",
    Rule.ABOVE_MAXIMUM: "Metrics count once there are at most maxReplicas ({maximum}); that is so after this round.",
    Rule.BELOW_MINIMUM: "Metrics count once there are at least minReplicas ({minimum}); that is so after this round.",
    Rule.FAILED: "What is named above has to be mended first.",
}


def threshold_lines(lever: MetricThresholds, explanation: Explanation) -> Iterator[str]:
    """Tell what a metric would have to be.

    Args:
        lever: What it could change.
        explanation: What it is part of.
    """
    found = explanation.decision.trace.combination
    if found is None:
        return
    outcome = found.outcomes[lever.position]
    metric, result = outcome.metric, outcome.result
    if not isinstance(result, Calculation):
        return
    yield f"{outcome.name}, now {_value(lever.total, lever, metric)}:"
    rows = [(_range(span, lever, metric), _consequence(span), _is_here(span, lever.total)) for span in lever.spans]
    width = max(len(values) for values, _, _ in rows)
    for values, consequence, here in rows:
        yield f"  {'>' if here else ' '} {values.ljust(width)}  {consequence}"
    for block, direction in ((lever.cannot_grow, "more"), (lever.cannot_shrink, "fewer")):
        if block is not None:
            yield f"    no value gives {direction}: {_held_by(block, lever, explanation)}"


def others_change(explanation: Explanation) -> Iterator[str]:
    """Tell what would have to change where no metric has a say.

    Args:
        explanation: What it is part of.
    """
    trace = explanation.decision.trace
    text = _OTHERS.get(trace.decided_by)
    if text is not None:
        yield text.format(minimum=trace.minimum, maximum=trace.maximum)


def _value(total: int, lever: MetricThresholds, metric: Metric) -> str:
    """Write a total, and what it is per pod and of the requests."""
    written = amount(total, metric)
    notes = []
    if len(lever.pods) > 1:
        notes.append(f"{amount(total // len(lever.pods), metric)} per pod")
    if lever.requests:
        notes.append(f"{total * _FULL // lever.requests}%")
    return f"{written} ({', '.join(notes)})" if notes else written


def _range(span: ValueRange, lever: MetricThresholds, metric: Metric) -> str:
    if span == lever.spans[-1]:
        return f"from {_value(span.low, lever, metric)}" if span.low else "any value"
    if not span.low:
        return f"up to {_value(span.high, lever, metric)}"
    return f"{_value(span.low, lever, metric)} to {_value(span.high, lever, metric)}"


def _consequence(span: ValueRange) -> str:
    if not span.change:
        return f"no change, {span.first}"
    reach = f"{span.first}" if span.first == span.last else f"{span.first} to {span.last}"
    return f"{'more' if span.change > 0 else 'fewer'}, {reach}"


def _is_here(span: ValueRange, total: int) -> bool:
    return span.low <= total <= span.high


def _held_by(block: Blocker, lever: MetricThresholds, explanation: Explanation) -> str:
    reason = why(block.decision, lever)
    if block.release is None:
        return reason
    at = clock(block.release.at, explanation.decision.trace.now)
    latest = " at the latest" if explanation.guesses else ""
    return f"{reason}; at {at}{latest}, {block.release.replicas} would result"


def why(decision: Decision, lever: MetricThresholds) -> str:
    """Say what keeps a metric from changing anything.

    Args:
        decision: What is decided on the most extreme of its values.
        lever: The metric.
    """
    trace = decision.trace
    found, chosen, rule = trace.combination, trace.chosen, trace.decided_by
    if found is not None and chosen is not None and found.chosen != lever.position:
        wanted = 0 if found.replicas is None else found.replicas
        if wanted >= (trace.current or 0):
            return f"{chosen.name} wants {wanted}"
    return _HOLDS.get(rule, str(rule)).format(minimum=trace.minimum, maximum=trace.maximum)
