"""The load of a workload that another one calls."""

from typing import Annotated, Literal

from pydantic import Field

from ocf.simulation.fields import Model, Positive

__all__ = ["ServedLoad"]


class ServedLoad(Model):
    """What another workload of the scenario serves: it calls this one, or fills its queue.

    Args:
        type: `Served`.
        by: The name of the scenario, or of a neighbor that comes before this one.
        factor: Load units of this workload for each load unit that the other one serves.
    """

    type: Literal["Served"]
    by: Annotated[str, Field(min_length=1)]
    factor: Positive = 1.0
