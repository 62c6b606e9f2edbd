"""A third way to a sync, beside `decide` and the counts of pods: many at once, while only the load changes.

`Stretches` is the one entry, and the results are those of the syncs one by one: a run without it takes longer, and ends
the same.
"""

from ocf.simulation.engine.stretches.shared import Shared
from ocf.simulation.engine.stretches.stretches import Stretches

__all__ = ["Shared", "Stretches"]
