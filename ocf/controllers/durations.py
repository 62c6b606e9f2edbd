"""Histograms of durations, for collectors that keep their own samples."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

__all__ = ["Durations"]


class Durations:
    """A histogram of durations.

    Args:
        bounds: The upper bounds of its buckets, in seconds, ascending.

    Attributes:
        total: The sum of all durations, in seconds.

    Example:
        >>> found = Durations((1.0, 10.0))
        >>> for seconds in (0.5, 1.0, 60.0):
        ...     found.add(seconds)
        >>> found.count, found.total, found.buckets
        (3, 61.5, [('1', 2.0), ('10', 2.0), ('+Inf', 3.0)])
    """

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds: Final = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Add a duration.

        Args:
            seconds: The duration; a negative one, after a clock was set back, counts as 0.
        """
        known = max(seconds, 0.0)
        # Left: Prometheus's bounds are inclusive.
        self._counts[bisect_left(self._bounds, known)] += 1
        self.total += known

    @property
    def count(self) -> int:
        """How many durations there were."""
        return sum(self._counts)

    @property
    def buckets(self) -> list[tuple[str, float]]:
        """The cumulative buckets, as `prometheus_client` wants them."""
        bounds = [*(f"{bound:g}" for bound in self._bounds), "+Inf"]
        return list(zip(bounds, map(float, accumulate(self._counts)), strict=True))
