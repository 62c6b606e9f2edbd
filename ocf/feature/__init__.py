"""Feature mutations and their gates: version gates, boolean gates, version constraints."""

from ocf.feature.constraint import Constraint
from ocf.feature.gate import BooleanGate, Gate, VersionGate
from ocf.feature.mutation import Mutation

__all__ = [
    "BooleanGate",
    "Constraint",
    "Gate",
    "Mutation",
    "VersionGate",
]
