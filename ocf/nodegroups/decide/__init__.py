"""Decisions about node groups."""

from ocf.nodegroups.decide.decide import Decision, Direction, decide

__all__ = ["Decision", "Direction", "decide"]
