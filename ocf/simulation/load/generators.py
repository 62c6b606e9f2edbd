"""Generated loads."""

from typing import Literal

from ocf.simulation.fields import Model, Rate

__all__ = ["AnyLoad", "SteadyLoad"]


class SteadyLoad(Model):
    """A load that does not change.

    Args:
        type: `Steady`.
        rate: Load units per second.
    """

    type: Literal["Steady"]
    rate: Rate


AnyLoad = SteadyLoad
"""A load of any type; the field `type` names it."""
