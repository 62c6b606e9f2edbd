"""When: version gates, boolean gates, and the named mutation they switch."""

from ocf.feature.constraint import Constraint
from ocf.feature.gate import BooleanGate, Gate, VersionGate
from ocf.feature.mutation import Mutation

__all__ = ["BooleanGate", "Constraint", "Gate", "Mutation", "VersionGate"]
