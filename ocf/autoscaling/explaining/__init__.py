"""Why a decision is what it is, what would have to change for another one, and what is left open if the history is."""

from ocf.autoscaling.explaining.bounds import Bounds, Known, Range, bounds, compatible_histories, last_recommendation
from ocf.autoscaling.explaining.holding import Budget, Hold, Release, Return, budgets, first_release, hold_of
from ocf.autoscaling.explaining.levers import Block, Lever, Span, levers, with_total

__all__ = [
    "Block",
    "Bounds",
    "Budget",
    "Hold",
    "Known",
    "Lever",
    "Range",
    "Release",
    "Return",
    "Span",
    "bounds",
    "budgets",
    "compatible_histories",
    "first_release",
    "hold_of",
    "last_recommendation",
    "levers",
    "with_total",
]
