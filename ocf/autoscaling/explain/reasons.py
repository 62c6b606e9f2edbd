"""The reason of a decision in one clause: the rule that decided, with the metrics and pods that it is about."""

from typing import Final

from ocf.autoscaling.algorithm import Decision, Rule
from ocf.autoscaling.algorithm.metric_proposals import Combination, Failure
from ocf.autoscaling.algorithm.replica_calculator import Calculation

__all__ = ["reason_of"]

_TEXT: Final = {
    Rule.UNREADABLE: "the scale of the target cannot be read, so nothing is changed",
    Rule.DISABLED: "autoscaling is disabled, as the target has 0 replicas and this controller did not scale it there",
    Rule.ABOVE_MAXIMUM: "there are more replicas than maxReplicas, so metrics are not evaluated",
    Rule.BELOW_MINIMUM: "there are fewer replicas than minReplicas, so metrics are not evaluated",
    Rule.WITHIN_TOLERANCE: "the metric is within the tolerance of its target",
    Rule.READY_PODS: "the metric decides: its ratio times the ready pods",
    Rule.FROM_ZERO: "the metric decides: its ratio, scaling from zero",
    Rule.TOTAL: "the metric decides: its total divided by its target",
    Rule.FILLED_WITHIN_TOLERANCE: "with values assumed for {pods}, the metric is within the tolerance",
    Rule.FILLED_TURNED_RATIO: "values assumed for {pods} reverse the ratio, so nothing is changed",
    Rule.FILLED_TURNED_COUNT: "values assumed for {pods} reverse the change, so nothing is changed",
    Rule.FILLED: "the metric decides, with values assumed for {pods}",
    Rule.SCALE_UP_STABILIZED: "a lower recommendation in the scale-up window holds it",
    Rule.SCALE_DOWN_STABILIZED: "a higher recommendation in the scale-down window holds it",
    Rule.WITHIN_RANGE: "no limit applies",
    Rule.TOO_FEW: "minReplicas allows no fewer",
    Rule.TOO_MANY: "maxReplicas allows no more",
    Rule.SCALE_UP_LIMIT: "the scale-up rate limit applies",
    Rule.SCALE_DOWN_LIMIT: "the scale-down rate limit applies",
}


def reason_of(decision: Decision) -> str:
    """Return the reason of a decision.

    Returns:
        A clause without capital letter and full stop.

    Example:
        >>> from datetime import UTC, datetime
        >>> from ocf.autoscaling.algorithm import Autoscaler, Scale, Snapshot, decide
        >>> seen = Snapshot(autoscaler=Autoscaler(name="web", maximum=9), scale=Scale(11, 11, "app=web"))
        >>> reason_of(decide(seen, now=datetime(2026, 1, 31, tzinfo=UTC)))
        'there are more replicas than maxReplicas, so metrics are not evaluated'
    """
    trace = decision.trace
    if trace.decided_by is Rule.FAILED:
        return _failed(trace.combination)
    chosen = None if trace.chosen is None else trace.chosen.result
    pods = _assumed(chosen) if isinstance(chosen, Calculation) else ""
    return _TEXT[trace.decided_by].format(pods=pods)


def _failed(found: Combination | None) -> str:
    if found is None:
        return "the pods that count are not known, so nothing is changed"
    failed = [each.metric.name or each.metric.type for each in found.outcomes if isinstance(each.result, Failure)]
    if not failed:
        return "there is no metric, so nothing is changed"
    names = ", ".join(dict.fromkeys(failed))
    if len(failed) == len(found.outcomes):
        return f"no metric gave a proposal ({names}), so nothing is changed"
    return f"{names} failed, and on incomplete knowledge nothing is scaled down"


def _assumed(result: Calculation) -> str:
    """Return the pods whose values are assumed: a pod that is not ready may well be measured."""
    groups = result.groups
    if groups is None:
        return ""
    missing = "pods without a sample" if groups.missing else ""
    unready = "pods that are not ready" if groups.unready and result.ratio > 1.0 else ""
    return " and ".join(each for each in (missing, unready) if each)
