"""Decisions about node groups."""

from ocf.nodegroups.decide.decide import Direction, ScalingDecision, decide

__all__ = ["Direction", "ScalingDecision", "decide"]
