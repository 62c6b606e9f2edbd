"""Output of commands: tables for terminals, plain text for pipes, JSON for programs, and one-line errors."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from errno import ENOSPC
from typing import Any, Final

import click

from ocf.errors import ConfigError
from ocf.objects.printable import printable, printable_json

__all__ = ["as_json", "echo", "grid", "has_colors", "log_text", "print_error", "terminal", "value_text", "wrapped"]

_GAP: Final = "  "
_LONGEST_VALUE: Final = 60
_WIDTH: Final = 80
_WIDEST: Final = 120


def echo(line: str = "", *, color: str | None = None, bold: bool = False, err: bool = False) -> None:
    """Print a line of text, in which texts of others act neither on the terminal nor on a CI run.

    Args:
        line: The line; line ends in it are printed as escapes.
        color: Its color, which a terminal shows unless NO_COLOR is set.
    """
    click.secho(printable(line), fg=color, bold=bold or None, err=err, color=False if _no_colors() else None)


def has_colors() -> bool:
    """Return whether the standard output shows colors: a terminal does, unless NO_COLOR is set."""
    return sys.stdout.isatty() and not _no_colors()


def _no_colors() -> bool:
    """Return whether the user wants no colors in any program: https://no-color.org."""
    return bool(os.environ.get("NO_COLOR"))


def log_text(level: int) -> None:
    """Write log lines to the standard error as text."""
    import logging

    from ocf.runtime.monitoring.text_logs import TextFormatter

    handler = logging.StreamHandler()
    handler.setFormatter(TextFormatter())
    logging.basicConfig(level=level, handlers=[handler])


def print_error(error: Exception) -> None:
    """Print an error to the standard error: one line, or one for each problem of a file."""
    for message in _messages(error):
        echo(f"error: {message}", color="red", err=True)


def _messages(error: Exception) -> Sequence[str]:
    from ocf.cli.component_loader import one_line

    several = error.messages if isinstance(error, ConfigError) else ()
    if len(several) > 1:
        return [" ".join(each.split()) for each in several]
    if isinstance(error, OSError) and error.errno == ENOSPC and error.filename is None:
        return [f"the output cannot be written: {error.strerror}"]
    return [one_line(error)]


def as_json(value: Any) -> str:
    """Return dataclasses, manifests and plain values as JSON text."""
    return printable_json(json.dumps(value, default=_plain, indent=2, ensure_ascii=False))


def _plain(value: Any) -> Any:
    if hasattr(value, "to_manifest"):
        return value.to_manifest()
    if hasattr(value, "__dataclass_fields__"):
        return asdict(value)
    return str(value)


def grid(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: with lines and colors to a terminal, otherwise as aligned text."""
    headings, rows = list(map(printable, headings)), [list(map(printable, row)) for row in rows]
    if sys.stdout.isatty():
        _table(printable(title), headings, rows)
        return
    echo(title)
    widths = [max(len(cell) for cell in column) for column in zip(headings, *rows, strict=True)]
    for row in (headings, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        echo(f"{_GAP}{_GAP.join(cells)}".rstrip())


def _table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def value_text(value: Any) -> str:
    """Return the text of a value for a cell: JSON, truncated if it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.splitlines())
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."


def terminal() -> tuple[int, bool]:
    """Return the width of the output, and whether it can show more than ASCII."""
    import shutil

    encoding = (getattr(sys.stdout, "encoding", None) or "").lower()
    width = min(_WIDEST, shutil.get_terminal_size((_WIDTH, 24)).columns) if sys.stdout.isatty() else _WIDTH
    return width, encoding.startswith("utf")


def wrapped(line: str, width: int, *, indent: str = _GAP) -> list[str]:
    """Wrap a line between words; continuation lines are indented further."""
    import textwrap

    text = line.lstrip()
    start = indent + line[: len(line) - len(text)]
    if len(start) + len(text) <= width:
        return [start + text]
    return textwrap.wrap(
        text,
        width,
        initial_indent=start,
        subsequent_indent=start + _GAP,
        break_long_words=False,
        break_on_hyphens=False,
    )
