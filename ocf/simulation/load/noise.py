"""Noise: random changes of the other loads."""

import random
from bisect import bisect_right
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from ocf.simulation.fields import Fraction, Model, Period, PositivePeriod, Rate
from ocf.simulation.load.generators import midpoints
from ocf.simulation.load.series import LoadSeries

__all__ = ["NoiseLoad"]


class NoiseLoad(Model):
    """Random changes of the sum of the other loads, which never falls below 0.

    In each step a number from -1 to 1 is drawn; the sum changes by `share` of itself and by `spread`, times the number.

    Args:
        type: `Noise`.
        share: Largest change, as a share of the sum of the other loads.
        spread: Largest change, in load units per second.
        correlation: Share of the number that is kept in the next step; the rest is drawn anew.
        at: When it begins, as time since the start of the simulation.
        duration: How long it lasts; None: until the end of the simulation.
        step: Length of a step.
    """

    type: Literal["Noise"]
    share: Fraction = 0.0
    spread: Rate = 0.0
    correlation: Annotated[float, Field(ge=0, lt=1)] = 0.0
    at: Period = timedelta()
    duration: PositivePeriod | None = None
    step: PositivePeriod = timedelta(seconds=15)

    def apply(self, load: LoadSeries, end: float, stream: random.Random) -> LoadSeries:
        """Return a load with this noise.

        Args:
            load: The sum of the other loads.
            end: Seconds at which the simulation ends.
            stream: Source of random numbers.
        """
        begin = self.at.total_seconds()
        until = end if self.duration is None else min(end, begin + self.duration.total_seconds())
        if begin >= until:
            return load
        times, numbers = [-1.0], [0.0]
        number = 0.0
        for time, _ in midpoints(begin, until, self.step):
            # The shares add up to 1, so the number stays within -1 and 1.
            number = self.correlation * number + (1 - self.correlation) * (2 * stream.random() - 1)
            times.append(time)
            numbers.append(number)
        if until < end:
            times.append(until)
            numbers.append(0.0)
        steps = sorted({*load.times, *times[1:]})
        drawn = (numbers[bisect_right(times, time) - 1] for time in steps)
        return LoadSeries.of(
            ((time, self._changed(load.at(time), number)) for time, number in zip(steps, drawn, strict=True)),
            end=load.end,
        )

    def _changed(self, rate: float, number: float) -> float:
        changed = rate * (1 + self.share * number) + self.spread * number
        return rate if number == 0 else round(max(changed, 0.0), 9)
