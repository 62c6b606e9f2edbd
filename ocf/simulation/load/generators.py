"""Generated loads: steady, ramp, spike, sine and steps.

A load that changes all the time is computed in steps; a step has the value of its middle. Values are rounded to nine
digits, so that they are the same on every platform.
"""

import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from ocf.errors import ConfigError
from ocf.simulation.fields import Model, Period, PositivePeriod, Rate
from ocf.simulation.load.series import LoadSeries

__all__ = [
    "MAX_STEPS",
    "GeneratedLoad",
    "RampLoad",
    "RateChange",
    "SineLoad",
    "SpikeLoad",
    "SteadyLoad",
    "StepsLoad",
    "midpoints",
]

MAX_STEPS: Final = 5_000_000
"""Most steps of one load: 2 years in steps of 15 s are 4.2 million."""
_DIGITS: Final = 9
# The default sync period of the HPA controller.
_STEP: Final = timedelta(seconds=15)

Steps = Iterator[tuple[float, float]]


class GeneratedLoad(Model):
    """Base of the generated loads.

    Args:
        at: When the load begins, as time since the start of the simulation; until then it is 0.
        duration: How long it lasts; None: until the end of the simulation.
    """

    at: Period = timedelta()
    duration: PositivePeriod | None = None

    def series(self, length: float, start: datetime) -> LoadSeries:
        """Return the load.

        Args:
            length: Seconds to compute, from the begin of the load.
            start: The instant at which the load begins.

        Raises:
            ConfigError: If it has too many steps.
        """
        return LoadSeries.of(self.steps(length, start), end=length)

    def steps(self, length: float, start: datetime) -> Steps:
        """Yield begin and rate of each step; the arguments are those of `series`."""
        raise NotImplementedError


def midpoints(begin: float, end: float, step: timedelta) -> Iterator[tuple[float, float]]:
    """Yield begin and middle of each step of a range, in seconds.

    Args:
        step: Length of a step; the last one may be shorter.
    """
    seconds = step.total_seconds()
    count = math.ceil((end - begin) / seconds)
    if count > MAX_STEPS:
        raise ConfigError(
            f"step: {seconds:g}s makes {count} steps in {end - begin:g}s; at most {MAX_STEPS} are allowed"
        )
    for number in range(count):
        # In microseconds, as the engine: sums of floats would put a step beside a sync that it coincides with.
        time = round(begin + number * seconds, 6)
        yield time, (time + min(end, begin + (number + 1) * seconds)) / 2


class SteadyLoad(GeneratedLoad):
    """A load that does not change.

    Args:
        type: `Steady`.
        rate: Load units per second.

    Example:
        >>> load = SteadyLoad(type="Steady", rate=40)
        >>> load.series(60, datetime(2026, 1, 1)).at(30)
        40.0
    """

    type: Literal["Steady"]
    rate: Rate

    def steps(self, length: float, start: datetime) -> Steps:  # noqa: ARG002 (see the base)
        """Yield the steps, see the base."""
        yield 0.0, self.rate


class RampLoad(GeneratedLoad):
    """A load that rises or falls evenly, and then stays.

    Args:
        type: `Ramp`.
        from_rate: Load units per second at the begin.
        to_rate: Load units per second from the end of the ramp on.
        over: Length of the ramp.
        step: Length of a step of the ramp.

    Example:
        >>> load = RampLoad.model_validate({"type": "Ramp", "fromRate": 0, "toRate": 60, "over": "1m"})
        >>> list(load.series(90, datetime(2026, 1, 1)).rates)
        [7.5, 22.5, 37.5, 52.5, 60.0]
    """

    type: Literal["Ramp"]
    from_rate: Rate
    to_rate: Rate
    over: PositivePeriod
    step: PositivePeriod = _STEP

    def steps(self, length: float, start: datetime) -> Steps:  # noqa: ARG002 (see the base)
        """Yield the steps, see the base."""
        over = self.over.total_seconds()
        rise = self.to_rate - self.from_rate
        for time, middle in midpoints(0.0, min(over, length), self.step):
            yield time, round(self.from_rate + rise * (middle / over), _DIGITS)
        if length > over:
            yield over, self.to_rate


class SpikeLoad(GeneratedLoad):
    """A load that rises, holds, and falls back to nothing; `at` says when.

    Args:
        type: `Spike`.
        peak: Load units per second at the top.
        rise: Time of the rise.
        hold: Time at the top.
        fall: Time of the fall.
        step: Length of a step of rise and fall.

    Example:
        >>> load = SpikeLoad.model_validate({"type": "Spike", "peak": 90, "rise": "30s", "hold": "1m", "fall": "30s"})
        >>> list(load.series(180, datetime(2026, 1, 1)).rates)
        [22.5, 67.5, 90.0, 67.5, 22.5, 0.0]
    """

    type: Literal["Spike"]
    peak: Rate
    rise: Period = timedelta()
    hold: Period = timedelta()
    fall: Period = timedelta()
    step: PositivePeriod = _STEP

    @model_validator(mode="after")
    def _lasts(self) -> Self:
        if not self.rise + self.hold + self.fall:
            raise ValueError("the spike takes no time: set `rise`, `hold` or `fall`")
        return self

    def steps(self, length: float, start: datetime) -> Steps:  # noqa: ARG002 (see the base)
        """Yield the steps, see the base."""
        top, rest = self.rise.total_seconds(), (self.rise + self.hold).total_seconds()
        done = (self.rise + self.hold + self.fall).total_seconds()
        for time, middle in midpoints(0.0, min(top, length), self.step):
            yield time, round(self.peak * (middle / top), _DIGITS)
        if self.hold and length > top:
            yield top, self.peak
        for time, middle in midpoints(rest, max(rest, min(done, length)), self.step):
            yield time, round(self.peak * ((done - middle) / (done - rest)), _DIGITS)
        if length > done:
            yield done, 0.0


class SineLoad(GeneratedLoad):
    """A load that swings around a mean.

    Args:
        type: `Sine`.
        mean: The mean, in load units per second.
        amplitude: How far it swings above and below the mean, at most as far as the mean.
        period: Time of one swing.
        phase: Time into the swing at which the load begins; it begins at the mean and rises with 0.
        step: Length of a step.
    """

    type: Literal["Sine"]
    mean: Rate
    amplitude: Rate
    period: PositivePeriod
    phase: Period = timedelta()
    step: PositivePeriod = _STEP

    @model_validator(mode="after")
    def _never_negative(self) -> Self:
        if self.amplitude > self.mean:
            raise ValueError(f"amplitude {self.amplitude:g} is above the mean {self.mean:g}: a load is never negative")
        return self

    def steps(self, length: float, start: datetime) -> Steps:  # noqa: ARG002 (see the base)
        """Yield the steps, see the base."""
        period, phase = self.period.total_seconds(), self.phase.total_seconds()
        for time, middle in midpoints(0.0, length, self.step):
            angle = 2 * math.pi * ((middle + phase) % period / period)
            yield time, round(max(self.mean + self.amplitude * math.sin(angle), 0.0), _DIGITS)


class RateChange(Model):
    """A change of a load in steps.

    Args:
        at: When the step begins, as time since the begin of the load.
        rate: Load units per second from then on.
    """

    at: Period
    rate: Rate


class StepsLoad(GeneratedLoad):
    """A load in steps; each holds until the next one.

    Args:
        type: `Steps`.
        changes: The steps, in order of time; before the first one, the load is 0. In files: `steps`.

    Example:
        >>> load = StepsLoad.model_validate(
        ...     {"type": "Steps", "steps": [{"at": 0, "rate": 5}, {"at": "1m", "rate": 8}]})
        >>> load.series(120, datetime(2026, 1, 1)).at(60)
        8.0
    """

    type: Literal["Steps"]
    changes: Annotated[tuple[RateChange, ...], Field(min_length=1, alias="steps")]

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for before, after in zip(self.changes, self.changes[1:], strict=False):
            if after.at <= before.at:
                raise ValueError(f"the steps must be in order of time: {after.at} does not come after {before.at}")
        return self

    def steps(self, length: float, start: datetime) -> Steps:  # noqa: ARG002 (see the base)
        """Yield the steps, see the base."""
        if self.changes[0].at:
            yield 0.0, 0.0
        for change in self.changes:
            if change.at.total_seconds() < length:
                yield change.at.total_seconds(), change.rate
