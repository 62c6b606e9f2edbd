"""Output of the figures: a table for users, Markdown for the page, JSON for programs."""

import json
from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.figures import Figure, Unit

__all__ = ["as_json", "as_markdown", "print_table", "with_figures"]

_WIDE = 130
_HEADINGS = ("name", "what is measured", "minimum", "median", "maximum", "limit", "ratio to", "holds")
_TEXTS = ("name", "what is measured", "holds")
_BEGIN, _END = "<!-- begin: figures -->\n", "<!-- end: figures -->\n"
_STEPS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))
_VERDICTS = {True: "yes", False: "NO", None: ""}
_COLOURS = {"yes": "[green]yes[/]", "NO": "[bold red]NO[/]", "": ""}


def as_json(machine: Mapping[str, str | int], figures: Sequence[Figure]) -> str:
    """Return everything as one JSON document; times are in nanoseconds."""
    return json.dumps({"machine": dict(machine), "figures": [figure.to_json() for figure in figures]}, indent=2)


def as_markdown(machine: Mapping[str, str | int], figures: Sequence[Figure]) -> str:
    """Return the figures as a table in Markdown, under the machine's description."""
    lines = [_HEADINGS, ["---" if heading in _TEXTS else "--:" for heading in _HEADINGS], *map(_cells, figures)]
    table = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return f"{_described(machine)}\n\n{table}"


def with_figures(page: str, figures: str) -> str:
    """Return a page with other figures.

    Args:
        page: The page, with the markers `<!-- begin: figures -->` and `<!-- end: figures -->`, each on its own line.
        figures: What to put between them.

    Raises:
        ValueError: If the page does not have the markers in this order.
    """
    before, begin, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise ValueError(f"the page needs the lines {_BEGIN.strip()} and {_END.strip()}, to put the figures between")
    return f"{before}{begin}\n{figures}\n{end}{after}"


def print_table(machine: Mapping[str, str | int], figures: Sequence[Figure]) -> None:
    """Print the figures, one row each, under the machine's description."""
    console = Console()
    # Rather a line that wraps than a number that is cut off.
    console.width = max(console.width, _WIDE)
    console.print(f"{_described(machine)}\n")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in _HEADINGS:
        table.add_column(
            heading,
            justify="left" if heading in _TEXTS else "right",
            no_wrap=heading != "what is measured",
        )
    for figure in figures:
        *cells, verdict = _cells(figure)
        table.add_row(*cells, _COLOURS[verdict])
    console.print(table)


def _described(machine: Mapping[str, str | int]) -> str:
    return f"{machine['cpu']}, {machine['cores']} cores, {machine['python']}, {machine['platform']}"


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
