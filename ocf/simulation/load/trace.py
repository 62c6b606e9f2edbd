"""A recorded load: rows in order of time, cut, with its gaps filled, and scaled."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import ceil
from operator import sub
from pathlib import Path
from typing import Final

from ocf.errors import ConfigError
from ocf.simulation.arrays import FloatArray, IntArray
from ocf.simulation.input_errors import InputError, InputProblem
from ocf.simulation.load.csv_rows import csv_rows
from ocf.simulation.load.files import CsvLoad, FileLoad, Gaps, JsonLoad, PrometheusLoad, RecordingLoad, Row, Unit
from ocf.simulation.load.json_rows import json_rows, line_of_entry
from ocf.simulation.load.prometheus_rows import prometheus_rows
from ocf.simulation.load.series import LoadSeries
from ocf.simulation.load.timestamps import TimeParser, parse_value
from ocf.simulation.recording.metric_totals import total_rows

__all__ = ["MAX_ROWS", "first_instant", "read_trace", "rows_of"]

MAX_ROWS: Final = 5_000_000
"""Most rows of a load; a year in steps of 15 s has 2.1 million."""
_GAP: Final = 1.5
_SECONDS: Final = {Unit.PER_SECOND: 1.0, Unit.PER_MINUTE: 60.0, Unit.PER_HOUR: 3600.0}
_DIGITS: Final = 6
_YEARS: Final = range(1970, 2200)
"""Those that a scenario can start in."""


def _floats() -> FloatArray:
    return array("d")


@dataclass(slots=True)
class _Rows:
    """Rows of a file within the cut, collected one by one.

    Args:
        times: Seconds since the first row of the file.
        end: Where it ends; None: with the last row.
    """

    load: FileLoad
    lines: IntArray = field(default_factory=lambda: array("q"))
    times: FloatArray = field(default_factory=_floats)
    values: FloatArray = field(default_factory=_floats)
    begin: float = 0.0
    end: float | None = None
    column: str = ""
    _parse: TimeParser = field(init=False)
    _columns: tuple[str, str] = field(init=False)
    _first: float | None = None
    _last: float = -1.0

    def __post_init__(self) -> None:
        self._parse = TimeParser(self.load.time_unit, self.load.time_zone)
        self._columns = self.load.columns()

    def add(self, line: int, written_time: str | float, written_value: str | float) -> bool:
        """Add a row; return False if it lies after the cut."""
        self.column, value_column = self._columns
        seconds = self._parse(written_time)
        if self._first is None:
            self._first = seconds
            self._set_cut(seconds)
        time = round(seconds - self._first, _DIGITS)
        if time <= self._last:
            raise ValueError(_disorder(time, self._last, written_time))
        self._last = time
        if self.end is not None and time >= self.end:
            return False
        self.column = value_column
        value = parse_value(written_value)
        if self.times and time <= self.begin:
            # The value that holds at the begin of the cut is the last one before it.
            del self.lines[:], self.times[:], self.values[:]
        self.lines.append(line)
        self.times.append(time)
        self.values.append(value)
        if len(self.times) > MAX_ROWS:
            raise ValueError(f"more than {MAX_ROWS} rows: average over longer steps, or cut with `from` and `to`")
        return True

    def check(self) -> None:
        """Reject a load without a length."""
        if not self.times:
            raise ValueError("there are no rows: a load needs at least two")
        if len(self.times) == 1 and self.end is None:
            found = "there is only one row" if not self.begin else "`from` lies after the last row but one"
            raise ValueError(f"{found}: a load needs at least two, or `to`")

    def _set_cut(self, first: float) -> None:
        self.begin = self._place("from", self.load.from_, first) or 0.0
        self.end = self._place("to", self.load.to, first)
        if self.begin < 0:
            raise ValueError("`from` lies before the first row")
        if self.end is not None and self.end <= self.begin:
            raise ValueError(f"`to` lies {self.begin - self.end:g} s before `from`, or the first row")

    def _place(self, name: str, place: timedelta | datetime | None, first: float) -> float | None:
        """Return a place of the cut in seconds since the first row."""
        if not isinstance(place, datetime):
            return None if place is None else place.total_seconds()
        if self._parse.absolute:
            return round(place.timestamp() - first, _DIGITS)
        raise ValueError(f"`{name}` is an instant, and the times of the file are not: write the time since its start")


def read_trace(load: FileLoad, directory: Path) -> LoadSeries:
    """Read the load of a file.

    The file is read row by row; only times and values are kept, and nothing after the end of the cut is read.
    """
    file = directory / load.path
    found = _read(load, file)
    step = _usual_step(found)
    if load.gaps is Gaps.REJECT:
        _reject_gaps(found, step, file, load)
    end = found.times[-1] + step if found.end is None else found.end
    rates = _rates(found, load, step)
    times, rates = _filled(found, rates, step, load.gaps)
    if found.begin or load.time_factor != 1:
        # The first row may be the last one before the cut, whose value holds at its begin.
        times = array("d", (round(max(time - found.begin, 0.0) * load.time_factor, _DIGITS) for time in times))
    if load.factor != 1:
        rates = array("d", (rate * load.factor for rate in rates))
    return LoadSeries.checked(times, rates, round((end - found.begin) * load.time_factor, _DIGITS))


def first_instant(load: FileLoad, directory: Path) -> datetime | None:
    """Return the instant at which the load of a file was recorded; None if its times are not those of a calendar.

    At another speed, all instants but the first would be wrong, so it has none, either. A file that cannot be read has
    none: `read_trace` says what is wrong with it.
    """
    parse = TimeParser(load.time_unit, load.time_zone)
    try:
        first = next((parse(time) for _, time, _ in rows_of(load, directory / load.path)), None)
        if first is None or not parse.absolute or load.time_factor != 1:
            return None
        begin = datetime.fromtimestamp(first, UTC)
    except (ValueError, OverflowError, OSError, ConfigError):
        return None
    if load.from_ is not None:
        begin = load.from_ if isinstance(load.from_, datetime) else begin + load.from_
    return begin if begin.year in _YEARS else None


def _read(load: FileLoad, file: Path) -> _Rows:
    found = _Rows(load)
    line = None
    try:
        for line, written_time, written_value in rows_of(load, file):
            if not found.add(line, written_time, written_value):
                break
        line, found.column = None, ""
        found.check()
    except ValueError as error:
        at = None if line is None else _line_of_row(load, file, line)
        raise InputError([InputProblem(str(file), str(error), at, found.column)]) from None
    return found


def _disorder(time: float, last: float, written: str | float) -> str:
    if time == last:
        return f"{written} is there twice: add up or remove rows of the same time"
    return f"{written} comes {last - time:g} s before the row above: sort the rows by time"


def _usual_step(found: _Rows) -> float:
    """Return the median step in seconds."""
    steps: list[float] = sorted(map(sub, found.times[1:], found.times))
    if steps:
        return round(steps[len(steps) // 2], _DIGITS)
    return (found.end or 0.0) - found.times[0]


def _reject_gaps(found: _Rows, step: float, file: Path, load: FileLoad) -> None:
    for position, length in enumerate(map(sub, found.times[1:], found.times), 1):
        if length > _GAP * step:
            detail = (
                f"a gap of {length:g} s above this row, where the usual step is {step:g} s: set `gaps` to Hold,"
                " Zero or Interpolate"
            )
            raise InputError(
                [InputProblem(str(file), detail, _line_of_row(load, file, found.lines[position]), load.columns()[0])]
            )


def _rates(found: _Rows, load: FileLoad, step: float) -> FloatArray:
    """Return the values in load units per second."""
    unit = load.unit or Unit.PER_SECOND
    if unit is Unit.PER_SECOND:
        return found.values
    if unit is not Unit.PER_STEP:
        return array("d", (value / _SECONDS[unit] for value in found.values))
    lengths = [after - before for before, after in pairwise(found.times)]
    lengths.append(step)
    # The row before a gap counts one usual step: the gap is the time in which nothing was counted.
    counted = (length if length <= _GAP * step else step for length in lengths)
    return array("d", (value / length for value, length in zip(found.values, counted, strict=True)))


def _filled(found: _Rows, rates: FloatArray, step: float, gaps: Gaps) -> tuple[FloatArray, FloatArray]:
    """Return times and rates with the steps that fill gaps."""
    if gaps in {Gaps.REJECT, Gaps.HOLD}:
        return found.times, rates
    times, filled = array("d"), array("d")
    for position, (time, rate) in enumerate(zip(found.times, rates, strict=True)):
        times.append(time)
        filled.append(rate)
        after = found.times[position + 1] if position + 1 < len(rates) else time
        if after - time <= _GAP * step:
            continue
        if gaps is Gaps.ZERO:
            times.append(round(time + step, _DIGITS))
            filled.append(0.0)
            continue
        rise = (rates[position + 1] - rate) / (after - time)
        for number in range(1, ceil((after - time) / step)):
            times.append(round(time + number * step, _DIGITS))
            filled.append(rate + rise * number * step)
    return times, filled


def rows_of(load: FileLoad, file: Path) -> Iterator[Row]:
    """Return the number, the time and the value of each row."""
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


def _line_of_row(load: FileLoad, file: Path, row: int) -> int | None:
    """Return the line of a row; None if it is not known.

    Args:
        row: The number that `rows_of` yields for the row.
    """
    match load:
        case JsonLoad():
            return line_of_entry(file, load, row)
        case PrometheusLoad():
            return None  # a sample is checked, with its line, before it is a row
        case _:
            return row
