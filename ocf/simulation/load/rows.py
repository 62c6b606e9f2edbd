"""Rows of a load that is read from a file, whatever its format."""

from collections.abc import Iterator
from pathlib import Path

from ocf.simulation.load.csv_rows import csv_rows
from ocf.simulation.load.files import CsvLoad, FileLoad, JsonLoad, PrometheusLoad, RecordingLoad, Row
from ocf.simulation.load.json_rows import json_rows, line_of_entry
from ocf.simulation.load.prometheus_rows import prometheus_rows
from ocf.simulation.recording.metric_totals import total_rows

__all__ = ["line_of_row", "rows_of"]


def rows_of(load: FileLoad, file: Path) -> Iterator[Row]:
    """Return the number, the time and the value of each row.

    Args:
        load: How the file is used.
        file: The file.

    Raises:
        InputError: If the file does not have this format.
    """
    match load:
        case CsvLoad():
            return csv_rows(file, load)
        case JsonLoad():
            return json_rows(file, load)
        case PrometheusLoad():
            return prometheus_rows(file, load)
        case RecordingLoad():
            return total_rows(file, load.metric)
        case _:
            raise TypeError(f"{type(load).__name__} is not a format of files")


def line_of_row(load: FileLoad, file: Path, row: int) -> int | None:
    """Return the line of a row; None if it is not known.

    Args:
        load: How the file is used.
        file: The file.
        row: The number that `rows_of` yields for the row.
    """
    match load:
        case JsonLoad():
            return line_of_entry(file, load, row)
        case PrometheusLoad():
            return None  # a sample is checked, with its line, before it is a row
        case _:
            return row
