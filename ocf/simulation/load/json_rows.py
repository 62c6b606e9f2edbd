"""Rows of a JSON file."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from ocf.objects.json_syntax import json_problem
from ocf.objects.paths import format_path, get_field
from ocf.simulation.input_errors import InputError, InputProblem
from ocf.simulation.load.files import JsonLoad, Row
from ocf.simulation.load.json_lines import line_of
from ocf.simulation.load.text_files import BY_LINES, bounded_lines, open_text, read_bounded

__all__ = ["json_rows", "line_of_entry", "parse_json"]

_LINES: Final = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
_PAIR: Final = 2


def json_rows(file: Path, load: JsonLoad) -> Iterator[Row]:
    """Yield the number, the time and the value of each entry."""
    if str(file).endswith(_LINES):
        yield from _line_rows(file, load)
        return
    text = read_bounded(file, BY_LINES)
    content = parse_json(text, str(file))
    path = tuple(load.items.split(".")) if load.items else ()
    entries = get_field(content, path) if path else content
    if not isinstance(entries, list):
        detail = f"must be a list of entries, got {_shown(entries)}; `items` names the list in an object"
        raise InputError([InputProblem(str(file), detail, field=format_path(path))])
    for index, entry in enumerate(entries):
        try:
            row = _row(entry, index, load)
        except ValueError as error:
            line = line_of(text, (*path, index))
            raise InputError([InputProblem(str(file), str(error), line, format_path((*path, index)))]) from None
        yield index, *row


def line_of_entry(file: Path, load: JsonLoad, number: int) -> int:
    """Return the line of an entry.

    Args:
        number: The number that `json_rows` yields for it: a line of JSON Lines, or a position in the list.
    """
    if str(file).endswith(_LINES):
        return number
    return line_of(read_bounded(file, BY_LINES), (*(load.items.split(".") if load.items else ()), number))


def _line_rows(file: Path, load: JsonLoad) -> Iterator[Row]:
    with open_text(file) as text:
        for number, line in enumerate(bounded_lines(text, file), 1):
            if line.strip():
                entry = parse_json(line, str(file), before=number - 1)
                try:
                    yield number, *_row(entry, number - 1, load)
                except ValueError as error:
                    raise InputError([InputProblem(str(file), str(error), number)]) from None


def _row(entry: Any, index: int, load: JsonLoad) -> tuple[str | float, str | float]:
    if load.step is not None and _is_cell(entry):
        return index * load.step.total_seconds(), entry
    if isinstance(entry, Sequence) and not isinstance(entry, str) and len(entry) == _PAIR and all(map(_is_cell, entry)):
        return entry[0], entry[1]
    if isinstance(entry, dict):
        time = index * load.step.total_seconds() if load.step is not None else entry.get(load.time)
        value = entry.get(load.value)
        for key, cell in ((load.time, time), (load.value, value)):
            if cell is None:
                raise ValueError(f"there is no {key!r}; the keys are: {', '.join(entry)}")
            if not _is_cell(cell):
                raise ValueError(f"{key}: must be a number or a text, got {_shown(cell)}")
        return time, value  # type: ignore[return-value]  # both are cells
    hint = "; with `step`, an entry may be a number" if load.step is None else ""
    raise ValueError(f"must be [time, value] or an object with both, got {_shown(entry)}{hint}")


def _is_cell(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} with {len(value)} entries"
    return f"{json.dumps(value):.60}"


def parse_json(text: str, file: str, before: int = 0) -> Any:
    """Return the value of a JSON text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        body = text.encode("utf-8", "surrogatepass")
        found = json_problem(body)
        lines = body[: found.offset].decode(errors="replace").split("\n")
        problem = InputProblem(
            file, f"invalid JSON: {found.message} in column {len(lines[-1]) + 1}", before + len(lines)
        )
    except (RecursionError, ValueError) as error:
        problem = InputProblem(file, f"invalid JSON: {type(error).__name__}: nested too deep, or a number too long")
    raise InputError([problem])
