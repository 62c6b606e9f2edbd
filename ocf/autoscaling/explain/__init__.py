"""Explanations of decisions: reasons, thresholds for another result, and the range that an unknown history leaves open.

`explain` and `explain_unknown` run the algorithm. `render` and `render_text` render the explanation for people,
`to_json` for programs, and `to_html` is a page of all of it.
"""

from ocf.autoscaling.explain.chart_svg import standalone_svg
from ocf.autoscaling.explain.explanation import Explanation, explain, explain_decision, explain_unknown
from ocf.autoscaling.explain.last_sync import ReplicaRange
from ocf.autoscaling.explain.levers import Lever, levers
from ocf.autoscaling.explain.next_syncs import HoldRelease, first_release, next_syncs
from ocf.autoscaling.explain.page import to_html
from ocf.autoscaling.explain.rescale_events import RescaleEvent, scaled_up
from ocf.autoscaling.explain.stabilization_holds import (
    Hold,
    LaterAllowance,
    PolicyAllowance,
    hold_of,
    policy_allowances,
)
from ocf.autoscaling.explain.text import Section, render, render_steps
from ocf.autoscaling.explain.thresholds import Blocker, MetricThresholds, ValueRange, metric_thresholds, with_total
from ocf.autoscaling.explain.timeline import Timeline, bounded_timelines, render_text, timeline
from ocf.autoscaling.explain.to_json import to_json
from ocf.autoscaling.explain.uncertainty import (
    DecisionRange,
    KnownHistory,
    compatible_histories,
    decision_range,
)

__all__ = [
    "Blocker",
    "DecisionRange",
    "Explanation",
    "Hold",
    "HoldRelease",
    "KnownHistory",
    "LaterAllowance",
    "Lever",
    "MetricThresholds",
    "PolicyAllowance",
    "ReplicaRange",
    "RescaleEvent",
    "Section",
    "Timeline",
    "ValueRange",
    "bounded_timelines",
    "compatible_histories",
    "decision_range",
    "explain",
    "explain_decision",
    "explain_unknown",
    "first_release",
    "hold_of",
    "levers",
    "metric_thresholds",
    "next_syncs",
    "policy_allowances",
    "render",
    "render_steps",
    "render_text",
    "scaled_up",
    "standalone_svg",
    "timeline",
    "to_html",
    "to_json",
    "with_total",
]
