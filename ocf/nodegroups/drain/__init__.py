"""Drain of nodes, step by step."""

from ocf.nodegroups.drain.step import (
    Action,
    ActionKind,
    Drain,
    DrainPhase,
    DrainSettings,
    DrainStep,
    ObservedNode,
    next_step,
)

__all__ = [
    "Action",
    "ActionKind",
    "Drain",
    "DrainPhase",
    "DrainSettings",
    "DrainStep",
    "ObservedNode",
    "next_step",
]
