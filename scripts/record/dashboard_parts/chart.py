"""Lines of a panel as SVG, with axes and legend."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Final, NamedTuple

from ocf.autoscaling.explain.svg import round_step
from scripts.record.dashboard_parts.panels import Line, Panel, in_unit
from scripts.record.dashboard_parts.run import END, SCRAPE_INTERVAL, START

__all__ = ["COLOURS", "chart"]

COLOURS: Final = (
    ("#1d4ed8", "#60a5fa"),
    ("#c2410c", "#fb923c"),
    ("#15803d", "#4ade80"),
    ("#9333ea", "#c084fc"),
    ("#be123c", "#fb7185"),
    ("#0e7490", "#22d3ee"),
)
"""Colours of the lines, on light and on dark paper, of the classes `c0`, `c1`, ..."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 28, 36, 28
_EDGE: Final = 12
_LINES: Final = 4
_LEGEND_ROW: Final = 17
_LETTER: Final = 6.9
_SWATCH: Final = 24
_TICK: Final = timedelta(minutes=15)
_STEP: Final = round(SCRAPE_INTERVAL.total_seconds())


class _Drawn(NamedTuple):
    """A line as it is drawn: what it stands on, and its upper edge, by Unix seconds."""

    low: Mapping[int, float]
    high: Mapping[int, float]


class _Scale(NamedTuple):
    """Coordinates of times and values."""

    right: float
    bottom: float
    highest: float

    def x(self, at: float) -> float:
        share = (at - START.timestamp()) / (END - START).total_seconds()
        return round(_LEFT + share * (self.right - _LEFT), 1)

    def y(self, value: float) -> float:
        return round(self.bottom - value / self.highest * (self.bottom - _TOP), 1)


def chart(panel: Panel, width: float, height: float) -> Iterator[str]:
    """Yield the chart of a panel that has lines.

    Args:
        panel: The panel.
        width: Its width.
        height: Its height.
    """
    lines = panel.lines or ()
    entries = list(_entries(lines, width))
    drawn = list(_drawn(lines, is_stacked=panel.is_stacked))
    most = max(value for each in drawn for value in each.high.values())
    step = round_step(most or 1, _LINES, whole=panel.unit == "short")
    count = max(1, math.ceil(most / step - 1e-9))
    bottom = height - _BOTTOM - (entries[-1][1] + 1) * _LEGEND_ROW
    scale = _Scale(width - _RIGHT, bottom, step * count)
    yield from _axes(scale, [number * step for number in range(count + 1)], panel.unit)
    for number, each in enumerate(drawn):
        colour = f"c{number % len(COLOURS)}"
        if panel.is_stacked:
            yield f'<path class="area {colour}" d="{_area(each, scale)}"/>'
        yield f'<path class="series {colour}" d="{_path(each, scale)}"/>'
    for number, (left, row) in enumerate(entries):
        y = bottom + 36 + row * _LEGEND_ROW
        yield f'<path class="series c{number % len(COLOURS)}" d="M{left:g} {y - 4:g}h17"/>'
        yield f'<text class="cell" x="{left + _SWATCH:g}" y="{y:g}">{escape(lines[number].name)}</text>'


def _drawn(lines: Sequence[Line], *, is_stacked: bool) -> Iterator[_Drawn]:
    sums: dict[int, float] = {}
    for line in lines:
        low = {at: sums.get(at, 0.0) for at in line.points}
        high = {at: low[at] + value for at, value in line.points.items()}
        yield _Drawn(low, high)
        if is_stacked:
            sums.update(high)


def _axes(scale: _Scale, values: Sequence[float], unit: str) -> Iterator[str]:
    for value in values:
        y = scale.y(value)
        yield f'<line class="grid" x1="{_LEFT}" x2="{scale.right:g}" y1="{y:g}" y2="{y:g}"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:g}" text-anchor="end">{in_unit(value, unit)}</text>'
    for number in range(round((END - START) / _TICK) + 1):
        at = START.timestamp() + number * _TICK.total_seconds()
        clock = f"{datetime.fromtimestamp(at, UTC):%H:%M}"
        yield f'<text x="{scale.x(at):g}" y="{scale.bottom + 16:g}" text-anchor="middle">{clock}</text>'


def _path(line: _Drawn, scale: _Scale) -> str:
    """Return a line with its gaps; a part of one point is a line without length, whose round ends make a dot."""
    parts = ([*part, part[-1]] if len(part) == 1 else part for part in _parts(line.high))
    return "".join(f"M{_points(part, line.high, scale)}" for part in parts)


def _area(line: _Drawn, scale: _Scale) -> str:
    return "".join(
        f"M{_points(part, line.high, scale)}L{_points(part[::-1], line.low, scale)}z" for part in _parts(line.high)
    )


def _points(part: Sequence[int], values: Mapping[int, float], scale: _Scale) -> str:
    return "L".join(f"{scale.x(at):g} {scale.y(values[at]):g}" for at in part)


def _parts(points: Mapping[int, float]) -> Iterator[list[int]]:
    """Yield the times of each part of a line between its gaps, as Grafana breaks a line where a step has no value."""
    part: list[int] = []
    for at in points:
        if part and at - part[-1] > _STEP:
            yield part
            part = []
        part.append(at)
    if part:
        yield part


def _entries(lines: Sequence[Line], width: float) -> Iterator[tuple[float, int]]:
    """Yield the left edge and the row of each entry of the legend; one that does not fit begins a row."""
    left, row = float(_EDGE), 0
    for line in lines:
        needed = _SWATCH + len(line.name) * _LETTER + _EDGE
        if left > _EDGE and left + needed > width:
            left, row = float(_EDGE), row + 1
        yield left, row
        left += needed
