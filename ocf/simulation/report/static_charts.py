"""Charts that are drawn without a script, for readers without one; the script of the report replaces them.

They have any width: what depends on it is given in percent, or is stretched without its lines getting thicker.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from ocf.autoscaling.explain.svg import element, line, path, rect, round_step, text
from ocf.simulation.measures.formatting import number_text
from ocf.simulation.report.bands import Band, shortened
from ocf.simulation.report.charts import Chart, Series
from ocf.simulation.report.reported import Reported
from ocf.simulation.report.series import Sampled

__all__ = ["HEIGHT", "static_chart"]

HEIGHT: Final = 190
"""Height of a chart in pixels."""
_PARTS: Final = 400
"""Parts of the time; what happens in one is one vertical line."""
_TOP: Final = 14
_BOTTOM: Final = 20
_LINES: Final = 4
_DAY: Final = 86_400.0
_LABEL: Final = 14


def static_chart(chart: Chart, runs: Sequence[Reported], samples: Sequence[Sampled]) -> str:
    """Return the content of the SVG of a chart."""
    end = max(each.result.duration for each in runs)
    parts = (*_time_axis(runs[0], end), *(_bands(chart.bands, end) if chart.bands else _lines(chart, samples, end)))
    return "".join(parts)


def _time_axis(run: Reported, end: float) -> Iterator[str]:
    form, times = ("%m-%d %H:%M", 3) if end > _DAY else ("%H:%M", 4)
    if run.result.is_dated:
        form, times = "%Y-%m-%d %H:%M", 2
    for tick in range(times + 1):
        x, time = 100 * tick / times, run.result.instant(end * tick / times)
        yield line((f"{x:g}%", f"{x:g}%"), (_TOP, HEIGHT - _BOTTOM), "grid")
        anchor = "start" if tick == 0 else "end" if tick == times else "middle"
        yield text(f"{x:g}%", HEIGHT - 6, f"{time:{form}}", anchor=anchor)


def _lines(chart: Chart, samples: Sequence[Sampled], end: float) -> Iterator[str]:
    present = [each for each in chart.series if each.key in samples[each.run].low]
    most = max(
        (value for each in present for value in _highest(samples[each.run], each) if value is not None), default=0
    )
    for mark in chart.marks:
        if mark.value <= 2 * most or not most:
            most = max(most, mark.value)
    step = round_step(most or 1, _LINES, whole=chart.whole)
    # A value on a line needs none above it, whatever the division rounds.
    top = max(step, math.ceil(most / step - 1e-9) * step)
    values = [number * step for number in range(round(top / step) + 1)]
    yield from (_across(value, top, "grid") for value in values)
    yield from (_across(mark.value, top, "mark") for mark in chart.marks if mark.value <= top)
    stretched = (path(_commands(samples[each.run], each, end, top), f"series {each.style}") for each in present)
    box = f"0 0 {_PARTS} {HEIGHT}"
    yield element("svg", "".join(stretched), width="100%", height=HEIGHT, viewBox=box, preserveAspectRatio="none")
    yield from (text(0, _y(value, top) - 3, number_text(value)) for value in values)


def _across(value: float, top: float, style: str) -> str:
    return line((0, "100%"), (_y(value, top), _y(value, top)), style)


def _highest(sample: Sampled, series: Series) -> Sequence[float | None]:
    return sample.high.get(series.key, sample.low[series.key])


def _y(value: float, top: float) -> float:
    return round(HEIGHT - _BOTTOM - value / top * (HEIGHT - _TOP - _BOTTOM), 1)


def _commands(sample: Sampled, series: Series, end: float, top: float) -> str:
    """Return a step line: in each part of the time a vertical line from the lowest to the highest value."""
    low, high = sample.low[series.key], _highest(sample, series)
    begins = [bisect_left(sample.times, end * part / _PARTS) for part in range(_PARTS + 1)]
    commands: list[str] = []
    latest: float | None = None
    for part, (begin, until) in enumerate(pairwise(begins)):
        known = [_y(value, top) for value in (*low[begin:until], *high[begin:until]) if value is not None]
        if latest is not None and None in low[begin:until]:
            commands.append(f"H{part}")
            latest = None
        if not known or {*known} == {latest}:
            continue
        commands.append(f"M{part} {known[0]:g}" if latest is None else f"H{part}")
        if min(known) < max(known):
            commands.append(f"V{min(known):g}V{max(known):g}")
        last = low[until - 1]
        latest = None if last is None else _y(last, top)
        if latest is not None:
            commands.append(f"V{latest:g}")
    return "".join(commands) if latest is None else f"{''.join(commands)}H{_PARTS}"


def _bands(bands: Sequence[Band], end: float) -> Iterator[str]:
    height = (HEIGHT - _TOP - _BOTTOM) / len(bands)
    for number, band in enumerate(bands):
        y = _TOP + number * height
        yield text(0, y + _LABEL - 3, band.name)
        changes = shortened(band.changes, end, _PARTS)
        for (begin, state, _), (until, *_) in pairwise((*changes, (end, "", ""))):
            x, width = f"{100 * begin / end:.4g}%", f"{100 * (until - begin) / end:.4g}%"
            yield rect(x, y + _LABEL, (width, max(4.0, height - _LABEL - 4)), f"band {state}")
