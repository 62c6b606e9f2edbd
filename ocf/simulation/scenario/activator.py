"""The activator of a scenario: it scales the workload from and to zero, which the HPA does not."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from ocf.simulation.fields import Model, Period, PositivePeriod

__all__ = ["Activator"]

Threshold = Annotated[float, Field(ge=-1e12, le=1e12, allow_inf_nan=False)]


class Activator(Model):
    """A controller beside the HPA that scales the workload down while there is nothing to do, as KEDA does.

    Its triggers are the metrics of the HPA of the types External and Object. The other types have no value without
    pods. A trigger is active while its value is above its activation threshold.

    Args:
        polling_interval: Time between two looks at the triggers.
        cooldown_period: Time from the last look at which a trigger was active until the workload is scaled down.
        initial_cooldown_period: Time from the start of the simulation until the workload is scaled down, if no trigger
            was active yet.
        idle_replica_count: `spec.replicas` while no trigger is active; less than `minReplicas` of the HPA, to which an
            active trigger scales up.
        activation_thresholds: Activation thresholds by name of the metric; 0 for a metric that is missing here.
    """

    polling_interval: PositivePeriod = timedelta(seconds=30)
    cooldown_period: Period = timedelta(minutes=5)
    initial_cooldown_period: Period = timedelta()
    idle_replica_count: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    activation_thresholds: dict[str, Threshold] = Field(default_factory=dict)
