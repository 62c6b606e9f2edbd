"""The time series of runs as tables: CSV, rows of text, or columns."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Final

from ocf.simulation.arrays import FloatArray, IntArray
from ocf.simulation.report.reported import Reported
from ocf.simulation.result import Columns, GroupColumns, SimulationResult

__all__ = [
    "COLUMN_NAMES",
    "NODE_COLUMN_NAMES",
    "columns_of",
    "csv_lines",
    "has_dates",
    "instants",
    "run_values",
    "table_names",
    "text_rows",
]

_NAMES: Final = tuple(each.name for each in fields(Columns))
_FIRST_OF_NODES: Final = _NAMES.index("pending")
COLUMN_NAMES: Final = _NAMES[:_FIRST_OF_NODES]
"""The names of the columns of all runs, in the order of tables."""
NODE_COLUMN_NAMES: Final = _NAMES[_FIRST_OF_NODES:]
"""The names of the columns of runs with node groups; those of each group follow."""


def columns_of(result: SimulationResult) -> dict[str, IntArray | FloatArray]:
    """Return the columns of a run by name; the one of the ready nodes of a group is `nodes_ready.workers`."""
    names = (*COLUMN_NAMES, *(NODE_COLUMN_NAMES if result.node_groups else ()))
    found = {name: getattr(result.columns, name) for name in names}
    for group, columns in result.node_groups.items():
        for each in fields(GroupColumns):
            name = "node_price" if each.name == "price" else f"nodes_{each.name}"
            found[f"{name}.{group}"] = getattr(columns, each.name)
    return found


def table_names(runs: Iterable[SimulationResult]) -> tuple[str, ...]:
    """Return the names of the columns that any of several runs has, in the order of tables."""
    return tuple(dict.fromkeys(name for run in runs for name in columns_of(run)))


def csv_lines(runs: Sequence[Reported]) -> Iterator[str]:
    """Yield the lines of runs as CSV, the first with the names.

    With several runs, the first column names the run. If the dates of a run mean something, the column `at` has them.
    """
    several, dated = len(runs) > 1, has_dates(runs)
    names = table_names(run.result for run in runs)
    head = (*(["run"] if several else []), *(["at"] if dated else []), *map(_quoted, names))
    yield ",".join(head) + "\n"
    for run in runs:
        first = f"{_quoted(run.name)}," if several else ""
        for at, row in zip(instants(run.result), text_rows(run.result, names), strict=True):
            date = f"{'' if at is None else at.isoformat()}," if dated else ""
            yield f"{first}{date}{','.join(row)}\n"


def has_dates(runs: Iterable[Reported]) -> bool:
    """Return whether the tables of runs have the column `at`."""
    return any(run.result.is_dated for run in runs)


def instants(result: SimulationResult) -> Iterator[datetime | None]:
    """Yield the instant of each row in UTC; None if its date means nothing."""
    return (result.instant(time) if result.is_dated else None for time in result.columns.time)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(each in text for each in ',"\r\n') else text


def run_values(result: SimulationResult, name: str) -> Sequence[float | None]:
    """Return a column of a run; None stands for no value.

    Args:
        name: Name of the column; one that the run does not have has no values.

    Example:
        >>> from array import array
        >>> from datetime import UTC, datetime
        >>> rows = Columns(time=array("d", [0, 15]), wanted=array("q", [3, -1]))
        >>> run = SimulationResult(name="web", start=datetime(2026, 1, 1, tzinfo=UTC), duration=30, columns=rows)
        >>> run_values(run, "wanted"), run_values(run, "pending")
        ([3, None], [None, None])
    """
    column = columns_of(result).get(name)
    if column is None:
        return [None] * len(result.columns.time)
    if column.typecode == "q":
        return [value if value >= 0 else None for value in column]
    # NaN differs from itself.
    return [value if value == value else None for value in column]  # noqa: PLR0124


def text_rows(result: SimulationResult, names: Iterable[str]) -> Iterator[Iterable[str]]:
    """Yield the rows of the time series as text; whole numbers have no fraction, and no value is empty."""
    texts = [map(_text, run_values(result, name)) for name in names]
    return zip(*texts, strict=True)


def _text(value: float | None) -> str:
    if value is None:
        return ""
    return repr(int(value)) if value == int(value) else repr(value)
