"""A load as a step function of time."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from math import isfinite
from operator import lt
from typing import Final

from ocf.errors import ConfigError
from ocf.simulation.arrays import FloatArray

__all__ = ["LoadSeries", "total"]

# Microseconds, so that equal times that are computed in different ways are equal.
_DIGITS: Final = 6


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

    times: FloatArray
    rates: FloatArray
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
        return cls.checked(times, rates, end)

    @classmethod
    def checked(cls, times: FloatArray, rates: FloatArray, end: float | None) -> "LoadSeries":
        """Return a series, see `of`.

        Args:
            times: Begin of each step.
            rates: Rate of each step.
            end: Seconds at which the last step ends.
        """
        _check(times, rates, end)
        return cls(times, rates, end)

    def at(self, time: float) -> float:
        """Return the rate at a time.

        Args:
            time: Seconds since the start, not negative.
        """
        return self.rates[bisect_right(self.times, time) - 1]


def total(parts: Sequence[tuple[float, LoadSeries]], end: float) -> LoadSeries:
    """Return the sum of loads, cut at the end of a simulation.

    Args:
        parts: When each load begins, in seconds since the start, and the load; it is 0 before and after.

    Example:
        >>> load = total([(0, LoadSeries.of([(0, 5)])), (60, LoadSeries.of([(0, 8)], end=30))], 120)
        >>> list(zip(load.times, load.rates))
        [(0.0, 5.0), (60.0, 13.0), (90.0, 5.0)]
    """
    placed = [_placed(at, series, end) for at, series in parts]
    if len(placed) == 1:
        (only,) = placed
        return LoadSeries(only.times, only.rates, end)
    times = array("d", sorted({0.0}.union(*(series.times for series in placed))))
    # Zeros: eight bytes for each float.
    rates = array("d", bytes(8 * len(times)))
    for series in placed:
        step, last = 0, len(series.times) - 1
        for position, time in enumerate(times):
            while step < last and series.times[step + 1] <= time:
                step += 1
            rates[position] += series.rates[step]
    return LoadSeries(times, rates, end)


def _placed(at: float, series: LoadSeries, end: float) -> LoadSeries:
    """Return a load by time since the start: 0 before it begins and after it ends, and cut at the end."""
    if at == 0 and series.times[-1] < end <= (end if series.end is None else series.end):
        return series
    times, rates = array("d"), array("d")
    if at > 0:
        times.append(0.0)
        rates.append(0.0)
    if at < end:
        kept = bisect_left(series.times, end - at)
        times.extend(round(at + time, _DIGITS) for time in series.times[:kept])
        rates.extend(series.rates[:kept])
    if series.end is not None and at + series.end < end:
        times.append(round(at + series.end, _DIGITS))
        rates.append(0.0)
    return LoadSeries(times, rates)


def _check(times: FloatArray, rates: FloatArray, end: float | None) -> None:
    if not times:
        raise ConfigError("the load is empty: give at least one step")
    if times[0] != 0:
        raise ConfigError(f"the load must begin at 0 s, not at {times[0]:g} s")
    if not all(map(lt, times, islice(times, 1, None))):
        number, before, after = next(
            (number, *pair) for number, pair in enumerate(pairwise(times), start=2) if not pair[1] > pair[0]
        )
        raise ConfigError(f"step {number} of the load must begin after {before:g} s, not at {after:g} s")
    if not all(map(isfinite, rates)) or min(rates) < 0:
        number, rate = next(
            (number, rate) for number, rate in enumerate(rates, start=1) if not (isfinite(rate) and rate >= 0)
        )
        raise ConfigError(f"step {number} of the load must be a finite number of at least 0, not {rate:g}")
    if end is not None and not end > times[-1]:
        raise ConfigError(f"the load must end after its last step at {times[-1]:g} s, not at {end:g} s")
