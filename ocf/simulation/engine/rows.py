"""Rows of the time series of a run."""

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, Final, TypeAlias

from ocf.simulation.arrays import FloatArray, IntArray
from ocf.simulation.result import Columns, GroupColumns

__all__ = ["Row", "Table", "arrays_of", "demand_of"]

Row = tuple[float, ...]
"""The values of a row, in the order of the columns; those of nodes, in all and by group, only where there are some."""
Column: TypeAlias = IntArray | FloatArray
_NAMES: Final = tuple(each.name for each in fields(Columns))
_FIRST_OF_NODES: Final = _NAMES.index("pending")


def arrays_of(columns: Columns, groups: Iterable[GroupColumns] | None) -> list[Column]:
    """Return the columns that rows have, in their order.

    Args:
        groups: The columns of each node group; None without node groups.
    """
    names = _NAMES if groups is not None else _NAMES[:_FIRST_OF_NODES]
    of_groups = (getattr(each, name) for each in groups or () for name in GroupColumns.__slots__)
    return [*(getattr(columns, name) for name in names), *of_groups]


class Table:
    """The rows of a run, which become columns.

    Many rows at once take a third of the time of appending to sixteen columns row by row.

    Attributes:
        rows: The rows that are not in the columns yet.
    """

    __slots__ = ("_columns", "rows")

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self.rows: list[Row] = []

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._columns[0]) + len(self.rows)

    def flush(self) -> None:
        """Move the rows to the columns."""
        if self.rows:
            for column, values in zip(self._columns, zip(*self.rows, strict=True), strict=True):
                column.extend(values)
            self.rows.clear()

    def extend(self, parts: Sequence[Any], count: int) -> None:
        """Add rows at once.

        Args:
            parts: The values of each column; one value for all rows where they are the same.
        """
        self.flush()
        for column, values in zip(self._columns, parts, strict=True):
            several: Any = array(column.typecode, (values,)) * count if isinstance(values, int | float) else values
            column.extend(several)


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
    # The division rounds. The product decides, as the load that a pod serves is one.
    while count * per_pod < rate:
        count += 1
    while count and (count - 1) * per_pod >= rate:
        count -= 1
    return count
