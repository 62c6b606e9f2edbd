"""The page about an autoscaler whose next sync cannot be repeated, as a right to read one of its inputs is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from ocf.autoscaling.algorithm import Autoscaler, Metric, Rule, Status
from ocf.autoscaling.explain import KnownHistory, explain_unknown
from ocf.autoscaling.explain.formatting import replica_count
from ocf.autoscaling.explain.reasons import target_text
from ocf.autoscaling.explain.text import Section
from ocf.cli.explain.answers import answers_of, unread_lines

if TYPE_CHECKING:
    from ocf.cli.explain.from_cluster import Observed

__all__ = ["partial_page"]

_LIMITS: Final = {
    Rule.TOO_MANY.value: "maxReplicas is {0.maximum}, and more were wanted",
    Rule.TOO_FEW.value: "minReplicas is {0.minimum}, and fewer were wanted",
    Rule.SCALE_UP_LIMIT.value: "the scale-up rate limit applied, and more were wanted",
    Rule.SCALE_DOWN_LIMIT.value: "the scale-down rate limit applied, and fewer were wanted",
}
_HELD: Final = {
    Rule.SCALE_DOWN_STABILIZED.value: "a higher recommendation in the scale-down window held the replicas",
    Rule.SCALE_UP_STABILIZED.value: "a lower recommendation in the scale-up window held the replicas",
}
_WITHOUT_INPUTS: Final = ("whyBackAndForth", "whoElseWrites")


def partial_page(observed: Observed) -> Iterator[Section]:
    """Render what is known without the inputs of a sync: the cause that the controller last reported comes first."""
    snapshot = observed.snapshot
    autoscaler, status = snapshot.autoscaler, snapshot.status
    scaled = f"{autoscaler.namespace}/{autoscaler.name} scales {autoscaler.kind} {autoscaler.target}"
    title = f"{scaled}, at {observed.now:%Y-%m-%d %H:%M:%S} UTC"
    allowed = f"allowed are {autoscaler.minimum} to {autoscaler.maximum}"
    lines = [f"{_cause(autoscaler, status)}."]
    if status.conditions:
        wanted = f"the result was {status.desired_replicas}"
        lines.append(f"{replica_count(status.current_replicas)} at that sync, {wanted}; {allowed}.")
    lines.append("The next result is not computed, as it would differ from the controller's without these inputs:")
    yield Section(title, (*lines, *(f"  {each}" for each in observed.forbidden)))
    known = KnownHistory(status, observed.now)
    explanation = explain_unknown(snapshot, known, settings=observed.settings, now=observed.now)
    explanation = explanation.among(owner=observed.surroundings.owner, written_by=observed.surroundings.written_by)
    questions = answers_of(explanation, observed.surroundings, _WITHOUT_INPUTS)
    yield Section("Questions", (*questions, *unread_lines(observed.surroundings, autoscaler.namespace)))
    yield Section("What the controller last reported", tuple(observed.lines()))


def _cause(autoscaler: Autoscaler, status: Status) -> str:
    """Return the cause of the last result, from the conditions of the status."""
    found = {each.type: each for each in status.conditions}
    if not found:
        return "No controller has synced this autoscaler yet"
    for kind in ("AbleToScale", "ScalingActive"):
        if kind in found and found[kind].status == "False":
            return f"The last sync could not decide: {found[kind].message} [{found[kind].reason}]"
    metrics = "; ".join(_measured(autoscaler, status))
    able, limited = (found[kind].reason if kind in found else "" for kind in ("AbleToScale", "ScalingLimited"))
    causes = [text.format(autoscaler) for text in (_LIMITS.get(limited), _HELD.get(able)) if text]
    if not causes and status.desired_replicas != status.current_replicas:
        causes = [f"it scaled from {status.current_replicas} to {status.desired_replicas}"]
    cause = " and ".join(causes) or "nothing held back what the metrics wanted"
    return f"At the last sync {cause}{f'; {metrics}' if metrics else ''}"


def _measured(autoscaler: Autoscaler, status: Status) -> Iterator[str]:
    """Yield the values of the status beside their targets; both have the order of the spec."""
    for metric, each in zip(autoscaler.metrics, status.to_manifest().get("currentMetrics") or (), strict=False):
        current: dict[str, Any] = dict((each.get(metric.source_field) or {}).get("current") or {})
        value = _value(metric, current)
        if value:
            yield f"{metric.name} was at {value}, target {target_text(metric)}"


def _value(metric: Metric, current: dict[str, Any]) -> str:
    if metric.target.utilization is not None and current.get("averageUtilization") is not None:
        return f"{current['averageUtilization']}%"
    if current.get("averageValue"):
        return f"{current['averageValue']} per pod"
    return f"{current['value']} in total" if current.get("value") else ""
