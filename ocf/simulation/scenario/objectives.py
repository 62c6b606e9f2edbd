"""The objectives and prices of a scenario."""

from typing import Annotated

from pydantic import Field

from ocf.simulation.fields import Fraction, Model, Period, Positive, Rate

__all__ = ["LatencyObjective", "Objectives", "Prices"]


class LatencyObjective(Model):
    """A bound of the latency, as the queueing model computes it.

    Args:
        at_most: The longest latency that meets the objective.
        percentile: The percentile of the requests that has to meet it.
    """

    at_most: Period
    percentile: Annotated[float, Field(gt=0, lt=100)] = 95.0


class Prices(Model):
    """Prices, in a currency of the reader's choice.

    Args:
        pod_hour: Price of one pod for an hour.
        node_hour: Price of one node for an hour, unless its instance type has a price.
        currency: Name of the currency, for reports.
    """

    pod_hour: Rate = 0.0
    node_hour: Rate = 0.0
    currency: str = ""


class Objectives(Model):
    """What a good run is; each bound that is set is evaluated in the result.

    Args:
        target_utilization: Share of the capacity of a pod up to which it is not overloaded. It defines the demand: the
            smallest number of warm pods that serve the load within this share of their capacity.
        overload_time: Largest share of the time in which load units wait, or the load exceeds the target utilization of
            the ready pods.
        latency: Bound of the latency.
        pod_hours: Most pod-hours.
        cost: Highest cost.
        prices: The prices.
    """

    target_utilization: Annotated[float, Field(gt=0, le=1)] = 1.0
    overload_time: Fraction | None = None
    latency: LatencyObjective | None = None
    pod_hours: Positive | None = None
    cost: Positive | None = None
    prices: Prices = Prices()
