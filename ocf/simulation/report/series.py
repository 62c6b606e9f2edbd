"""Columns of a run as the data of charts, with a bounded number of rows."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import fsum, isnan
from operator import mul, sub

from ocf.simulation.arrays import FloatArray, IntArray
from ocf.simulation.result import Columns, GroupColumns

__all__ = ["MOST_ROWS", "Sampled", "part_means", "sampled"]

MOST_ROWS = 8_000
"""Rows of a chart; more of them are merged."""

# More than a chart of a few hundred pixels can show.
_DIGITS = 4
_NAMES = (
    "load",
    "capacity",
    "queue",
    "dropped",
    "demand",
    "replicas",
    "starting",
    "ready",
    "terminating",
    "utilization",
    "wanted",
    "stabilized",
    "desired",
    "pending",
    "nodes_booting",
    "nodes_ready",
    "nodes_draining",
    "node_cpu",
    "node_memory",
)

Value = float | None
"""A number with few digits; None where there is none."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """Rows of charts; each holds until the next one.

    Args:
        times: Seconds since the start at which a row begins.
        high: Highest values of the row by column; a column is missing where no row has two values.
    """

    times: tuple[float, ...]
    low: dict[str, tuple[Value, ...]]
    high: dict[str, tuple[Value, ...]]


def sampled(
    columns: Columns, duration: float, *, most: int = MOST_ROWS, groups: Mapping[str, GroupColumns] | None = None
) -> Sampled:
    """Return the rows of charts.

    Up to `most` rows are those of the run. Otherwise rows that begin within the same part of the time are merged, and
    keep their lowest and highest values, so that no peak is lost.

    Args:
        duration: Length of the run in seconds.
        groups: The columns of each node group; the one of its ready nodes is `nodes_ready.workers`.

    Example:
        >>> from array import array
        >>> rows = Columns(time=array("d", range(4)), load=array("d", [1, 9, 2, 3]))
        >>> found = sampled(rows, 4, most=2)
        >>> found.times, found.low["load"], found.high["load"]
        ((0.0, 2.0), (1.0, 2.0), (9.0, 3.0))
    """
    time = columns.time
    if len(time) <= most:
        begins: Sequence[int] = range(len(time))
    else:
        firsts = (bisect_left(time, duration * number / most) for number in range(most))
        begins = sorted({each for each in firsts if each < len(time)})
    spans = list(pairwise((*begins, len(time))))
    low: dict[str, tuple[Value, ...]] = {}
    high: dict[str, tuple[Value, ...]] = {}
    known: dict[str, IntArray | FloatArray] = {name: getattr(columns, name) for name in _NAMES}
    for name, column in (known | {f"nodes_ready.{name}": each.ready for name, each in (groups or {}).items()}).items():
        if not len(column):
            continue
        parts = _parts(column, spans)
        low[name] = tuple(_short(min(part)) if part else None for part in parts)
        if len(spans) < len(time):
            highest = tuple(_short(max(part)) if part else None for part in parts)
            if highest != low[name]:
                high[name] = highest
    return Sampled(tuple(time[begin] for begin in begins), low, high)


def part_means(times: Sequence[float], values: Sequence[float], begin: float, end: float, parts: int) -> list[float]:
    """Return the mean over time of a step function in each of equal parts of a span.

    Args:
        times: Seconds since the start at which each value begins to hold, the first at 0.
        begin: Begin of the span in seconds since the start.

    Example:
        >>> part_means([0, 60], [2, 4], 0, 120, 3)
        [2.0, 3.0, 4.0]
    """
    if not times:
        return [0.0] * parts
    # The sum from the start to each row, so that a part needs only the rows at its ends.
    sums: list[float] = list(accumulate(map(mul, values, map(sub, times[1:], times)), initial=0.0))

    def until(time: float) -> float:
        row = bisect_right(times, time) - 1
        return sums[row] + values[row] * (time - times[row])

    part = (end - begin) / parts
    ends = [until(begin + number * part) for number in range(parts + 1)]
    return [(after - before) / part for before, after in pairwise(ends)]


def _parts(column: IntArray | FloatArray, spans: Iterable[tuple[int, int]]) -> list[Sequence[float]]:
    """Return the values of each span, without those that stand for none."""
    parts = [column[begin:end] for begin, end in spans]
    if column.typecode == "q":
        return [[each for each in part if each >= 0] for part in parts] if min(column) < 0 else [*parts]
    return [[each for each in part if not isnan(each)] for part in parts] if isnan(fsum(column)) else [*parts]


def _short(value: float) -> float:
    return value if isinstance(value, int) else float(f"{value:.{_DIGITS}g}")
