"""Why a decision is what it is, what would have to change for another one, and what is left open if the history is.

`explain` asks the algorithm; `render`, `render_text` and `plain` tell what it found, to people and to programs.
"""

from ocf.autoscaling.explain.explanation import Explanation, explain, explain_unknown
from ocf.autoscaling.explain.stabilization_holds import (
    Hold,
    PolicyAllowance,
    Release,
    Return,
    first_release,
    hold_of,
    policy_allowances,
)
from ocf.autoscaling.explain.text import Section, render
from ocf.autoscaling.explain.thresholds import Blocker, MetricThresholds, ValueRange, metric_thresholds, with_total
from ocf.autoscaling.explain.timeline import Timeline, render_text, timeline
from ocf.autoscaling.explain.to_json import to_json
from ocf.autoscaling.explain.uncertainty import (
    DecisionRange,
    KnownHistory,
    ReplicaRange,
    compatible_histories,
    decision_range,
)

__all__ = [
    "Blocker",
    "DecisionRange",
    "Explanation",
    "Hold",
    "KnownHistory",
    "MetricThresholds",
    "PolicyAllowance",
    "Release",
    "ReplicaRange",
    "Return",
    "Section",
    "Timeline",
    "ValueRange",
    "compatible_histories",
    "decision_range",
    "explain",
    "explain_unknown",
    "first_release",
    "hold_of",
    "metric_thresholds",
    "policy_allowances",
    "render",
    "render_text",
    "timeline",
    "to_json",
    "with_total",
]
