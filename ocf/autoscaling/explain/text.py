"""An explanation as text for people, in the order of the algorithm.

Each line is a sentence or a row of a small table. A line that starts with two spaces belongs to the line above it.
Lines are not wrapped; the caller does that.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm import Limit, Rule, Stabilization
from ocf.autoscaling.explain.advice import advice
from ocf.autoscaling.explain.explanation import Explanation
from ocf.autoscaling.explain.formatting import clock, duration, known_count, replica_count
from ocf.autoscaling.explain.last_sync import MOST
from ocf.autoscaling.explain.metric_text import metric_lines
from ocf.autoscaling.explain.policy_text import policy_lines
from ocf.autoscaling.explain.reasons import odd_clause, reason_of
from ocf.autoscaling.explain.stabilization_holds import Hold
from ocf.autoscaling.explain.threshold_text import (
    later_lever_lines,
    lever_lines,
    required_changes,
    threshold_lines,
    way_lines,
)

__all__ = ["Section", "cause_of", "render", "render_steps"]


class Section(NamedTuple):
    """A section of the text."""

    title: str
    lines: tuple[str, ...]


def render(explanation: Explanation) -> Iterator[Section]:
    """Render an explanation: how the decision was made, what is written, and what would change it.

    Args:
        explanation: The explanation.

    Yields:
        The sections in the order of the algorithm, without empty ones.
    """
    yield Section(_title(explanation), (*_result(explanation), *way_lines(explanation), *_counts(explanation)))
    if explanation.range is not None and explanation.range.unknown:
        yield Section("What is not known", tuple(_unknown(explanation)))
    yield from _steps(explanation)
    if explanation.range is None or explanation.range.is_history_independent:
        yield Section("What the controller writes", tuple(_written(explanation)))
    for each, title in _bounds(explanation, apart=True):
        yield from _changes(each, title)


def render_steps(explanation: Explanation) -> Iterator[str]:
    """Render how the decision was made, without what would change it.

    Yields:
        The result, and for each step a line and the lines that belong to it.
    """
    yield from _result(explanation)
    yield from _counts(explanation)
    for section in _steps(explanation):
        yield section.title
        for line in section.lines:
            yield line if line.startswith("  ") else f"  {line}"


def _steps(explanation: Explanation) -> Iterator[Section]:
    trace = explanation.decision.trace
    found = trace.combination
    for position, outcome in enumerate(found.outcomes if found is not None else ()):
        title, lines = metric_lines(outcome, explanation, chosen=found is not None and position == found.chosen)
        yield Section(f"Metric {position + 1}: {title}", tuple(lines))
    if trace.problem:
        yield Section("Stopped", (trace.problem, *(() if found is not None else advice(trace.problem))))
    for each, title in _bounds(explanation, apart=not explanation.exact):
        if each.decision.trace.stabilization is not None:
            yield Section(f"Stabilization{title}", tuple(_stabilization(each, each.decision.trace.stabilization)))
        if each.decision.trace.limit is not None:
            yield Section(f"Limits{title}", tuple(_limits(each, each.decision.trace.limit)))


def _changes(explanation: Explanation, title: str) -> Iterator[Section]:
    lines = [line for each in explanation.thresholds for line in threshold_lines(each, explanation)]
    lines = [*_release(explanation), *lines]
    if lines or not explanation.thresholds:
        yield Section(f"What would have to change to scale{title}", tuple(lines or required_changes(explanation)))
    if explanation.levers:
        yield Section(f"Fields with another result{title}", tuple(lever_lines(explanation)))
    if explanation.later_levers:
        later = "Fields with another result later, if no measurement changes"
        yield Section(f"{later}{title}", tuple(later_lever_lines(explanation)))


def _bounds(explanation: Explanation, *, apart: bool) -> Iterator[tuple[Explanation, str]]:
    """Yield the explanations of both ends of the range, or the only one, each with the end of its titles."""
    if explanation.most is None or not apart:
        yield explanation, ""
        return
    yield explanation, ", if the history permits the fewest"
    yield explanation.most, ", if the history permits the most"


def _title(explanation: Explanation) -> str:
    autoscaler = explanation.decision.snapshot.autoscaler
    scaled = f"{autoscaler.kind} {autoscaler.target}".strip() or "nothing"
    at = f"{explanation.decision.trace.now:%Y-%m-%d %H:%M:%S} UTC"
    return f"{autoscaler.namespace}/{autoscaler.name} scales {scaled}, at {at}"


def _result(explanation: Explanation) -> Iterator[str]:
    trace = explanation.decision.trace
    if explanation.most is not None and not explanation.exact:
        most = explanation.most.decision.trace
        between = f"Between {trace.desired} and {replica_count(most.desired)} next"
        yield f"{between}, as the controller's memory is not known: {cause_of(explanation)} [{trace.decided_by}]."
        kept = trace.desired if explanation.range is None else explanation.range.least_without_restart
        if kept > trace.desired:
            yield f"  Unless the controller has restarted since its last sync, at least {kept}."
        yield f"  {most.desired}: {cause_of(explanation.most)} [{most.decided_by}]."
        return
    if trace.current is None:
        following = "Nothing is changed"
    elif trace.desired == trace.current:
        following = f"{replica_count(trace.desired)} next, no change"
    else:
        following = f"{replica_count(trace.desired)} next"
    yield f"{following}: {cause_of(explanation)} [{trace.decided_by}]."


def _counts(explanation: Explanation) -> Iterator[str]:
    """Yield what follows the ways to other counts, which a reader looks for in the first lines."""
    trace = explanation.decision.trace
    reason = _reason(explanation)
    if explanation.exact and reason != cause_of(explanation):
        yield f"With all pods that are counted: {reason}."
    current = "The replicas are not known" if trace.current is None else f"{replica_count(trace.current)} now"
    yield f"{current}; allowed are {trace.minimum} to {trace.maximum}."


def cause_of(explanation: Explanation) -> str:
    """Return the cause of the decision as a clause: pods of others if they change it, otherwise the rule."""
    odd = odd_clause(explanation.decision, explanation.history, explanation.settings)
    return odd or _reason(explanation)


_WRITTEN: Final = (Rule.DISABLED, Rule.ABOVE_MAXIMUM, Rule.BELOW_MINIMUM)


def _reason(explanation: Explanation) -> str:
    decision, hold = explanation.decision, explanation.hold
    assumed = hold is not None and explanation.is_assumed(hold.recommendation.at)
    restarted = explanation.range is not None and explanation.range.least_without_restart > decision.desired
    reason = reason_of(decision, explanation.settings, hold=hold, assumed=assumed, restarted=restarted)
    by = explanation.written_by if decision.trace.decided_by in _WRITTEN else ""
    return f"{reason}; {by}" if by else reason


def _unknown(explanation: Explanation) -> Iterator[str]:
    found = explanation.range
    if found is None:
        return
    yield "Another controller runs this autoscaler, and its memory cannot be read:"
    for each in found.unknown:
        yield f"  {each}"
    yield f"It is known after watching for {duration(found.watch)}."
    if explanation.exact:
        yield "It makes no difference now: every history that the status permits gives this result."
    else:
        yield "Every history that the status permits gives a result between the two; both are possible."


def _stabilization(explanation: Explanation, step: Stabilization) -> Iterator[str]:
    if step.rule is None or explanation.hold is None:
        yield f"{step.wanted} wanted; no recommendation in the window prevents it."
        return
    yield from _hold(explanation, explanation.hold, step)
    yield from _window_extremes(step)


def _hold(explanation: Explanation, hold: Hold, step: Stabilization) -> Iterator[str]:
    now, since = explanation.decision.trace.now, hold.recommendation.at
    at, until = clock(since, now), _until(explanation, hold)
    kept = "stays" if step.replicas == explanation.decision.trace.current else "for now"
    count = known_count(hold.recommendation.replicas)
    least = "that" if hold.recommendation.replicas >= MOST else count
    again = f"unless {least} or {'fewer' if step.replicas < step.wanted else 'more'} are recommended again"
    if since == now and not explanation.has_unknown_history:
        yield f"{step.wanted} wanted, but a controller starts with the current size, {count}: {step.replicas} {kept}."
        yield f"The hold ends {until}, in {duration(hold.until - now)}."
        return
    if explanation.is_assumed(since):
        yield (
            f"{step.wanted} wanted, but {count} may have been recommended as late as {at}:"
            f" {known_count(step.replicas)} {kept}."
        )
        yield f"The hold ends {until} at the latest, {again}."
        return
    yield f"{step.wanted} wanted, but {count} was recommended at {at}: {step.replicas} {kept}."
    yield f"The hold ends {until}, in {duration(hold.until - now)}, {again}."


def _until(explanation: Explanation, hold: Hold) -> str:
    """Return the end of a hold; without a `behavior`, a recommendation exactly as old as the window still counts."""
    word = "after" if explanation.decision.snapshot.autoscaler.behavior is None else "at"
    return f"{word} {clock(hold.until, explanation.decision.trace.now)}"


def _window_extremes(step: Stabilization) -> Iterator[str]:
    if step.lowest is not None and step.lowest != step.highest:
        highest = known_count(step.highest or 0)
        yield f"Within the windows, the lowest recommendation is {step.lowest}, the highest {highest}."


def _limits(explanation: Explanation, step: Limit) -> Iterator[str]:
    trace, behavior = explanation.decision.trace, explanation.decision.snapshot.autoscaler.behavior
    yield f"minReplicas {trace.minimum}, maxReplicas {trace.maximum}."
    if behavior is None:
        settings = explanation.settings
        factor, least = settings.scale_up_limit_factor, settings.scale_up_limit_minimum
        if step.rate is not None:
            yield f"Without a behavior, one sync allows {factor:g} times the replicas, or {least:g}: {step.rate}."
    else:
        yield from policy_lines(explanation, step)
    wanted = known_count(step.wanted)
    became = f"stays {step.replicas}" if step.replicas == step.wanted else f"becomes {step.replicas}"
    yield f"{wanted[0].upper()}{wanted[1:]} {became} [{step.rule}]."
    if trace.raised_to_minimum:
        yield f"Scaling up from zero, it is raised to the minimum of {trace.minimum}."


def _written(explanation: Explanation) -> Iterator[str]:
    decision = explanation.decision
    for condition in decision.status.conditions:
        yield f"{condition.type}={condition.status} {condition.reason}"
        yield f"  {condition.message}"
    for event in decision.events:
        yield f"Event {event.type} {event.reason}"
        yield f"  {event.message}"
    if decision.error is not None:
        yield f"Error ({decision.error.kind})"
        yield f"  {decision.error.message}"


def _release(explanation: Explanation) -> Iterator[str]:
    release = explanation.release
    if release is not None:
        yield (
            f"Only time: if no measurement changes, {replica_count(release.replicas)} result at"
            f" {explanation.named(release.at)}."
        )
