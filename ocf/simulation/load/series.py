"""A load as a step function of time."""

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from ocf.errors import ConfigError

__all__ = ["LoadSeries"]


@dataclass(frozen=True, slots=True)
class LoadSeries:
    """A load as a step function of time.

    Args:
        times: Seconds since the start of the simulation at which a step begins; the first is 0, and they rise.
        rates: Load units per second, one per step; finite and not negative.
        end: Seconds since the start at which the last step ends; None if it never ends.

    Example:
        >>> load = LoadSeries.of([(0, 5), (60, 8)], end=120)
        >>> load.at(59), load.at(60)
        (5.0, 8.0)
    """

    times: "array[float]"
    rates: "array[float]"
    end: float | None = None

    @classmethod
    def of(cls, steps: Iterable[tuple[float, float]], *, end: float | None = None) -> "LoadSeries":
        """Return the series of some steps.

        Args:
            steps: Begin and rate of each step.
            end: Seconds at which the last step ends.

        Raises:
            ConfigError: If there is no step, the first does not begin at 0, times do not rise, or a rate is negative
                or not finite.
        """
        times, rates = array("d"), array("d")
        for time, rate in steps:
            times.append(time)
            rates.append(rate)
        _check(times, rates, end)
        return cls(times, rates, end)

    def at(self, time: float) -> float:
        """Return the rate at a time.

        Args:
            time: Seconds since the start, not negative.
        """
        return self.rates[bisect_right(self.times, time) - 1]


def _check(times: "array[float]", rates: "array[float]", end: float | None) -> None:
    if not times:
        raise ConfigError("the load is empty: give at least one step")
    if times[0] != 0:
        raise ConfigError(f"the load must begin at 0 s, not at {times[0]:g} s")
    for number, (before, after) in enumerate(pairwise(times), start=2):
        if not after > before:
            raise ConfigError(f"step {number} of the load must begin after {before:g} s, not at {after:g} s")
    for number, rate in enumerate(rates, start=1):
        if not 0 <= rate < float("inf"):
            raise ConfigError(f"step {number} of the load must be a finite number of at least 0, not {rate:g}")
    if end is not None and not end > times[-1]:
        raise ConfigError(f"the load must end after its last step at {times[-1]:g} s, not at {end:g} s")
