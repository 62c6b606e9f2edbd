"""Drain of nodes, step by step."""

from ocf.nodegroups.drain.step import (
    ActionKind,
    Drain,
    DrainAction,
    DrainPhase,
    DrainSettings,
    DrainStep,
    ObservedNode,
    next_step,
)

__all__ = [
    "ActionKind",
    "Drain",
    "DrainAction",
    "DrainPhase",
    "DrainSettings",
    "DrainStep",
    "ObservedNode",
    "next_step",
]
