"""The panels of a dashboard as one SVG: complete in itself, in the colours of the reader's scheme."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from scripts.record.dashboard_parts.chart import COLOURS, chart
from scripts.record.dashboard_parts.panels import Panel, in_unit
from scripts.record.dashboard_parts.run import END, START

__all__ = ["COLUMN", "HEADER", "MARGIN", "ROW", "draw"]

COLUMN: Final = 37.5
"""Width of a column of the grid, in units of the picture."""
ROW: Final = 30
"""Height of a row of the grid, as in Grafana."""
MARGIN: Final = 4
"""Space at the left and at the right of the grid."""
HEADER: Final = 44
"""Height of the line above the grid."""

_COLUMNS: Final = 24
_TITLE: Final = 22
_STYLE: Final = (
    ":root{--paper:#f4f5f5;--card:#fff;--ink:#1f2328;--muted:#57606a;--line:#d0d7de}"
    "@media(prefers-color-scheme:dark){:root{--paper:#111217;--card:#181b1f;--ink:#e6e9ee;--muted:#a3acb9;"
    "--line:#343a43}}"
    "text{font:12px system-ui,sans-serif;fill:var(--muted)}text.title{font-weight:600;font-size:13px}"
    "text.title,text.cell{fill:var(--ink)}text.head{font-weight:600}"
    ".paper{fill:var(--paper)}.card{fill:var(--card);stroke:var(--line)}.grid{stroke:var(--line)}"
    ".area{fill:currentColor;fill-opacity:.25}"
    ".series{fill:none;stroke:currentColor;stroke-width:1.7;stroke-linejoin:round;stroke-linecap:round}"
)


def draw(title: str, panels: Sequence[Panel], drawn_from: str) -> str:
    """Return the picture of a dashboard.

    Args:
        title: Its title.
        panels: Its panels, with their values.
        drawn_from: The digest of its panels.
    """
    width = _COLUMNS * COLUMN + 2 * MARGIN
    height = HEADER + ROW * max(each.place.y + each.place.h for each in panels) + MARGIN
    text = f"{len(panels)} panels. " + " ".join(_sentence(panel) for panel in panels)
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img"'
        f' aria-labelledby="title text" data-panels="{drawn_from}">'
    )
    parts = [
        opening,
        f'<title id="title">Dashboard {escape(title)}</title><desc id="text">{escape(text)}</desc>',
        f"<style>{_STYLE}{''.join(_colours())}</style>",
        f'<rect class="paper" width="{width:g}" height="{height:g}"/>',
        f'<text class="title" x="{MARGIN + 8}" y="26">{escape(title)}</text>',
        f'<text x="{width - MARGIN - 8:g}" y="26" text-anchor="end">{START:%H:%M} to {END:%H:%M} UTC</text>',
    ]
    for panel in panels:
        parts += _panel(panel)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _colours() -> Iterator[str]:
    for number, (light, dark) in enumerate(COLOURS):
        yield f".c{number}{{color:{light}}}@media(prefers-color-scheme:dark){{.c{number}{{color:{dark}}}}}"
        if number % 2:
            yield f".series.c{number}{{stroke-dasharray:5 4}}"


def _sentence(panel: Panel) -> str:
    """Return what a panel shows, for readers who do not see it."""
    if panel.lines is None:
        shown = [", ".join(row) for row in panel.rows]
    else:
        shown = [f"{line.name} at most {in_unit(max(line.points.values()), panel.unit)}" for line in panel.lines]
    return f"{panel.title}: {'; '.join(shown) or 'no data'}."


def _panel(panel: Panel) -> Iterator[str]:
    x, y = MARGIN + panel.place.x * COLUMN, HEADER + panel.place.y * ROW
    width, height = panel.place.w * COLUMN, panel.place.h * ROW
    yield f'<g class="panel" data-unit="{panel.unit}" transform="translate({x:g} {y:g})">'
    yield f"<title>{escape(f'{panel.title}: {panel.description}')}</title>"
    yield f'<rect class="card" x="3" y="3" width="{width - 6:g}" height="{height - 6:g}" rx="3"/>'
    yield f'<text class="title" x="12" y="{_TITLE}">{escape(panel.title)}</text>'
    if panel.lines is None:
        yield from _table(panel, width)
    elif panel.lines:
        yield from chart(panel, width, height)
    else:
        yield f'<text x="{width / 2:g}" y="{height / 2:g}" text-anchor="middle">No data</text>'
    yield "</g>"


def _table(panel: Panel, width: float) -> Iterator[str]:
    step = (width - 24) / len(panel.header)
    for number, row in enumerate([panel.header, *panel.rows]):
        y, style = _TITLE + 28 + number * 26, "cell" if number else "head"
        yield f'<line class="grid" x1="12" x2="{width - 12:g}" y1="{y + 8}" y2="{y + 8}"/>'
        for column, text in enumerate(row):
            yield f'<text class="{style}" x="{12 + column * step:g}" y="{y}">{escape(text)}</text>'
