"""Forecasts of the load, each from the load before only."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol

from ocf.autoscaling.algorithm import Autoscaler, Metric, MetricTarget
from ocf.simulation.engine.clock import microseconds
from ocf.simulation.engine.load_steps import LoadSteps
from ocf.simulation.scenario.prediction import PREDICTED, HoltWinters, Prediction
from ocf.simulation.scenario.workload import Workload

__all__ = ["Forecast", "Forecaster", "forecaster_of", "with_prediction"]

_MILLI: Final = 1000


class Forecaster(Protocol):
    """Predicts a series of numbers from its beginning."""

    def observe(self, value: float) -> None:
        """Add the next number."""

    def forecast(self, ahead: int) -> float:
        """Return the number that is expected some steps after the last one.

        Args:
            ahead: Number of steps, at least 1.
        """
        ...


class _SeasonalNaive:
    """The number of one season before.

    Example:
        >>> naive = _SeasonalNaive(3)
        >>> for value in (1.0, 2.0, 3.0, 4.0):
        ...     naive.observe(value)
        >>> naive.forecast(1), naive.forecast(3), naive.forecast(5)
        (2.0, 4.0, 3.0)
    """

    __slots__ = ("_season", "_seen")

    def __init__(self, season: int) -> None:
        self._season = season
        self._seen: list[float] = []

    def observe(self, value: float) -> None:
        """Add the next number."""
        self._seen.append(value)

    def forecast(self, ahead: int) -> float:
        """Return the number that is expected some steps after the last one."""
        count = len(self._seen)
        # As many whole seasons back as are needed.
        position = count - 1 + ahead - -(-ahead // self._season) * self._season
        return self._seen[position] if position >= 0 else self._seen[-1]


class _HoltWinters:
    """Additive exponential smoothing; the first season gives level and season, and no trend."""

    __slots__ = ("_count", "_last", "_level", "_seasons", "_trend", "_weights")

    def __init__(self, season: int, weights: tuple[float, float, float]) -> None:
        self._weights = weights
        self._seasons = [0.0] * season
        self._count = 0
        self._level = self._trend = self._last = 0.0

    def observe(self, value: float) -> None:
        """Add the next number."""
        count, seasons = self._count, self._seasons
        place = count % len(seasons)
        self._count, self._last = count + 1, value
        if count < len(seasons):
            seasons[place] = value
            if count + 1 == len(seasons):
                self._level = math.fsum(seasons) / len(seasons)
                self._seasons = [each - self._level for each in seasons]
            return
        alpha, beta, gamma = self._weights
        before = self._level
        self._level = alpha * (value - seasons[place]) + (1 - alpha) * (before + self._trend)
        seasons[place] = gamma * (value - before - self._trend) + (1 - gamma) * seasons[place]
        self._trend = beta * (self._level - before) + (1 - beta) * self._trend

    def forecast(self, ahead: int) -> float:
        """Return the number that is expected some steps after the last one; at least 0."""
        seasons = self._seasons
        if self._count < len(seasons):
            return self._last
        return max(0.0, self._level + ahead * self._trend + seasons[(self._count - 1 + ahead) % len(seasons)])


def forecaster_of(prediction: Prediction) -> Forecaster:
    """Return the forecaster of a prediction, which has seen nothing yet."""
    chosen = prediction.forecaster
    season = chosen.season // prediction.step
    if isinstance(chosen, HoltWinters):
        return _HoltWinters(season, (chosen.level, chosen.trend, chosen.seasonal))
    return _SeasonalNaive(season)


class Forecast:
    """The predicted load in virtual time.

    Until the first step of the load has passed, it is the load at the start.
    """

    __slots__ = ("_ahead", "_forecaster", "_found", "_step", "_steps", "parameters")

    def __init__(self, prediction: Prediction, steps: LoadSteps) -> None:
        self._steps = steps
        self._step = microseconds(prediction.step)
        # From the last step that has passed to the one in which the horizon ends.
        self._ahead = 1 + prediction.horizon // prediction.step
        self._forecaster = forecaster_of(prediction)
        self._found = [steps.rates[steps.at(0)]]
        self.parameters: tuple[object, ...] = (prediction.model_dump_json(),)
        """What decides the values under the same load: equal for equal ones."""

    def at(self, now: int) -> float:
        """Return the load that is predicted at an instant, in microseconds since the start."""
        passed, found = max(0, now // self._step), self._found
        while len(found) <= passed:
            self._forecaster.observe(self._mean(len(found) - 1))
            found.append(self._forecaster.forecast(self._ahead))
        return found[passed]

    def _mean(self, number: int) -> float:
        """Return the mean load of a step."""
        at, end = number * self._step, (number + 1) * self._step
        rate, total = self._steps.rates[self._steps.at(at)], 0.0
        for begin, following in self._steps.between(at, end):
            total += rate * (begin - at)
            at, rate = begin, following
        return (total + rate * (end - at)) / self._step


def with_prediction(
    autoscalers: Sequence[Autoscaler], prediction: Prediction | None, workload: Workload
) -> list[Autoscaler]:
    """Return HPAs with the predicted load as one more metric, if there is a prediction."""
    if prediction is None:
        return list(autoscalers)
    share = math.ceil(workload.capacity * prediction.target_utilization * _MILLI)
    metric = Metric("External", PREDICTED, MetricTarget(average=share, type="AverageValue"))
    return [replace(each, metrics=(*each.metrics, metric)) for each in autoscalers]
