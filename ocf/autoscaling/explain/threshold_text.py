"""Text of the metric thresholds: which values would change the number of replicas."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from ocf.autoscaling.algorithm import Decision, Metric, Rule
from ocf.autoscaling.algorithm.replica_calculator import Calculation
from ocf.autoscaling.explain.explanation import Explanation
from ocf.autoscaling.explain.formatting import amount, bounded_amount
from ocf.autoscaling.explain.levers import Lever
from ocf.autoscaling.explain.next_syncs import HoldRelease
from ocf.autoscaling.explain.thresholds import Change, LaterChange, MetricThresholds, ValueRange

__all__ = [
    "blocker_text",
    "later_lever_lines",
    "lever_lines",
    "release_text",
    "required_changes",
    "threshold_lines",
    "way_lines",
]

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
    if thresholds.total < 0:
        # The ranges begin with 0; what a negative total does depends on the release.
        replicas, present = explanation.decision.desired, explanation.decision.trace.current or 0
        negative = ValueRange(thresholds.total, -1, _sign(replicas - present), replicas, replicas)
        rows.insert(0, (amount(thresholds.total, metric), _consequence(negative), True))
    width = max(len(values) for values, _, _ in rows)
    for values, consequence, here in rows:
        yield f"  {'>' if here else ' '} {values.ljust(width)}  {consequence}"
    for blocker, later, direction in (
        (thresholds.cannot_grow, thresholds.grows_later, "more"),
        (thresholds.cannot_shrink, thresholds.shrinks_later, "fewer"),
    ):
        if blocker is not None:
            yield f"    no value gives {direction} now: {blocker_text(blocker.decision, thresholds)}"
        if later is not None:
            yield f"    {_later(later, thresholds, metric)}: {direction}, {release_text(later.release, explanation)}"


def required_changes(explanation: Explanation) -> Iterator[str]:
    """Render what must change before metrics are evaluated.

    Args:
        explanation: An explanation without thresholds.
    """
    trace = explanation.decision.trace
    if trace.decided_by is Rule.DISABLED and explanation.owner:
        yield f"{explanation.owner} controls this autoscaler, and decides when the target leaves 0 replicas."
        return
    text = _REQUIRED_CHANGES.get(trace.decided_by)
    if text is not None:
        yield text.format(minimum=trace.minimum, maximum=trace.maximum)


_SIDES: Final = {1: "{value} or more", -1: "{value} or less", 0: "{value}"}


def _lever_value(lever: Lever) -> str:
    return _SIDES[0 if lever.is_last else lever.side].format(value=lever.value)


def lever_lines(explanation: Explanation) -> Iterator[str]:
    """Render fields with which the number of replicas would differ.

    Yields:
        A line per field, and one per value below it.
    """
    for (field, present), several in groupby(explanation.levers, key=lambda each: (each.field, each.present)):
        yield f"{explanation.field(field)}, now {present}:"
        for each in several:
            yield f"  {_lever_value(each)}: {'more' if each.change > 0 else 'fewer'}, {each.replicas}"


def later_lever_lines(explanation: Explanation) -> Iterator[str]:
    """Render fields with which the number of replicas would differ at a later sync."""
    for (field, present), several in groupby(
        explanation.later_levers, key=lambda each: (each.lever.field, each.lever.present)
    ):
        yield f"{explanation.field(field)}, now {present}:"
        for lever, release in several:
            side = "more" if lever.change > 0 else "fewer"
            yield f"  {_lever_value(lever)}: {side}, {release_text(release, explanation)}"


def way_lines(explanation: Explanation) -> Iterator[str]:
    """Render the nearest ways to fewer and to more replicas: by time, by the deciding metric, and by a field."""
    for direction, word in ((-1, "Fewer"), (1, "More")):
        # Of a range, the end for which the direction is harder, so that the way holds for both.
        bound = explanation.most or explanation if direction < 0 else explanation
        found = list(_ways(bound, direction))
        if found:
            yield f"{word}: {'; or '.join(found)}."


def _ways(explanation: Explanation, direction: int) -> Iterator[str]:
    trace, release = explanation.decision.trace, explanation.release
    if release is not None and (release.replicas - (trace.current or 0)) * direction > 0:
        yield f"if no measurement changes, {release_text(release, explanation)}"
    chosen = None if trace.combination is None else trace.combination.chosen
    for each in explanation.thresholds:
        if each.position == chosen:
            yield from _metric_way(each, explanation, direction)
    # Of a range, the result of this end may itself be another number than the present one.
    base = trace.desired if explanation.exact else trace.current or 0
    now = [
        each
        for each in explanation.levers
        if each.change * direction > 0
        and (each.replicas - base) * direction > 0
        # While the metrics fail, a limit only hides the cause.
        and not (trace.decided_by is Rule.FAILED and _is_bound(each.field))
        # A limit that is only good in between brings the present replicas into range, whatever the metrics say.
        and (each.side or not _is_bound(each.field))
    ]
    later = [each for each in explanation.later_levers if each.lever.change * direction > 0]
    best = min((*now, *(each.lever for each in later)), key=lambda each: _is_bound(each.field), default=None)
    if best is not None:
        at = next((each.release for each in later if each.lever is best), None)
        result = f"{best.replicas} now" if at is None else release_text(at, explanation)
        yield f"{explanation.field(best.field)} {_lever_value(best)} (now {best.present}): {result}"


def _metric_way(thresholds: MetricThresholds, explanation: Explanation, direction: int) -> Iterator[str]:
    metric = explanation.decision.snapshot.autoscaler.metrics[thresholds.position]
    subject = f"{metric.name} of container {metric.container}" if metric.container else metric.name
    values = thresholds.more if direction > 0 else thresholds.fewer
    later = thresholds.grows_later if direction > 0 else thresholds.shrinks_later
    if values is not None and not values.low <= thresholds.total <= values.high:
        above = values.low > thresholds.total
        replicas = values.first if above else values.last
        if (replicas - explanation.decision.desired) * direction <= 0:
            return
        yield f"{subject} {_values(values, thresholds, metric)}: {replicas} now"
    elif later is not None and later.side:
        yield f"{subject} {_later(later, thresholds, metric)}: {release_text(later.release, explanation)}"


def _is_bound(field: str) -> bool:
    """Return whether a field is a limit: a reader asks for the target or the policy first."""
    return field in {"spec.minReplicas", "spec.maxReplicas"}


def _value(total: int, thresholds: MetricThresholds, metric: Metric, *, up: bool = False) -> str:
    """Render a total, with its share per pod and of the requests.

    Args:
        up: Whether it is a lower bound, so that rounding makes it larger.
    """
    written = bounded_amount(total, metric, up=up)
    notes = []
    if len(thresholds.pods) > 1:
        notes.append(f"{bounded_amount(total // len(thresholds.pods), metric, up=up)} per pod")
    if thresholds.requests:
        notes.append(f"{total * _FULL // thresholds.requests}%")
    return f"{written} ({', '.join(notes)})" if notes else written


def _values(values: ValueRange, thresholds: MetricThresholds, metric: Metric) -> str:
    return _between(values.low, None if values == thresholds.ranges[-1] else values.high, thresholds, metric)


def _between(low: int, high: int | None, thresholds: MetricThresholds, metric: Metric) -> str:
    """Render the values from a low to a high one; without a high one, all larger values."""
    least = _value(low, thresholds, metric, up=True)
    if high is None:
        return f"from {least}" if low else "any value"
    most = _value(high, thresholds, metric)
    if low == high:
        return most
    return f"{least} to {most}" if low or thresholds.total < 0 else f"up to {most}"


def _consequence(values: ValueRange) -> str:
    if not values.change:
        return f"no change, {values.first}"
    replicas = f"{values.first}" if values.first == values.last else f"{values.first} to {values.last}"
    return f"{'more' if values.change > 0 else 'fewer'}, {replicas}"


def _sign(change: int) -> Change:
    return 0 if not change else 1 if change > 0 else -1


def _contains(values: ValueRange, total: int) -> bool:
    return values.low <= total <= values.high


def _later(later: LaterChange, thresholds: MetricThresholds, metric: Metric) -> str:
    if not later.side:
        return "if it does not change"
    values = [_between(low, high, thresholds, metric) for low, high in later.ranges]
    return f"{' and '.join(values)}, unchanged from the next sync on"


def release_text(release: HoldRelease, explanation: Explanation) -> str:
    """Return the replicas of a later sync with its time."""
    return f"{release.replicas} at {explanation.named(release.at)}"


def blocker_text(decision: Decision, thresholds: MetricThresholds) -> str:
    """Return why a metric cannot change the number of replicas in one direction."""
    trace = decision.trace
    found, chosen, rule = trace.combination, trace.chosen, trace.decided_by
    if found is not None and chosen is not None and found.chosen != thresholds.position:
        wanted = 0 if found.replicas is None else found.replicas
        if wanted >= (trace.current or 0):
            return f"{chosen.name} wants {wanted}"
    return _BLOCKER_TEXT.get(rule, str(rule)).format(minimum=trace.minimum, maximum=trace.maximum)
