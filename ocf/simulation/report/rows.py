"""The time series of runs as tables: CSV, rows of text, or columns."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Final

from ocf.simulation.report.reported import Reported
from ocf.simulation.result import Columns

__all__ = ["COLUMN_NAMES", "column_values", "csv_lines", "text_rows"]

COLUMN_NAMES: Final = tuple(each.name for each in fields(Columns))
"""The names of the columns, in the order of tables."""


def csv_lines(runs: Sequence[Reported]) -> Iterator[str]:
    """Yield the lines of runs as CSV, the first with the names; with several runs, the first column names the run.

    Args:
        runs: The runs.
    """
    several = len(runs) > 1
    yield ",".join((*(["run"] if several else []), *COLUMN_NAMES)) + "\n"
    for run in runs:
        first = f"{_quoted(run.name)}," if several else ""
        for row in text_rows(run.result.columns):
            yield f"{first}{','.join(row)}\n"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(each in text for each in ',"\r\n') else text


def column_values(columns: Columns, name: str) -> Sequence[float | None]:
    """Return a column; None stands for no value.

    Args:
        columns: The time series.
        name: Name of the column.

    Example:
        >>> from array import array
        >>> column_values(Columns(wanted=array("q", [3, -1])), "wanted")
        [3, None]
    """
    column = getattr(columns, name)
    if column.typecode == "q":
        return [value if value >= 0 else None for value in column]
    # NaN differs from itself.
    return [value if value == value else None for value in column]  # noqa: PLR0124


def text_rows(columns: Columns) -> Iterator[Iterable[str]]:
    """Yield the rows of the time series as text; whole numbers have no fraction, and no value is empty.

    Args:
        columns: The time series.
    """
    texts = [map(_text, column_values(columns, name)) for name in COLUMN_NAMES]
    return zip(*texts, strict=True)


def _text(value: float | None) -> str:
    if value is None:
        return ""
    return repr(int(value)) if value == int(value) else repr(value)
