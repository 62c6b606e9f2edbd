"""The time series of a run, collected row by row."""

import math
from typing import Final

from ocf.simulation.result import Columns

__all__ = ["Row", "Rows", "demand_of"]

_CHUNK: Final = 4096

Row = tuple[float, float, float, float, float, float, int, int, int, int, int, float, int, int, int, int]
"""The values of a row, in the order of the columns."""


class Rows:
    """Rows that become columns.

    Columns are filled in chunks: adding sixteen numbers one by one would take longer than the sync that they describe.
    """

    __slots__ = ("_columns", "_waiting")

    def __init__(self) -> None:
        self._columns = Columns()
        self._waiting: list[Row] = []

    def add(self, row: Row) -> None:
        """Add a row."""
        self._waiting.append(row)
        if len(self._waiting) == _CHUNK:
            self._flush()

    def columns(self) -> Columns:
        """Return the columns of all rows."""
        self._flush()
        return self._columns

    def _flush(self) -> None:
        if self._waiting:
            for name, values in zip(Columns.__slots__, zip(*self._waiting, strict=True), strict=True):
                getattr(self._columns, name).extend(values)
            self._waiting.clear()


def demand_of(rate: float, per_pod: float) -> int:
    """Return the smallest number of pods that serve a load.

    Args:
        rate: Load units per second.
        per_pod: Load units per second that one pod may serve, more than 0.

    Example:
        >>> demand_of(30, 10), demand_of(30.1, 10), demand_of(0, 10)
        (3, 4, 0)
    """
    count = math.ceil(rate / per_pod)
    while count * per_pod < rate:
        count += 1
    while count and (count - 1) * per_pod >= rate:
        count -= 1
    return count
