"""Rows of a CSV file, one by one."""

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ocf.simulation.input_errors import InputError, InputProblem
from ocf.simulation.load.files import CsvLoad, Row, Unit
from ocf.simulation.load.text_files import bounded_lines, open_text

__all__ = ["csv_rows"]

_UNIT_NAMES: Final = {
    Unit.PER_SECOND: re.compile(r"per[ _-]?s(ec(ond)?)?\b|/s(ec)?\b|\b[rq]ps\b", re.IGNORECASE),
    Unit.PER_MINUTE: re.compile(r"per[ _-]?min(ute)?\b|/min\b|\brpm\b", re.IGNORECASE),
    Unit.PER_HOUR: re.compile(r"per[ _-]?h(our)?\b|/h\b", re.IGNORECASE),
}


def csv_rows(file: Path, load: CsvLoad) -> Iterator[Row]:
    """Yield the line, the time and the value of each row."""
    with open_text(file) as text:
        # Blank and not left out, so that the numbers of the lines stay right.
        lines = ("" if line[:1] == "#" else line for line in bounded_lines(text, file))
        reader = csv.reader(lines, delimiter=load.delimiter, strict=True)
        time = value = 0
        try:
            first = next((row for row in reader if row), None)
            if first is None:
                return
            chosen = _columns(first, load, str(file), reader.line_num)
            time, value = chosen.time, chosen.value
            if not chosen.header:
                yield reader.line_num, first[time], first[value]
            for row in reader:
                if row:
                    yield reader.line_num, row[time], row[value]
        except csv.Error as error:
            raise InputError([InputProblem(str(file), f"invalid CSV: {error}", line=reader.line_num)]) from None
        except IndexError:
            detail = f"a row has fewer columns than the others: column {max(time, value) + 1} is missing"
            raise InputError([InputProblem(str(file), detail, line=reader.line_num)]) from None


class _Columns(NamedTuple):
    """Positions of the columns, from 0, and whether the first row is a header."""

    time: int
    value: int
    header: bool


def _columns(first: Sequence[str], load: CsvLoad, file: str, line: int) -> _Columns:
    names = [name.strip() for name in first]
    problems = []
    found = []
    for field, column in (("time", load.time), ("value", load.value)):
        position = _position(column, names)
        if position is None:
            known = ", ".join(names)
            hint = "" if len(names) > 1 else "; is `delimiter` another one?"
            problems.append(
                InputProblem(file, f"there is no {_named(column)}, the columns are: {known}{hint}", line, field)
            )
        found.append(position or 0)
    if problems:
        raise InputError(problems)
    time, value = found
    header = isinstance(load.time, str) or isinstance(load.value, str) or not _is_number(names[value])
    if header:
        _check_unit(names[value], load, file, line)
    return _Columns(time, value, header)


def _position(column: str | int, names: Sequence[str]) -> int | None:
    if isinstance(column, str):
        return names.index(column) if column in names else None
    return column - 1 if column <= len(names) else None


def _named(column: str | int) -> str:
    return f"column {column!r}" if isinstance(column, str) else f"column {column}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_unit(name: str, load: CsvLoad, file: str, line: int) -> None:
    spaced = name.replace("_", " ")
    named = next((unit for unit, pattern in _UNIT_NAMES.items() if pattern.search(spaced)), None)
    # With a factor, the values have been converted on purpose.
    if named is not None and named is not (load.unit or Unit.PER_SECOND) and load.factor == 1:
        seen = "is not set" if load.unit is None else f"is {load.unit}"
        detail = f"the name of the column means {named}, and `unit` {seen}: write `unit: {named}`, or another `factor`"
        raise InputError([InputProblem(file, detail, line, name)])
