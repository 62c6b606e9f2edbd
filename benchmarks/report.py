"""Output of the figures: a table for users, JSON for programs."""

import json
from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.figures import Figure, Unit

__all__ = ["as_json", "print_table"]

_WIDE = 130
_LONGEST_LINE = 250
_STEPS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))
_VERDICTS = {True: "[green]yes[/]", False: "[bold red]NO[/]", None: ""}


def as_json(machine: Mapping[str, str | int], figures: Sequence[Figure]) -> str:
    """Return everything as one JSON document; times are in nanoseconds."""
    return json.dumps({"machine": dict(machine), "figures": [figure.to_json() for figure in figures]}, indent=2)


def print_table(machine: Mapping[str, str | int], figures: Sequence[Figure], *, markdown: bool = False) -> None:
    """Print the figures, one row each, under the machine's description."""
    console = Console()
    # Rather a line that wraps than a number that is cut off.
    console.width = _LONGEST_LINE if markdown else max(console.width, _WIDE)
    console.print(f"{machine['cpu']}, {machine['cores']} cores, {machine['python']}, {machine['platform']}\n")
    table = Table(box=box.MARKDOWN if markdown else box.SIMPLE_HEAD, pad_edge=markdown)
    table.add_column("name", no_wrap=True)
    table.add_column("what is measured")
    for heading in ("minimum", "median", "maximum", "limit", "ratio to"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("holds", no_wrap=True)
    for figure in figures:
        table.add_row(*_cells(figure))
    console.print(table)


def _cells(figure: Figure) -> tuple[str, ...]:
    return (figure.name, figure.what, *_numbers(figure), _ratio(figure), _VERDICTS[figure.holds])


def _numbers(figure: Figure) -> tuple[str, ...]:
    """Write minimum, median, maximum and limit; a count has no spread."""
    if figure.unit is Unit.COUNT:
        return ("", f"{figure.median:g}", "", "" if figure.limit is None else f"<= {figure.limit:g}")
    spread = [_duration(each) for each in (figure.minimum, figure.median, figure.maximum)]
    return (*spread, "" if figure.limit is None else f"< {_duration(figure.limit)}")


def _ratio(figure: Figure) -> str:
    """Name the yardstick without its suite, which the row names already."""
    if figure.ratio is None:
        return ""
    bound = "" if figure.share is None else f", <= {figure.share:g}"
    return f"{_three_digits(figure.ratio)} x {figure.against.partition('.')[2]}{bound}"


def _duration(nanoseconds: float) -> str:
    """Write a time with three digits, in the unit that suits it."""
    size, unit = next((step for step in _STEPS if abs(nanoseconds) >= step[0]), _STEPS[-1])
    return f"{_three_digits(nanoseconds / size)} {unit}"


def _three_digits(number: float) -> str:
    return f"{number:#.3g}".removesuffix(".")
