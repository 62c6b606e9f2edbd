"""The prediction of a scenario: a forecast of the load as one more metric of the HPA."""

from datetime import timedelta
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from ocf.objects.durations import format_duration
from ocf.simulation.fields import Fraction, Model, Period, PositivePeriod

__all__ = ["PREDICTED", "HoltWinters", "Prediction", "SeasonalNaive"]


PREDICTED: Final = "predicted-load"
"""Name of the metric of type External that has the predicted load."""


class SeasonalNaive(Model):
    """The load of one season before; until a season has passed, the last load.

    Args:
        type: `SeasonalNaive`.
        season: Time after which the load repeats.
    """

    type: Literal["SeasonalNaive"]
    season: PositivePeriod = timedelta(days=1)


class HoltWinters(Model):
    """Exponential smoothing of level, trend and season, which are added up; the last load until a season has passed.

    Args:
        type: `HoltWinters`.
        season: Time after which the load repeats.
        level: Weight of a new load in the level.
        trend: Weight of the last change of the level in the trend.
        seasonal: Weight of a new load in the season.
    """

    type: Literal["HoltWinters"]
    season: PositivePeriod = timedelta(days=1)
    level: Fraction = 0.2
    trend: Fraction = 0.01
    seasonal: Fraction = 0.2


class Prediction(Model):
    """What the HPA would do if the predicted load were one of its metrics.

    Args:
        forecaster: How the load is predicted, from the load before.
        horizon: How far ahead; about the time until a new pod serves.
        step: Length of the steps of the load from which it is predicted; each counts with its mean.
        target_utilization: Share of the capacity of a pod that the predicted load is to use.
    """

    forecaster: Annotated[SeasonalNaive | HoltWinters, Field(discriminator="type")]
    horizon: Period = timedelta(minutes=5)
    step: PositivePeriod = timedelta(minutes=1)
    target_utilization: Annotated[float, Field(gt=0, le=1)] = 0.8

    @model_validator(mode="after")
    def _whole_steps(self) -> Self:
        if self.forecaster.season % self.step:
            season, step = format_duration(self.forecaster.season), format_duration(self.step)
            raise ValueError(f"the season must be a multiple of the step, {step}, got {season}")
        return self
