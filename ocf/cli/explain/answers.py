"""The five questions that users ask about an autoscaler, answered from its decision and what surrounds it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm import Rule
from ocf.autoscaling.algorithm.metric_proposals import Failure
from ocf.autoscaling.algorithm.replica_calculator import Calculation
from ocf.autoscaling.explain.explanation import Explanation
from ocf.autoscaling.explain.formatting import clock, duration, replica_count
from ocf.autoscaling.explain.next_syncs import windows
from ocf.autoscaling.explain.reasons import measured_clause, odd_clause
from ocf.autoscaling.explain.text import Section, cause_of
from ocf.cli.explain.surroundings import Rescale, Surroundings, role_command
from ocf.ownership.snapshot import FORBIDDEN

__all__ = ["Answer", "answers", "answers_of", "answers_section", "unread_lines"]

_KEPT: Final = (Rule.FILLED_WITHIN_TOLERANCE, Rule.FILLED_TURNED_RATIO, Rule.FILLED_TURNED_COUNT)
"""The rules by which pods without a sample that counts keep the replicas."""
_RECENT: Final = timedelta(hours=1)
_TITLE: Final = "Questions"


class Answer(NamedTuple):
    """A question with its answer."""

    key: str
    question: str
    text: str


def answers(explanation: Explanation, surroundings: Surroundings) -> Iterator[Answer]:
    """Answer the five questions.

    Args:
        explanation: The explanation of the next sync.
        surroundings: What surrounds the autoscaler.
    """
    yield Answer("whySoMany", "Why so many?", _why_so_many(explanation, surroundings))
    yield Answer("whySoFew", "Why so few?", _why_so_few(explanation, surroundings))
    yield Answer("whyNotNow", "Why not now?", _why_not_now(explanation))
    yield Answer("whyBackAndForth", "Why back and forth?", _why_back_and_forth(explanation, surroundings))
    target = explanation.decision.snapshot.autoscaler.kind
    yield Answer("whoElseWrites", "Who else writes?", _who_else_writes(surroundings, target))


def answers_section(explanation: Explanation, surroundings: Surroundings) -> Section:
    """Return the answers as a section of the page."""
    lines = [f"{each.question} {each.text}" for each in answers(explanation, surroundings)]
    namespace = explanation.decision.snapshot.autoscaler.namespace
    return Section(_TITLE, (*lines, *unread_lines(surroundings, namespace)))


def answers_of(explanation: Explanation, surroundings: Surroundings, keys: Collection[str]) -> Iterator[str]:
    """Yield some questions with their answers."""
    for each in answers(explanation, surroundings):
        if each.key in keys:
            yield f"{each.question} {each.text}"


def unread_lines(surroundings: Surroundings, namespace: str) -> Iterator[str]:
    """Yield a line for each object, or kind, that could not be read, and the command that prints the rights."""
    for each in surroundings.unread:
        yield f"Not read, so that answers may be incomplete: {each}"
    if any(FORBIDDEN in each.problem for each in surroundings.unread):
        yield f"{role_command(namespace)} prints a Role with all permissions that explain needs."


def _why_so_many(explanation: Explanation, surroundings: Surroundings) -> str:
    most = explanation.most or explanation
    trace = most.decision.trace
    if trace.current is None:
        return f"Not known: {cause_of(most)}."
    if trace.current == trace.minimum:
        return f"{replica_count(trace.current)} are minReplicas." if trace.current != 1 else "1 replica is minReplicas."
    rollout = _rollout(surroundings)
    least = explanation.decision.trace
    if least.desired < trace.current <= trace.desired:
        return f"Perhaps they become {least.desired} at the next sync: {cause_of(explanation)}.{rollout}"
    if trace.desired < trace.current:
        return f"They become {trace.desired} at the next sync: {cause_of(most)}.{rollout}"
    return f"{replica_count(trace.desired)} next: {cause_of(most)}.{rollout}"


def _why_so_few(explanation: Explanation, surroundings: Surroundings) -> str:
    trace = explanation.decision.trace
    if trace.current is None:
        return f"Not known: {cause_of(explanation)}."
    found = trace.combination
    if trace.desired > trace.current:
        return f"More come with the next sync: {trace.desired}.{_rollout(surroundings)}"
    most = explanation.most
    if most is not None and most.decision.desired > trace.current:
        count = most.decision.desired
        return f"More may come with the next sync, up to {count}: {cause_of(most)}.{_rollout(surroundings)}"
    if found is None or found.replicas is None or found.replicas > trace.current:
        return f"{replica_count(trace.desired)} next: {cause_of(explanation)}."
    wants = [
        f"{measured_clause(each.metric, each.result)} and wants {each.result.replicas}"
        for each in found.outcomes
        if isinstance(each.result, Calculation)
    ]
    failed = [each.metric.name for each in found.outcomes if isinstance(each.result, Failure)]
    more = f"; {' and '.join(failed)} could not be evaluated" if failed else ""
    return f"No metric wants more: {'; '.join(wants)}{more}.{_rollout(surroundings)}"


def _rollout(surroundings: Surroundings) -> str:
    sets = surroundings.generations
    if len(sets) < 2:  # noqa: PLR2004 (an old and a new one)
        return ""
    each = ", ".join(f"{one.name} with {one.ready} of {one.replicas} ready" for one in sets)
    return f" A rollout is in progress: ReplicaSets {each}."


def _why_not_now(explanation: Explanation) -> str:
    trace = explanation.decision.trace
    bounds = [each for each in (explanation, explanation.most) if each is not None]
    if trace.current is None or trace.problem:
        return f"The controller cannot decide: {cause_of(explanation)}."
    if all(each.decision.rescale for each in bounds):
        counts = sorted({trace.desired, bounds[-1].decision.desired})
        text = replica_count(counts[-1]) if len(counts) == 1 else f"between {counts[0]} and {counts[-1]} replicas"
        return f"It does scale, to {text}, at the next sync."
    held = next((each for each in bounds if each.release is not None), None)
    if held is not None and held.release is not None:
        count, at = held.release.replicas, held.named(held.release.at)
        return f"{_capital(cause_of(held))}. If no measurement changes, {count} at {at}."
    scaling = next((each for each in bounds if each.decision.rescale), None)
    if scaling is not None:
        size = replica_count(scaling.decision.desired)
        return f"It may scale, to {size}, at the next sync: {cause_of(scaling)}."
    chosen = None if trace.chosen is None else trace.chosen.result
    wants_other = trace.stabilization is not None and trace.stabilization.wanted != trace.current
    kept = isinstance(chosen, Calculation) and chosen.rule in _KEPT
    if wants_other or kept or odd_clause(explanation.decision, explanation.history, explanation.settings):
        return f"{_capital(cause_of(bounds[-1]))}."
    return f"Nothing is held back: the metrics want {replica_count(trace.current)}, as many as there are."


def _why_back_and_forth(explanation: Explanation, surroundings: Surroundings) -> str:
    now = explanation.decision.trace.now
    recent = [each for each in surroundings.rescales if now - each.at <= _RECENT]
    up, down = (sum(each.times for each in recent if each.is_up is is_up) for is_up in (True, False))
    if surroundings.has_unread("Event"):
        return "Not known: the events could not be read."
    if not recent:
        return "No event of the last hour reports a rescale."
    what = f"In the last hour {up} up and {down} down, {clock(recent[-1].at, now)} to {clock(recent[0].at, now)}"
    if not up or not down:
        return f"It does not: {what[0].lower()}{what[1:]}."
    others = [each for each in surroundings.others if each.at is not None and now - each.at <= _RECENT]
    out_of_range = [each for each in recent if "Spec.M" in each.reason]
    if others and out_of_range:
        return (
            f"{what}. {others[0].name} writes the replicas as well, out of the limits, and the controller corrects it."
        )
    if others:
        return f"{what}. {others[0].name} writes the replicas as well (last at {clock(others[0].at or now, now)})."
    return f"{what}. {_short_window(explanation, recent)}"


def _short_window(explanation: Explanation, recent: Sequence[Rescale]) -> str:
    window, _ = windows(explanation.decision.snapshot.autoscaler, explanation.settings)
    field = explanation.field("spec.behavior.scaleDown.stabilizationWindowSeconds")
    ups = sorted(each.at for each in recent if each.is_up)
    apart = max((later - earlier for earlier, later in pairwise(ups)), default=timedelta())
    if apart <= window:
        return (
            f"The load itself changes by more than the tolerance and the window of {duration(window) or '0s'} even out."
        )
    seconds = int(apart.total_seconds())
    return (
        f"Scale-ups are up to {duration(apart)} apart, longer than the scale-down window ({duration(window) or '0s'}):"
        f" {field} of {seconds} or more keeps the higher count between them."
    )


def _who_else_writes(surroundings: Surroundings, target: str) -> str:
    found = [
        f"{each.name}{' through the scale subresource' if each.scales else ''}"
        f"{'' if each.at is None else f' (last write {each.at:%Y-%m-%d %H:%M:%S} UTC)'}"
        for each in surroundings.others
    ]
    parts = []
    if surroundings.owner:
        parts.append(f"{surroundings.owner} controls this autoscaler and reverts changes of its fields.")
    if found:
        parts.append(f"Field managers that own spec.replicas of the target: {', '.join(found)}.")
    if surroundings.scalers:
        parts.append(f"Other autoscalers of the same target: {', '.join(surroundings.scalers)}.")
    for name, resources in surroundings.verticals:
        parts.append(f"{name} sets the {resources} requests of the pods, of which the utilization is a percentage.")
    unread = [
        what
        for what, kinds in (
            ("which field managers own spec.replicas of the target", (target,)),
            ("which other autoscalers scale it", ("HorizontalAutoscaler", "HorizontalPodAutoscaler", "ScaledObject")),
            ("whether a VerticalPodAutoscaler sets requests", ("VerticalPodAutoscaler",)),
        )
        if surroundings.has_unread(*kinds)
    ]
    if unread:
        parts.append(f"Not known, as not everything could be read: {' and '.join(unread)}.")
    elif not found and not surroundings.scalers:
        known = "no other field manager owns spec.replicas of the target, and no other autoscaler scales it"
        parts.append(f"{'Otherwise n' if parts else 'N'}{known[1:]}.")
    return " ".join(parts)


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
