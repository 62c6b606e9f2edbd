"""JSON form of an explanation.

The form is a public interface: within a `version`, keys are added, but not renamed or removed. Amounts are quantities
written as strings, like in the Kubernetes API; instants are RFC 3339; periods are seconds.
"""

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from ocf.autoscaling.algorithm import Limit, Metric, Settings, Stabilization
from ocf.autoscaling.algorithm.history import ScaleEvent, window_start
from ocf.autoscaling.algorithm.metric_proposals import MetricOutcome
from ocf.autoscaling.algorithm.replica_calculator import Calculation
from ocf.autoscaling.explain.explanation import Explanation
from ocf.autoscaling.explain.formatting import amount, instant
from ocf.autoscaling.explain.last_sync import MOST
from ocf.autoscaling.explain.levers import Lever
from ocf.autoscaling.explain.next_syncs import HoldRelease
from ocf.autoscaling.explain.selected_pods import odd_pods
from ocf.autoscaling.explain.stabilization_holds import PolicyAllowance
from ocf.autoscaling.explain.text import cause_of
from ocf.autoscaling.explain.threshold_text import blocker_text
from ocf.autoscaling.explain.thresholds import Blocker, LaterChange, MetricThresholds

__all__ = ["to_json"]

_VERSION: Final = 2
_CHANGES: Final = {-1: "fewer", 0: "none", 1: "more"}
_LATER: Final = {-1: "or less", 0: "unchanged", 1: "or more"}
_SIDES: Final = {-1: "or less", 0: "only", 1: "or more"}


def to_json(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as JSON values.

    Args:
        explanation: The explanation.
    """
    decision, trace = explanation.decision, explanation.decision.trace
    autoscaler = decision.snapshot.autoscaler
    most = explanation.most or explanation
    possible = explanation.range
    return {
        "version": _VERSION,
        "autoscaler": {"namespace": autoscaler.namespace, "name": autoscaler.name},
        "target": {"apiVersion": autoscaler.api_version, "kind": autoscaler.kind, "name": autoscaler.target},
        "at": instant(trace.now),
        "exact": explanation.exact,
        "replicas": {
            "current": trace.current,
            "minimum": trace.minimum,
            "maximum": trace.maximum,
            "desired": trace.desired if explanation.exact else None,
            "least": trace.desired,
            "most": most.decision.trace.desired,
        },
        "tolerance": {"down": trace.tolerances.down, "up": trace.tolerances.up},
        "settings": _settings(explanation.settings),
        "unknown": [] if possible is None else list(possible.unknown),
        "knownSince": None if possible is None else instant(possible.since),
        "metrics": _metrics(explanation),
        "problem": trace.problem,
        "least": _bound(explanation),
        "most": _bound(most),
    }


def _settings(settings: Settings) -> dict[str, Any]:
    features = settings.features
    return {
        "syncPeriod": settings.sync_period.total_seconds(),
        "downscaleStabilization": settings.downscale_stabilization.total_seconds(),
        "tolerance": settings.tolerance,
        "cpuInitializationPeriod": settings.cpu_initialization_period.total_seconds(),
        "initialReadinessDelay": settings.initial_readiness_delay.total_seconds(),
        "scaleUpLimitFactor": settings.scale_up_limit_factor,
        "scaleUpLimitMinimum": settings.scale_up_limit_minimum,
        "features": {
            "scaleToZero": features.scale_to_zero,
            "configurableTolerance": features.configurable_tolerance,
            "podLevelResources": features.pod_level_resources,
            "rememberedZero": features.remembered_zero,
            "observedGeneration": features.observed_generation,
        },
    }


def _metrics(explanation: Explanation) -> list[dict[str, Any]]:
    found = explanation.decision.trace.combination
    if found is None:
        return []
    return [_metric(each, chosen=position == found.chosen) for position, each in enumerate(found.outcomes)]


def _metric(outcome: MetricOutcome, *, chosen: bool) -> dict[str, Any]:
    metric, result = outcome.metric, outcome.result
    target = metric.target
    source = {
        "type": metric.type,
        "name": metric.name,
        "title": outcome.name,
        "chosen": chosen,
        "target": {
            "utilization": target.utilization,
            "averageValue": None if target.average is None else amount(target.average, metric),
            "value": None if target.value is None else amount(target.value, metric),
        },
    }
    if not isinstance(result, Calculation):
        return {**source, "failure": {"reason": result.reason, "message": result.message}, "proposal": None}
    groups = result.groups
    return {
        **source,
        "failure": None,
        "proposal": {
            "replicas": result.replicas,
            "rule": str(result.rule),
            "ratio": _finite(result.ratio),
            "measured": amount(result.measured, metric),
            "utilization": result.utilization,
            "usage": None if result.usage is None else amount(result.usage, metric),
            "requests": None if result.requests is None else amount(result.requests, metric),
            "ratioFilledIn": _finite(result.filled),
            "podsCounted": result.counted,
            "pods": None
            if groups is None
            else {
                "ready": groups.ready,
                "unready": list(groups.unready),
                "missing": list(groups.missing),
                "ignored": list(groups.ignored),
            },
        },
    }


def _finite(ratio: float | None) -> float | None:
    # JSON has neither an infinity nor NaN; both occur with 0 observed replicas.
    return ratio if ratio is not None and math.isfinite(ratio) else None


def _bound(explanation: Explanation) -> dict[str, Any]:
    decision, trace, hold = explanation.decision, explanation.decision.trace, explanation.hold
    return {
        "desired": trace.desired,
        "rescale": decision.rescale,
        "decidedBy": str(trace.decided_by),
        "stabilization": None if trace.stabilization is None else _stabilization(trace.stabilization, explanation),
        "hold": None
        if hold is None
        else {
            "replicas": _count(hold.recommendation.replicas, explanation),
            "at": instant(hold.recommendation.at),
            "until": instant(hold.until),
            "known": not explanation.is_assumed(hold.recommendation.at),
        },
        "limit": None if trace.limit is None else _limit(trace.limit, explanation),
        "raisedFromZero": trace.raised_to_minimum,
        "policies": {
            "up": _allowances(explanation.scale_up_allowances),
            "down": _allowances(explanation.scale_down_allowances),
        },
        "release": _release(explanation.release),
        "conditions": [each.to_manifest() for each in decision.status.conditions],
        "events": [{"type": each.type, "reason": each.reason, "message": each.message} for each in decision.events],
        "error": None if decision.error is None else {"kind": decision.error.kind, "message": decision.error.message},
        "history": _history(explanation),
        "thresholds": [_thresholds(each, explanation) for each in explanation.thresholds],
        "levers": [_lever(each, explanation) for each in explanation.levers],
        "laterLevers": [
            {**_lever(each.lever, explanation), "replicas": each.release.replicas, "at": instant(each.release.at)}
            for each in explanation.later_levers
        ],
        "cause": cause_of(explanation),
        "oddPods": [
            {"message": each.text, "pods": list(each.pods), "wanted": each.wanted, "without": each.without}
            for each in odd_pods(decision, explanation.history, explanation.settings)
        ],
    }


def _lever(lever: Lever, explanation: Explanation) -> dict[str, Any]:
    return {
        "field": lever.field,
        "changeField": explanation.field(lever.field),
        "present": lever.present,
        "value": lever.value,
        "side": _SIDES[0 if lever.is_last else lever.side],
        "replicas": lever.replicas,
    }


def _count(count: int | None, explanation: Explanation) -> int | None:
    """Return a number of replicas; None for one that stands for any larger number, as of an assumed history."""
    return None if explanation.range is not None and count is not None and count >= MOST else count


def _stabilization(step: Stabilization, explanation: Explanation) -> dict[str, Any]:
    return {
        "wanted": step.wanted,
        "replicas": _count(step.replicas, explanation),
        "lowest": _count(step.lowest, explanation),
        "highest": _count(step.highest, explanation),
        "rule": None if step.rule is None else str(step.rule),
    }


def _limit(step: Limit, explanation: Explanation) -> dict[str, Any]:
    return {
        "wanted": _count(step.wanted, explanation),
        "replicas": step.replicas,
        "bound": step.bound,
        "rate": step.rate,
        "rule": str(step.rule),
    }


def _allowances(found: Iterable[PolicyAllowance]) -> list[dict[str, Any]]:
    return [
        {
            "type": each.policy.type,
            "value": each.policy.value,
            "periodSeconds": each.policy.period.total_seconds(),
            "start": each.start,
            "added": each.added,
            "removed": each.removed,
            "allowed": each.allowed,
            "remaining": each.remaining,
            "later": [{"at": instant(later.at), "allowed": later.allowed} for later in each.later],
        }
        for each in found
    ]


def _release(release: HoldRelease | None) -> dict[str, Any] | None:
    return None if release is None else {"at": instant(release.at), "replicas": release.replicas}


def _history(explanation: Explanation) -> dict[str, Any]:
    history, behavior = explanation.history, explanation.decision.snapshot.autoscaler.behavior
    longest = timedelta() if behavior is None else max(behavior.up.longest_period, behavior.down.longest_period)
    first = window_start(explanation.decision.trace.now, longest)

    def entry(replicas: int, at: datetime) -> dict[str, Any]:
        return {"replicas": _count(replicas, explanation), "at": instant(at)}

    def events(found: Iterable[ScaleEvent]) -> list[dict[str, Any]]:
        # Assumed changes are shown only where a policy counts them.
        shown = (each for each in found if each.at >= first or not explanation.is_assumed(each.at))
        return [{"change": each.change, "at": instant(each.at)} for each in shown]

    known = history.recommendations
    return {
        "recommendations": None if known is None else [entry(each.replicas, each.at) for each in known],
        "scaleUps": events(history.scale_ups),
        "scaleDowns": events(history.scale_downs),
    }


def _thresholds(thresholds: MetricThresholds, explanation: Explanation) -> dict[str, Any]:
    metric = explanation.decision.snapshot.autoscaler.metrics[thresholds.position]
    return {
        "metric": thresholds.position,
        "measured": amount(thresholds.total, metric),
        "pods": len(thresholds.pods) or None,
        "requests": None if thresholds.requests is None else amount(thresholds.requests, metric),
        "ranges": [
            {
                "from": amount(values.low, metric),
                "to": None if values is thresholds.ranges[-1] else amount(values.high, metric),
                "change": _CHANGES[values.change],
                "replicas": [values.first, values.last],
            }
            for values in thresholds.ranges
        ],
        "cannotGrow": _blocker(thresholds.cannot_grow, thresholds),
        "cannotShrink": _blocker(thresholds.cannot_shrink, thresholds),
        "growsLater": _later(thresholds.grows_later, metric),
        "shrinksLater": _later(thresholds.shrinks_later, metric),
    }


def _later(later: LaterChange | None, metric: Metric) -> dict[str, Any] | None:
    if later is None:
        return None
    return {
        "total": amount(later.total, metric),
        "side": _LATER[later.side],
        "ranges": [
            {"from": amount(low, metric), "to": None if high is None else amount(high, metric)}
            for low, high in later.ranges
        ],
        **(_release(later.release) or {}),
    }


def _blocker(blocker: Blocker | None, thresholds: MetricThresholds) -> dict[str, Any] | None:
    if blocker is None:
        return None
    return {
        "rule": str(blocker.decision.trace.decided_by),
        "message": blocker_text(blocker.decision, thresholds),
        "release": _release(blocker.release),
    }
