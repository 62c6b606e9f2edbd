"""An explanation as plain values for programs: what is written as JSON.

The form is an interface. Keys are added, never renamed or removed within a `version`. Amounts are quantities in texts,
as the API writes them; instants are RFC 3339; periods are seconds.
"""

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from ocf.autoscaling.algorithm import Calculation, History, Limit, MetricOutcome, ScaleEvent, Settings, Stabilization
from ocf.autoscaling.explain.explanation import Explanation
from ocf.autoscaling.explain.formatting import amount, instant
from ocf.autoscaling.explain.stabilization_holds import PolicyAllowance, Release
from ocf.autoscaling.explain.threshold_text import why
from ocf.autoscaling.explain.thresholds import Blocker, MetricThresholds

__all__ = ["to_json"]

_VERSION: Final = 1
_CHANGES: Final = {-1: "fewer", 0: "none", 1: "more"}


def to_json(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as values that JSON knows.

    Args:
        explanation: The explanation.
    """
    decision, trace = explanation.decision, explanation.decision.trace
    autoscaler = decision.snapshot.autoscaler
    most = explanation.most or explanation
    bounds = explanation.range
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
        "unknown": [] if bounds is None else list(bounds.unknown),
        "knownSince": None if bounds is None else instant(bounds.since),
        "metrics": _metrics(explanation),
        "problem": trace.problem,
        "least": _side(explanation),
        "most": _side(most),
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
    return ratio if ratio is not None and math.isfinite(ratio) else None


def _side(explanation: Explanation) -> dict[str, Any]:
    decision, trace, hold = explanation.decision, explanation.decision.trace, explanation.hold
    return {
        "desired": trace.desired,
        "rescale": decision.rescale,
        "decidedBy": str(trace.decided_by),
        "stabilization": None if trace.stabilization is None else _stabilization(trace.stabilization),
        "hold": None
        if hold is None
        else {
            "replicas": hold.recommendation.replicas,
            "at": instant(hold.recommendation.at),
            "until": instant(hold.until),
            "known": not explanation.assumes(hold.recommendation.at),
        },
        "limit": None if trace.limit is None else _limit(trace.limit),
        "raisedFromZero": trace.raised_to_minimum,
        "policies": {"up": _budgets(explanation.growing), "down": _budgets(explanation.shrinking)},
        "release": _release(explanation.release),
        "conditions": [each.to_manifest() for each in decision.status.conditions],
        "events": [{"type": each.type, "reason": each.reason, "message": each.message} for each in decision.events],
        "error": None if decision.error is None else {"kind": decision.error.kind, "message": decision.error.message},
        "history": _history(explanation.history),
        "levers": [_lever(each, explanation) for each in explanation.thresholds],
    }


def _stabilization(step: Stabilization) -> dict[str, Any]:
    return {
        "wanted": step.wanted,
        "replicas": step.replicas,
        "lowest": step.lowest,
        "highest": step.highest,
        "rule": None if step.rule is None else str(step.rule),
    }


def _limit(step: Limit) -> dict[str, Any]:
    return {
        "wanted": step.wanted,
        "replicas": step.replicas,
        "bound": step.bound,
        "rate": step.rate,
        "rule": str(step.rule),
    }


def _budgets(found: Iterable[PolicyAllowance]) -> list[dict[str, Any]]:
    return [
        {
            "type": each.policy.type,
            "value": each.policy.value,
            "periodSeconds": each.policy.period.total_seconds(),
            "start": each.start,
            "added": each.added,
            "removed": each.removed,
            "allowed": each.allowed,
            "left": each.left,
            "returns": [{"at": instant(later.at), "allowed": later.allowed} for later in each.returns],
        }
        for each in found
    ]


def _release(release: Release | None) -> dict[str, Any] | None:
    return None if release is None else {"at": instant(release.at), "replicas": release.replicas}


def _history(history: History) -> dict[str, Any]:
    def entry(replicas: int, at: datetime) -> dict[str, Any]:
        return {"replicas": replicas, "at": instant(at)}

    def events(found: Iterable[ScaleEvent]) -> list[dict[str, Any]]:
        return [{"change": each.change, "at": instant(each.at)} for each in found]

    known = history.recommendations
    return {
        "recommendations": None if known is None else [entry(each.replicas, each.at) for each in known],
        "scaleUps": events(history.scale_ups),
        "scaleDowns": events(history.scale_downs),
    }


def _lever(lever: MetricThresholds, explanation: Explanation) -> dict[str, Any]:
    metric = explanation.decision.snapshot.autoscaler.metrics[lever.position]
    return {
        "metric": lever.position,
        "measured": amount(lever.total, metric),
        "pods": len(lever.pods) or None,
        "requests": None if lever.requests is None else amount(lever.requests, metric),
        "spans": [
            {
                "from": amount(span.low, metric),
                "to": None if span is lever.spans[-1] else amount(span.high, metric),
                "change": _CHANGES[span.change],
                "replicas": [span.first, span.last],
            }
            for span in lever.spans
        ],
        "noMoreBecause": _block(lever.cannot_grow, lever),
        "noFewerBecause": _block(lever.cannot_shrink, lever),
    }


def _block(block: Blocker | None, lever: MetricThresholds) -> dict[str, Any] | None:
    if block is None:
        return None
    rule = str(block.decision.trace.decided_by)
    return {"rule": rule, "words": why(block.decision, lever), "release": _release(block.release)}
