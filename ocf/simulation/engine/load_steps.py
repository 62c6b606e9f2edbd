"""The steps of a load in virtual time."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

from ocf.simulation.engine.clock import NEVER, SECOND
from ocf.simulation.load import LoadSeries

__all__ = ["LoadSteps"]


class LoadSteps:
    """The steps of a load in virtual time.

    Attributes:
        begins: Microseconds at which each step begins, and `NEVER` after the last one. Two steps may begin in the same
            microsecond; then the later one counts.
        rates: Load units per second of each step.

    Example:
        >>> steps = LoadSteps(LoadSeries.of([(0, 5), (60, 8), (90, 2)]))
        >>> steps.at(60 * SECOND), steps.before(60 * SECOND)
        (1, 0)
        >>> list(steps.between(0, 90 * SECOND))
        [(60000000, 8.0), (90000000, 2.0)]
    """

    __slots__ = ("begins", "rates")

    def __init__(self, load: LoadSeries) -> None:
        self.begins: Final = array("q", [*(round(time * SECOND) for time in load.times), NEVER])
        self.rates: Final = load.rates

    def at(self, now: int) -> int:
        """Return the position of the step at an instant; of the first one before the start."""
        return max(0, bisect_right(self.begins, now) - 1)

    def before(self, now: int) -> int:
        """Return the position of the step that holds until an instant.

        Args:
            now: The instant in microseconds, after the start.
        """
        return bisect_left(self.begins, now) - 1

    def between(self, begin: int, end: int) -> Iterator[tuple[int, float]]:
        """Yield begin and rate of the steps that begin after an instant, up to another one.

        Args:
            end: A later instant, which is included.
        """
        begins, rates = self.begins, self.rates
        for step in range(bisect_right(begins, begin), bisect_right(begins, end)):
            if begins[step] != begins[step + 1]:
                yield begins[step], rates[step]
