"""Chart of the recommendation window as SVG: no library, no script, no font of its own.

Its coordinates are chosen so that its texts can be read on a screen of 390 pixels. Marks differ in shape as well as in
colour, and the colours follow the scheme of the reader, light or dark.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from html import escape
from typing import Final, NamedTuple

from ocf.autoscaling.explain.formatting import clock, duration
from ocf.autoscaling.explain.html_page import COLOURS
from ocf.autoscaling.explain.timeline import Timeline

__all__ = ["MARKS", "Legend", "describe", "legend", "standalone_svg", "to_svg"]

_WIDTH, _HEIGHT = 360, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 18, 12, 40
_MOST_ROWS: Final = 6
_STEPS: Final = (1, 2, 5)
_TICKS: Final = 3

MARKS: Final = """\
.chart{font:11px system-ui,sans-serif}.chart text{fill:var(--muted)}.chart .grid{stroke:var(--line);stroke-width:.6}
.chart .now{stroke:var(--ink);stroke-width:1.2}.chart .point{fill:var(--want);stroke:var(--want)}
.chart .assumed{fill:none;stroke:var(--want);stroke-dasharray:2 1.5}
.chart .holder{fill:none;stroke:var(--down);stroke-width:1.8}
.chart .next{fill:var(--ink)}.chart .window{opacity:.12}.chart .w-down{fill:var(--down)}.chart .w-up{fill:var(--up)}
.chart .up{stroke:var(--up);stroke-dasharray:2 2}.chart .down{stroke:var(--down);stroke-dasharray:2 2}
.chart text.t-up{fill:var(--up)}.chart text.t-down{fill:var(--down)}
"""
"""The style of the marks of the chart."""


class Legend(NamedTuple):
    """An entry of the legend.

    Args:
        mark: SVG elements of the mark, in a square of 16 units.
        text: Its meaning.
    """

    mark: str
    text: str


class _Scale(NamedTuple):
    """Coordinates of instants and numbers of replicas."""

    start: datetime
    now: datetime
    low: int
    high: int

    def x(self, at: datetime) -> float:
        share = (max(at, self.start) - self.start) / (self.now - self.start)
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(self, replicas: float) -> float:
        share = (replicas - self.low) / (self.high - self.low)
        return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM), 1)


def to_svg(window: Timeline, title: str, *, identifier: str = "chart", style: str = "") -> str:
    """Draw a timeline.

    Args:
        window: The timeline.
        title: The title, which is read aloud in place of the picture, with a description.
        identifier: Prefix of the identifiers in the picture, unique within a page.
        style: A style sheet to embed; a page has it once for all of its charts.

    Returns:
        An `svg` element.
    """
    scale = _scale(window)
    title_id, text_id = f"{identifier}-title", f"{identifier}-text"
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" class="chart"'
        f' aria-labelledby="{title_id} {text_id}">'
    )
    parts = [
        opening,
        f'<title id="{title_id}">{escape(title)}</title><desc id="{text_id}">{escape(describe(window))}</desc>',
        f"<style>{style}</style>" if style else "",
        *_windows(window, scale),
        *_axes(window, scale),
        *_changes(window, scale),
        *_recommendations(window, scale),
        *_results(window, scale),
        "</svg>",
    ]
    return "\n".join(each for each in parts if each)


def standalone_svg(window: Timeline, title: str) -> str:
    """Draw a timeline as a file of its own.

    Args:
        window: The timeline.
        title: The title.
    """
    paper = ".chart{background:var(--paper)}\n"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{to_svg(window, title, style=COLOURS + MARKS + paper)}\n'


def describe(window: Timeline) -> str:
    """Return what the chart shows, in sentences.

    Args:
        window: The timeline.
    """
    first, last = clock(window.start, window.now), clock(window.now, window.now)
    sentences = [
        f"{window.current} replicas now, {window.wanted} wanted by the metrics, {window.desired} next.",
        f"From {first} to {last} UTC, {_count(len(window.recommendations), 'recommendation')}.",
    ]
    if window.holder is not None:
        word = "may have been" if window.holder.at in window.assumed else "was"
        at = clock(window.holder.at, window.now)
        sentences.append(f"{window.holder.replicas} {word} recommended at {at} and holds the replicas.")
    return " ".join(sentences)


def legend(window: Timeline) -> Iterator[Legend]:
    """Yield the legend: the marks that the chart has.

    Args:
        window: The timeline.
    """
    known = any(each.at not in window.assumed for each in window.recommendations)
    if known:
        yield Legend('<circle cx="8" cy="8" r="3.5" class="point"/>', "recommended")
    if window.assumed and len(window.recommendations):
        yield Legend('<circle cx="8" cy="8" r="3.5" class="assumed"/>', "may have been recommended")
    if window.holder is not None:
        yield Legend('<circle cx="8" cy="8" r="6" class="holder"/>', "holds the replicas")
    yield Legend('<line x1="1" y1="8" x2="15" y2="8" class="now"/>', f"replicas now: {window.current}")
    yield Legend(_diamond(8, 8), f"wanted: {window.wanted}")
    yield Legend(_triangle(8, 8), f"next: {window.desired}")
    for events, word in ((window.added, "added"), (window.removed, "removed")):
        if events:
            side = "up" if word == "added" else "down"
            yield Legend(f'<line x1="8" y1="1" x2="8" y2="15" class="{side}"/>', word)
    for length, word in ((window.scale_down_window, "down"), (window.scale_up_window, "up")):
        if length:
            mark = f'<rect x="1" y="2" width="14" height="12" class="window w-{word}"/>'
            yield Legend(mark, f"scale-{word} window: {duration(length)}")


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _scale(window: Timeline) -> _Scale:
    counts = {each.replicas for each in window.recommendations} | {window.current, window.wanted, window.desired}
    low, high = min(counts), max(counts)
    return _Scale(window.start, window.now, max(0, low - 1), high + 1)


def _step(length: int) -> int:
    """Return the distance of the lines, so that there are few of them."""
    power = 1
    while True:
        for step in _STEPS:
            if length <= step * power * _MOST_ROWS:
                return step * power
        power *= 10


def _windows(window: Timeline, scale: _Scale) -> Iterator[str]:
    right = scale.x(window.now)
    for length, word in ((window.scale_down_window, "down"), (window.scale_up_window, "up")):
        if length:
            left = scale.x(_earlier(window.now, length))
            height = _HEIGHT - _TOP - _BOTTOM
            width = round(right - left, 1)
            yield f'<rect x="{left}" y="{_TOP}" width="{width}" height="{height}" class="window w-{word}"/>'


def _earlier(now: datetime, length: timedelta) -> datetime:
    try:
        return now - length
    except OverflowError:
        return datetime.min.replace(tzinfo=now.tzinfo)


def _axes(window: Timeline, scale: _Scale) -> Iterator[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    step = _step(scale.high - scale.low)
    for replicas in range(-(-scale.low // step) * step, scale.high + 1, step):
        y = scale.y(replicas)
        yield f'<line x1="{_LEFT}" y1="{y}" x2="{right}" y2="{y}" class="grid"/>'
        yield f'<text x="{_LEFT - 5}" y="{y + 3.5}" text-anchor="end">{_short(replicas)}</text>'
    for number, anchor in zip(range(_TICKS), ("start", "middle", "end"), strict=True):
        at = window.start + (window.now - window.start) * number / (_TICKS - 1)
        x = scale.x(at)
        yield f'<line x1="{x}" y1="{bottom}" x2="{x}" y2="{bottom + 4}" class="now"/>'
        yield f'<text x="{x}" y="{bottom + 15}" text-anchor="{anchor}">{clock(at, window.now)}</text>'
    yield f'<text x="{_LEFT}" y="{_HEIGHT - 8}">replicas over time, UTC</text>'


def _short(replicas: int) -> str:
    """Return a number in the space beside the axis."""
    for factor, unit in ((10**9, "G"), (10**6, "M"), (10**4, "k")):
        if replicas >= factor:
            return f"{replicas / (1000 if unit == 'k' else factor):.3g}{unit}"
    return str(replicas)


def _changes(window: Timeline, scale: _Scale) -> Iterator[str]:
    for events, sign, side in ((window.added, "+", "up"), (window.removed, "−", "down")):  # noqa: RUF001 (a minus)
        for event in events:
            x = scale.x(event.at)
            yield f'<line x1="{x}" y1="{_TOP}" x2="{x}" y2="{_HEIGHT - _BOTTOM}" class="{side}"/>'
            text = f"{sign}{_short(event.change)}"
            yield f'<text x="{x + 3}" y="{_HEIGHT - _BOTTOM - 4}" class="t-{side}">{text}</text>'


def _recommendations(window: Timeline, scale: _Scale) -> Iterator[str]:
    y = scale.y(window.current)
    yield f'<line x1="{_LEFT}" y1="{y}" x2="{_WIDTH - _RIGHT}" y2="{y}" class="now"/>'
    for each in window.recommendations:
        kind = "assumed" if each.at in window.assumed else "point"
        yield f'<circle cx="{scale.x(each.at)}" cy="{scale.y(each.replicas)}" r="3" class="{kind}"/>'
    if window.holder is not None:
        at, count = scale.x(window.holder.at), scale.y(window.holder.replicas)
        yield f'<circle cx="{at}" cy="{count}" r="6" class="holder"/>'


def _results(window: Timeline, scale: _Scale) -> Iterator[str]:
    x = scale.x(window.now)
    yield _diamond(x, scale.y(window.wanted))
    yield _triangle(x + 8, scale.y(window.desired))


def _diamond(x: float, y: float) -> str:
    return f'<path d="M{x:g} {y - 5:g}l5 5l-5 5l-5 -5z" class="point"/>'


def _triangle(x: float, y: float) -> str:
    return f'<path d="M{x - 4:g} {y - 5:g}l9 5l-9 5z" class="next"/>'
