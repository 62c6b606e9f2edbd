"""The cause of a decision as a clause for readers who do not know the algorithm: values, targets, fields and times."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from ocf.autoscaling.algorithm import Decision, History, Limit, Metric, Rule, Settings, Unavailable
from ocf.autoscaling.algorithm.metric_proposals import Failure, MetricOutcome
from ocf.autoscaling.algorithm.replica_calculator import Calculation
from ocf.autoscaling.explain.formatting import (
    amount,
    bounded_amount,
    clock,
    duration,
    known_count,
    listed,
    number,
    percent,
    policy_text,
    replica_count,
)
from ocf.autoscaling.explain.last_sync import MOST, last_sync_of
from ocf.autoscaling.explain.next_syncs import windows
from ocf.autoscaling.explain.selected_pods import OddPods, odd_pods
from ocf.autoscaling.explain.stabilization_holds import Hold

__all__ = ["measured_clause", "negative_text", "negative_total", "odd_clause", "reason_of", "series_of", "target_text"]

_STABILIZED: Final = (Rule.SCALE_UP_STABILIZED, Rule.SCALE_DOWN_STABILIZED)
_FULL: Final = 100
_FILLED: Final = (Rule.FILLED, Rule.FILLED_WITHIN_TOLERANCE, Rule.FILLED_TURNED_RATIO, Rule.FILLED_TURNED_COUNT)


def reason_of(
    decision: Decision, settings: Settings, *, hold: Hold | None = None, assumed: bool = False, restarted: bool = False
) -> str:
    """Return the cause of a decision.

    Args:
        settings: The settings that it was made with.
        hold: The recommendation that holds the replicas.
        assumed: Whether that recommendation is assumed, not known.
        restarted: Whether the decision is possible only if the controller has restarted since its last sync.

    Returns:
        A clause without capital letter and full stop.

    Example:
        >>> from datetime import UTC, datetime
        >>> from ocf.autoscaling.algorithm import Autoscaler, Scale, Snapshot, decide
        >>> seen = Snapshot(autoscaler=Autoscaler(name="web", maximum=9), scale=Scale(11, 11, "app=web"))
        >>> reason_of(decide(seen, now=datetime(2026, 1, 31, tzinfo=UTC)), Settings())
        'the target has 11 replicas, more than maxReplicas (9), and is first brought into range'
    """
    trace = decision.trace
    rule = trace.decided_by
    if rule in _EARLY:
        return _EARLY[rule].format(
            problem=trace.problem,
            replicas=replica_count(trace.current or 0),
            minimum=trace.minimum,
            maximum=trace.maximum,
        )
    if rule is Rule.FAILED or trace.chosen is None or not isinstance(trace.chosen.result, Calculation):
        return _failed(decision)
    metric = _metric_clause(decision, trace.chosen, trace.chosen.result)
    if rule in _STABILIZED:
        return f"{_held(decision, settings, hold, assumed=assumed, restarted=restarted)}; {metric}"
    limit = _limited(decision, settings)
    return metric if limit is None else f"{limit}; {metric}"


_EARLY: Final = {
    Rule.UNREADABLE: "the scale of the target cannot be read, so nothing is changed: {problem}",
    Rule.DISABLED: "the target has 0 replicas, which switches autoscaling off, and this controller did not scale it"
    " there",
    Rule.ABOVE_MAXIMUM: "the target has {replicas}, more than maxReplicas ({maximum}), and is first brought into range",
    Rule.BELOW_MINIMUM: "the target has {replicas}, fewer than minReplicas ({minimum}), and is first brought"
    " into range",
}


def odd_clause(decision: Decision, history: History, settings: Settings) -> str:
    """Return the clause about pods that change the proposal although they are not the target's; empty without any."""
    found = next((each for each in odd_pods(decision, history, settings) if each.matters), None)
    return "" if found is None else odd_text(found)


def odd_text(found: OddPods) -> str:
    """Return the clause about pods, with what they change."""
    if found.without is None:
        return found.text
    them = "it" if len(found.pods) == 1 else "them"
    if found.wanted is None:
        return f"{found.text}; with {them} the metrics fail, and without {them} {found.without} would be wanted"
    return f"{found.text}; without {them} {found.without} would be wanted instead of {found.wanted}"


def _failed(decision: Decision) -> str:
    trace = decision.trace
    found = trace.combination
    if found is None:
        shared = "HPA" in trace.problem
        why = "several autoscalers select the same pods" if shared else "the pods that count are not known"
        return f"{why}, so nothing is changed: {trace.problem}"
    failed = [each for each in found.outcomes if isinstance(each.result, Failure)]
    if not failed:
        return "there is no metric, so nothing is changed"
    problems = "; ".join(
        dict.fromkeys(
            f"{each.metric.name or each.metric.type}: {each.result.message}"
            for each in failed
            if isinstance(each.result, Failure)
        )
    )
    if len(failed) == len(found.outcomes):
        return f"no metric could be evaluated, so nothing is changed: {problems}"
    others = (each for each in found.outcomes if isinstance(each.result, Calculation))
    wanted = max((each.result.replicas for each in others if isinstance(each.result, Calculation)), default=0)
    return f"one of the metrics failed, and without all of them nothing is scaled down to {wanted}: {problems}"


def _held(decision: Decision, settings: Settings, hold: Hold | None, *, assumed: bool, restarted: bool) -> str:
    step, trace = decision.trace.stabilization, decision.trace
    down, up = windows(decision.snapshot.autoscaler, settings)
    is_down = trace.decided_by is Rule.SCALE_DOWN_STABILIZED
    side, window = ("down", down) if is_down else ("up", up)
    wanted = 0 if step is None else step.wanted
    name = f"the scale-{side} window of {duration(window)}"
    if hold is None:
        return f"a recommendation in {name} keeps {trace.desired}, while {wanted} are wanted now"
    at, until = clock(hold.recommendation.at, trace.now), clock(hold.until, trace.now)
    count = hold.recommendation.replicas
    if restarted and hold.recommendation.at == trace.now:
        return (
            f"if the controller has restarted since its last sync, it keeps the present size for {name}, until {until}"
            f" at the latest, while {wanted} {_are(wanted)} wanted now"
        )
    if assumed:
        return (
            f"{known_count(count)} may have been recommended until {at}, and {name} keeps that until {until} at the"
            f" latest, while {wanted} {_are(wanted)} wanted now"
        )
    if hold.recommendation.at == trace.now:
        return f"a controller that has just started keeps the present size for {name}, until {until}"
    return (
        f"{count} {_were(count)} recommended at {at}, and {name} keeps that until {until}, while {wanted}"
        f" {_are(wanted)} wanted now"
    )


def _limited(decision: Decision, settings: Settings) -> str | None:
    trace = decision.trace
    limit = trace.limit
    if trace.raised_to_minimum:
        return f"a workload that comes from zero gets at least minReplicas ({trace.minimum})"
    if limit is None or limit.replicas == limit.wanted:
        return None
    wanted = f"{limit.wanted} {_are(limit.wanted)} wanted" if limit.wanted < MOST else _unknown(decision, settings)
    if limit.rule in _BOUNDS:
        return f"{_BOUNDS[limit.rule].format(minimum=trace.minimum, maximum=trace.maximum)}, and {wanted}"
    return f"{_rate(decision, limit, settings)}, and {wanted}"


def _unknown(decision: Decision, settings: Settings) -> str:
    """Return the clause about a recommendation that is only known to be large."""
    autoscaler = decision.snapshot.autoscaler
    held = last_sync_of(autoscaler, decision.snapshot.status).held
    window = f"the scale-down window of {duration(windows(autoscaler, settings)[0])}"
    if held is not None and held.most == MOST:
        return f"the last sync wanted more than {held.least - 1} (how many more is not known), which {window} keeps"
    return f"{window} may keep a larger number that an earlier sync wanted (it is not known)"


_BOUNDS: Final = {Rule.TOO_MANY: "maxReplicas is {maximum}", Rule.TOO_FEW: "minReplicas is {minimum}"}


def _rate(decision: Decision, limit: Limit, settings: Settings) -> str:
    behavior, up = decision.snapshot.autoscaler.behavior, limit.rule is Rule.SCALE_UP_LIMIT
    if behavior is None:
        factor, least = settings.scale_up_limit_factor, settings.scale_up_limit_minimum
        most = f"{factor:g} times the replicas, or to {least:g}"
        return f"without a behavior one sync scales up to {most}, here {limit.replicas}"
    rules, field = (behavior.up, "scaleUp") if up else (behavior.down, "scaleDown")
    if rules.select == "Disabled":
        return f"behavior.{field}.selectPolicy is Disabled"
    policies = " and ".join(policy_text(each) for each in rules.policies)
    return f"the policies of behavior.{field} ({policies}) allow {limit.replicas} now"


def _metric_clause(decision: Decision, outcome: MetricOutcome, result: Calculation) -> str:
    metric = outcome.metric
    several = len(decision.snapshot.autoscaler.metrics) > 1
    lead = f"of the metrics, {metric.name} wants the most: " if several else ""
    total = negative_total(decision, metric)
    if total is not None:
        return f"{lead}{negative_text(metric, total, result)}"
    series = series_of(decision, metric)
    added = f" ({len(series)} series add up to {amount(sum(series), metric)})" if len(series) > 1 else ""
    return f"{lead}{measured_clause(metric, result)}{added}{_calculated(decision, metric, result)}"


def negative_total(decision: Decision, metric: Metric) -> int | None:
    """Return the total of an External metric in thousandths if it is negative."""
    total = sum(series_of(decision, metric))
    return total if total < 0 else None


def series_of(decision: Decision, metric: Metric) -> Sequence[int]:
    """Return the series of an External metric in thousandths; none for one of another type."""
    snapshot = decision.snapshot
    # A decision of a simulation is explained without its measurements.
    for each, values in zip(snapshot.autoscaler.metrics, snapshot.metric_values, strict=False):
        if each is metric and metric.type == "External" and not isinstance(values, Mapping | Unavailable):
            return values
    return ()


def negative_text(metric: Metric, total: int, result: Calculation) -> str:
    """Return what the controller does with a negative total, as a clause."""
    written = f"{metric.name} has a negative total, {amount(total, metric)}"
    if metric.target.average is not None and result.replicas > 0:
        return f"{written}, which the controller takes for an overflow since Kubernetes 1.34, so it wants the most"
    return f"{written}, so it wants the fewest"


def measured_clause(metric: Metric, result: Calculation) -> str:
    """Return the measured value and the target of a metric, as a clause."""
    subject = f"{metric.name} of container {metric.container}" if metric.container else metric.name
    if result.utilization is not None:
        return f"{subject} is at {result.utilization}% of the requests, target {target_text(metric)}"
    if result.usage is not None:
        return f"{subject} is at {bounded_amount(result.measured, metric)} per pod, target {target_text(metric)}"
    per_pod = metric.target.average is not None and (metric.type != "Object" or metric.target.type == "AverageValue")
    if not math.isfinite(result.ratio):
        # The controller divides by status.replicas, and what a Go conversion makes of the result is no measurement.
        return f"{subject} is compared per replica, but the target has none yet, target {target_text(metric)}"
    unit = " per replica" if per_pod else " in total"
    return f"{subject} is at {bounded_amount(result.measured, metric)}{unit}, target {target_text(metric)}"


def target_text(metric: Metric) -> str:
    """Return the target of a metric with its unit."""
    target = metric.target
    if target.average is not None and (metric.type != "Object" or target.type == "AverageValue"):
        return f"{amount(target.average, metric)} per pod"
    if target.utilization is not None and metric.type in {"Resource", "ContainerResource"}:
        return f"{target.utilization}%"
    return f"{amount(target.value or 0, metric)} in total"


def _calculated(decision: Decision, metric: Metric, result: Calculation) -> str:
    tolerances = decision.trace.tolerances
    current = decision.trace.current or 0
    if result.rule is Rule.WITHIN_TOLERANCE:
        within = f"{percent(1.0 - tolerances.down)} to {percent(1.0 + tolerances.up)} of the target"
        # GetExternalPerPodMetricReplicas returns status.replicas (kubernetes/kubernetes#138505).
        observed = f"the {result.replicas} replicas of the status, not the {current} of the spec"
        taken = f": a target per pod then takes {observed}" if result.replicas != current else ""
        return f", which is within the tolerance ({within}){taken}"
    if result.rule in _FILLED:
        return f", {_filled(decision, metric, result)}"
    if result.rule is Rule.TOTAL:
        return f": the total divided by the target, rounded up, is {result.replicas}"
    if result.rule is Rule.FROM_ZERO:
        return f": coming from 0 replicas, the ratio rounded up is {result.replicas}"
    ready = (result.ready or 0) if result.groups is None else result.groups.ready
    product = number(result.ratio * ready)
    pods = "ready pod" if ready == 1 else "ready pods"
    rounded = "" if product == str(result.replicas) else f", rounded up to {result.replicas}"
    return f": {number(result.ratio)} times {ready} {pods} is {product}{rounded}"


def _filled(decision: Decision, metric: Metric, result: Calculation) -> str:
    groups = result.groups
    missing = () if groups is None else groups.missing
    unready = groups.unready if groups is not None and result.ratio > 1.0 else ()
    ready = {each.name for each in decision.snapshot.pods if each.ready is not None and each.ready.status == "True"}
    starting = [each for each in unready if each in ready]
    waiting = [each for each in unready if each not in ready]
    clauses = [
        f"{len(names)} {'pod' if len(names) == 1 else 'pods'} {what} ({_phased(decision, names)})"
        for names, what in (
            (missing, "without a sample"),
            (waiting, "that is not ready" if len(waiting) == 1 else "that are not ready"),
            (starting, "whose sample began before readiness"),
        )
        if names
    ]
    one = len(missing) + len(unready) == 1
    if result.ratio > 1.0:
        assumed = "as using nothing"
    elif result.utilization is None:
        assumed = "as exactly at the target"
    else:
        # As replica_calculator fills in: a target above 100% counts in place of the requests.
        share = max(_FULL, metric.target.utilization or 0)
        used = "all" if share == _FULL else f"{share}%"
        assumed = f"as using {used} of {'its' if one else 'their'} requests"
    counts = "counts" if one else "count"
    counted = f"but {' and '.join(clauses)} {counts} {assumed}"
    filled = number(result.filled or 0.0)
    if result.rule is Rule.FILLED:
        return f"{counted}: {filled} times {result.counted} pods, rounded up, is {result.replicas}"
    if result.rule is Rule.FILLED_WITHIN_TOLERANCE:
        return f"{counted}, and the ratio of {filled} over all {result.counted} is within the tolerance"
    what = "the ratio" if result.rule is Rule.FILLED_TURNED_RATIO else "the change"
    return f"{counted}, and that reverses {what}, so nothing is changed"


def _phased(decision: Decision, names: Sequence[str]) -> str:
    """Return the names of pods, with the phase of those that do not run."""
    phases = {each.name: each.phase for each in decision.snapshot.pods}
    running = {"Running", ""}
    return listed([name if phases.get(name, "") in running else f"{name} ({phases[name]})" for name in names])


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
