"""An explanation in words that a person can follow, step by step.

Lines are whole sentences or rows of a small table; two spaces in front make them belong to the line above. Whoever
shows them breaks long ones.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm import Limit, Rule, Stabilization
from ocf.autoscaling.explain.advice import advice
from ocf.autoscaling.explain.explanation import Explanation
from ocf.autoscaling.explain.formatting import clock, duration
from ocf.autoscaling.explain.metric_text import metric_lines
from ocf.autoscaling.explain.policy_text import policy_lines
from ocf.autoscaling.explain.stabilization_holds import Hold
from ocf.autoscaling.explain.threshold_text import others_change, threshold_lines

__all__ = ["BECAUSE", "Section", "render"]

BECAUSE: Final = {
    Rule.UNREADABLE: "the scale of the target cannot be read, so nothing is decided",
    Rule.DISABLED: "a workload at zero that this controller did not take there stays there",
    Rule.ABOVE_MAXIMUM: "there are more replicas than maxReplicas, and metrics are not looked at",
    Rule.BELOW_MINIMUM: "there are fewer replicas than minReplicas",
    Rule.FAILED: "the metrics that there are do not permit a decision",
    Rule.WITHIN_TOLERANCE: "what was measured is so close to its target that nothing is to be done",
    Rule.READY_PODS: "the metric gets its way: its ratio times the pods that are ready",
    Rule.FROM_ZERO: "the metric gets its way: its ratio, coming from zero",
    Rule.TOTAL: "the metric gets its way: its total divided by its target",
    Rule.FILLED_WITHIN_TOLERANCE: "with pods filled in that were not measured, it is close to its target",
    Rule.FILLED_TURNED_RATIO: "filling in pods that were not measured turns the ratio around, so nothing is done",
    Rule.FILLED_TURNED_COUNT: "filling in pods that were not measured turns the change around, so nothing is done",
    Rule.FILLED: "the metric gets its way, with pods filled in that were not measured",
    Rule.SCALE_UP_STABILIZED: "a lower recommendation within the window of growing holds it",
    Rule.SCALE_DOWN_STABILIZED: "a higher recommendation within the window of shrinking holds it",
    Rule.WITHIN_RANGE: "nothing limits it",
    Rule.TOO_FEW: "minReplicas allows no fewer",
    Rule.TOO_MANY: "maxReplicas allows no more",
    Rule.SCALE_UP_LIMIT: "it may not grow faster",
    Rule.SCALE_DOWN_LIMIT: "it may not shrink faster",
}
"""Why a rule had the last word."""


class Section(NamedTuple):
    """A part of an explanation.

    Args:
        title: What it is about.
        lines: What is to be said.
    """

    title: str
    lines: tuple[str, ...]


def render(explanation: Explanation) -> Iterator[Section]:
    """Tell how a decision came about, what is written, and what would have to change.

    Args:
        explanation: What is to be told.

    Yields:
        The parts in the order of the algorithm; one that has nothing to say is left out.
    """
    yield Section(_title(explanation), tuple(_result(explanation)))
    if explanation.range is not None and explanation.range.unknown:
        yield Section("What is not known", tuple(_unknown(explanation)))
    trace = explanation.decision.trace
    found = trace.combination
    for position, outcome in enumerate(found.outcomes if found is not None else ()):
        title, lines = metric_lines(outcome, explanation, counts=found is not None and position == found.chosen)
        yield Section(f"Metric {position + 1}: {title}", tuple(lines))
    if trace.problem:
        yield Section("Stopped", (trace.problem, *(() if found is not None else advice(trace.problem))))
    for each, title in _sides(explanation, apart=not explanation.exact):
        if each.decision.trace.stabilization is not None:
            yield Section(f"Stabilization{title}", tuple(_held(each, each.decision.trace.stabilization)))
        if each.decision.trace.limit is not None:
            yield Section(f"Limits{title}", tuple(_limited(each, each.decision.trace.limit)))
    if explanation.range is None or explanation.range.is_history_independent:
        yield Section("What the controller writes", tuple(_written(explanation)))
    for each, title in _sides(explanation, apart=True):
        told = (*_later(each), *(line for lever in each.thresholds for line in threshold_lines(lever, each)))
        if told or not each.thresholds:
            yield Section(f"What would have to change to scale{title}", told or tuple(others_change(each)))


def _sides(explanation: Explanation, *, apart: bool) -> Iterator[tuple[Explanation, str]]:
    """Yield both ends of what is possible, or the one that there is."""
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
    allowed = f"allowed are {trace.minimum} to {trace.maximum}"
    current = "The replicas are not known" if trace.current is None else f"{_replicas(trace.current)} now"
    yield f"{current}; {allowed}."
    if explanation.most is not None and not explanation.exact:
        most = explanation.most.decision.trace
        yield f"Between {trace.desired} and {_replicas(most.desired)} next, depending on what is not known."
        yield f"  {trace.desired}: {BECAUSE[trace.decided_by]} [{trace.decided_by}]."
        yield f"  {most.desired}: {BECAUSE[most.decided_by]} [{most.decided_by}]."
        return
    if trace.current is None:
        following = "Nothing is changed"
    elif trace.desired == trace.current:
        following = f"{_replicas(trace.desired)} next, no change"
    else:
        following = f"{_replicas(trace.desired)} next"
    yield f"{following}: {BECAUSE[trace.decided_by]} [{trace.decided_by}]."


def _replicas(count: int) -> str:
    return f"{count} replica" if count == 1 else f"{count} replicas"


def _unknown(explanation: Explanation) -> Iterator[str]:
    found = explanation.range
    if found is None:
        return
    yield "Another controller runs this autoscaler, and its memory cannot be read:"
    for each in found.unknown:
        yield f"  {each}"
    yield f"After watching for {duration(found.watch)}, it is known."
    if explanation.exact:
        yield "It makes no difference now: every history that the status permits gives this result."
    else:
        yield "Every history that the status permits gives a result between the two; both are possible."


def _held(explanation: Explanation, step: Stabilization) -> Iterator[str]:
    trace, hold = explanation.decision.trace, explanation.hold
    if step.rule is None:
        yield f"{step.wanted} wanted, and nothing in the window keeps it from that."
        return
    if hold is None:
        # The envelope may also end at the size that there is.
        yield f"{step.wanted} wanted; recommendations on both sides of {trace.current} keep it: {step.replicas}."
    else:
        yield from _holding(explanation, hold, step)
    yield from _repeated(step)


def _holding(explanation: Explanation, hold: Hold, step: Stabilization) -> Iterator[str]:
    now, since = explanation.decision.trace.now, hold.recommendation.at
    at, until = clock(since, now), clock(hold.until, now)
    kept = "stays" if step.replicas == explanation.decision.trace.current else "for now"
    count = hold.recommendation.replicas
    if since == now and not explanation.guesses:
        yield f"{step.wanted} wanted, but a controller begins with the size it finds, {count}: {step.replicas} {kept}."
        yield f"That lets go at {until}, in {duration(hold.until - now)}."
        return
    if explanation.assumes(since):
        yield f"{step.wanted} wanted, but {count} may have been recommended as late as {at}: {step.replicas} {kept}."
        yield f"It lets go at {until} at the latest, if nothing repeats it."
        return
    yield f"{step.wanted} wanted, but {count} was recommended at {at}: {step.replicas} {kept}."
    yield f"It lets go at {until}, in {duration(hold.until - now)}, if nothing repeats it."


def _repeated(step: Stabilization) -> Iterator[str]:
    if step.lowest is not None and step.lowest != step.highest:
        yield f"Within the windows, the lowest recommendation is {step.lowest}, the highest {step.highest}."


def _limited(explanation: Explanation, step: Limit) -> Iterator[str]:
    trace, behavior = explanation.decision.trace, explanation.decision.snapshot.autoscaler.behavior
    yield f"minReplicas {trace.minimum}, maxReplicas {trace.maximum}."
    if behavior is None:
        settings = explanation.settings
        factor, least = settings.scale_up_limit_factor, settings.scale_up_limit_minimum
        if step.rate is not None:
            yield f"Without a behavior, one round may grow to {factor:g} times the size, or to {least:g}: {step.rate}."
    else:
        yield from policy_lines(explanation, step)
    became = f"stays {step.replicas}" if step.replicas == step.wanted else f"becomes {step.replicas}"
    yield f"{step.wanted} {became} [{step.rule}]."
    if trace.raised_to_minimum:
        yield f"Coming back from zero, it is raised to the minimum of {trace.minimum}."


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


def _later(explanation: Explanation) -> Iterator[str]:
    release, trace = explanation.release, explanation.decision.trace
    if release is not None:
        at = clock(release.at, trace.now) + (" at the latest" if explanation.guesses else "")
        yield f"Nothing but time: if all stays as it is, {_replicas(release.replicas)} result at {at}."
