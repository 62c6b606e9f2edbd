"""Leader election: one of several processes of an operator runs, and the others wait."""

from ocf.runtime.leader.election import lead
from ocf.runtime.leader.timing import Timing

__all__ = [
    "Timing",
    "lead",
]
