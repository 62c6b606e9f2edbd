"""The page of a search: the front as a chart, the verdict, and all tables.

It loads nothing, and is readable on a screen of 390 pixels, in the dark scheme, in print, and without JavaScript.
"""

from collections.abc import Iterator
from functools import cache
from html import escape
from importlib.resources import files
from typing import Final

from ocf.autoscaling.explain.html_page import html_page
from ocf.simulation.tuning.front_chart import figures
from ocf.simulation.tuning.tables import VIOLATED, Table, tables, verdict_lines
from ocf.simulation.tuning.tuned import Tuned

__all__ = ["to_html"]

_BAD: Final = (VIOLATED, "invalid")
_MOST: Final = 1_000
"""Rows of the front in a page."""


def to_html(tuned: Tuned, *, currency: str = "") -> str:
    """Render the result of a search as a page."""
    title = " / ".join(tuned.traces)
    invalid = f", {tuned.invalid} invalid" if tuned.invalid else ""
    subtitle = (
        f"Tuning: {tuned.evaluated} candidates simulated{invalid}, {tuned.searched * 100:.3g} % of the time searched"
    )
    body = [
        f"<main>\n<header><h1>{escape(title)}</h1>\n<p class='at'>{escape(subtitle)}</p></header>",
        *_verdict(tuned, currency),
        *(figures(tuned, currency=currency) if tuned.is_feasible else ()),
        *(_table(each) for each in tables(tuned, currency=currency, most=_MOST)),
        "</main>",
    ]
    return html_page(
        title=f"{title}: tuning",
        body="\n".join(body),
        marks=_part("ocf.simulation.report", "charts.css") + _part("ocf.simulation.tuning", "front.css"),
        script=_part("ocf.simulation.tuning", "front.js"),
        data="{}",
    )


@cache
def _part(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")


def _verdict(tuned: Tuned, currency: str) -> Iterator[str]:
    is_good = tuned.is_feasible and not tuned.is_worse_when_held_out and not tuned.worse_overload
    style = "" if is_good else " class='warning'"
    lines = "".join(f"<p{style}>{escape(line)}</p>" for line in verdict_lines(tuned, currency=currency))
    yield f'<div class="card">{lines}</div>'


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in table.headings)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.rows)
    note = f"<p class='at'>{escape(table.note)}</p>" if table.note else ""
    return (
        f"<section>\n<h2>{escape(table.title[:1].upper() + table.title[1:])}</h2>\n{note}"
        f'<div class="scroll"><table class="wide"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        "</section>"
    )


def _cell(text: str) -> str:
    return f"<td{' class=bad' if text.startswith(_BAD) else ''}>{escape(text)}</td>"
