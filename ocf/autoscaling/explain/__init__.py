"""Why a decision is what it is, what would have to change for another one, and what is left open if the history is.

`explain` asks the algorithm; `sections`, `drawn` and `plain` tell what it found, to people and to programs.
"""

from ocf.autoscaling.explain.explanation import Explanation, explain, explain_unknown
from ocf.autoscaling.explain.stabilization_holds import Budget, Hold, Release, Return, budgets, first_release, hold_of
from ocf.autoscaling.explain.text import Section, sections
from ocf.autoscaling.explain.thresholds import Block, Lever, Span, levers, with_total
from ocf.autoscaling.explain.timeline import Timeline, drawn, timeline
from ocf.autoscaling.explain.to_json import plain
from ocf.autoscaling.explain.uncertainty import Bounds, Known, Range, bounds, compatible_histories

__all__ = [
    "Block",
    "Bounds",
    "Budget",
    "Explanation",
    "Hold",
    "Known",
    "Lever",
    "Range",
    "Release",
    "Return",
    "Section",
    "Span",
    "Timeline",
    "bounds",
    "budgets",
    "compatible_histories",
    "drawn",
    "explain",
    "explain_unknown",
    "first_release",
    "hold_of",
    "levers",
    "plain",
    "sections",
    "timeline",
    "with_total",
]
