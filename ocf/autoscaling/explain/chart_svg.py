"""Chart of the recommendation window as SVG: no library, no script, no font of its own.

Its coordinates are chosen so that its texts can be read on a screen of 390 pixels. Marks differ in shape as well as in
colour, and the colours follow the scheme of the reader, light or dark.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from ocf.autoscaling.explain.formatting import clock, duration
from ocf.autoscaling.explain.html_page import COLOURS
from ocf.autoscaling.explain.svg import circle, element, line, path, picture, rect, round_step, text
from ocf.autoscaling.explain.timeline import Timeline

__all__ = ["MARKS", "Legend", "describe", "legend", "standalone_svg", "to_svg"]

_WIDTH, _HEIGHT = 360, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 18, 12, 40
_MOST_ROWS: Final = 6
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
    """Draw a timeline as an `svg` element, with a description that is read aloud in place of the picture.

    The identifier is unique within a page. A page has the style sheet once for all of its charts; a picture of its own
    embeds it.
    """
    scale = _scale(window)
    parts = (
        element("style", style) if style else "",
        *_windows(window, scale),
        *_axes(window, scale),
        *_changes(window, scale),
        *_recommendations(window, scale),
        *_results(window, scale),
    )
    return picture(
        filter(None, parts),
        title=title,
        description=describe(window),
        identifier=identifier,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        class_="chart",
    )


def standalone_svg(window: Timeline, title: str) -> str:
    """Draw a timeline as a file of its own."""
    paper = ".chart{background:var(--paper)}\n"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{to_svg(window, title, style=COLOURS + MARKS + paper)}\n'


def describe(window: Timeline) -> str:
    """Return what the chart shows, in sentences."""
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
    """Yield the legend: the marks that the chart has."""
    known = any(each.at not in window.assumed for each in window.recommendations)
    if known:
        yield Legend(circle(8, 8, 3.5, "point"), "recommended")
    if window.assumed and len(window.recommendations):
        yield Legend(circle(8, 8, 3.5, "assumed"), "may have been recommended")
    if window.holder is not None:
        yield Legend(circle(8, 8, 6, "holder"), "holds the replicas")
    yield Legend(line((1, 15), (8, 8), "now"), f"replicas now: {window.current}")
    yield Legend(_diamond(8, 8), f"wanted: {window.wanted}")
    yield Legend(_triangle(8, 8), f"next: {window.desired}")
    for events, word in ((window.added, "added"), (window.removed, "removed")):
        if events:
            side = "up" if word == "added" else "down"
            yield Legend(line((8, 8), (1, 15), side), word)
    for length, word in ((window.scale_down_window, "down"), (window.scale_up_window, "up")):
        if length:
            yield Legend(rect(1, 2, (14, 12), f"window w-{word}"), f"scale-{word} window: {duration(length)}")


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _scale(window: Timeline) -> _Scale:
    counts = {each.replicas for each in window.recommendations} | {window.current, window.wanted, window.desired}
    low, high = min(counts), max(counts)
    return _Scale(window.start, window.now, max(0, low - 1), high + 1)


def _windows(window: Timeline, scale: _Scale) -> Iterator[str]:
    right = scale.x(window.now)
    for length, word in ((window.scale_down_window, "down"), (window.scale_up_window, "up")):
        if length:
            left = scale.x(_earlier(window.now, length))
            height = _HEIGHT - _TOP - _BOTTOM
            width = round(right - left, 1)
            yield rect(left, _TOP, (width, height), f"window w-{word}")


def _earlier(now: datetime, length: timedelta) -> datetime:
    try:
        return now - length
    except OverflowError:
        # A window that no API server has checked may be longer than there are dates.
        return datetime.min.replace(tzinfo=now.tzinfo)


def _axes(window: Timeline, scale: _Scale) -> Iterator[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    step = int(round_step(scale.high - scale.low, _MOST_ROWS, whole=True))
    for replicas in range(-(-scale.low // step) * step, scale.high + 1, step):
        y = scale.y(replicas)
        yield line((_LEFT, right), (y, y), "grid")
        yield text(_LEFT - 5, y + 3.5, _short(replicas), anchor="end")
    for number, anchor in zip(range(_TICKS), ("start", "middle", "end"), strict=True):
        at = window.start + (window.now - window.start) * number / (_TICKS - 1)
        x = scale.x(at)
        yield line((x, x), (bottom, bottom + 4), "now")
        yield text(x, bottom + 15, clock(at, window.now), anchor=anchor)
    yield text(_LEFT, _HEIGHT - 8, "replicas over time, UTC")


def _short(replicas: int) -> str:
    """Return a number in the space beside the axis."""
    # Four digits fit beside the axis, so thousands are shortened from 10 000 on.
    for factor, unit in ((10**9, "G"), (10**6, "M"), (10**4, "k")):
        if replicas >= factor:
            return f"{replicas / (1000 if unit == 'k' else factor):.3g}{unit}"
    return str(replicas)


def _changes(window: Timeline, scale: _Scale) -> Iterator[str]:
    for events, sign, side in ((window.added, "+", "up"), (window.removed, "−", "down")):  # noqa: RUF001 (a minus)
        for event in events:
            x = scale.x(event.at)
            yield line((x, x), (_TOP, _HEIGHT - _BOTTOM), side)
            yield text(x + 3, _HEIGHT - _BOTTOM - 4, f"{sign}{_short(event.change)}", style=f"t-{side}")


def _recommendations(window: Timeline, scale: _Scale) -> Iterator[str]:
    y = scale.y(window.current)
    yield line((_LEFT, _WIDTH - _RIGHT), (y, y), "now")
    for each in window.recommendations:
        kind = "assumed" if each.at in window.assumed else "point"
        yield circle(scale.x(each.at), scale.y(each.replicas), 3, kind)
    if window.holder is not None:
        yield circle(scale.x(window.holder.at), scale.y(window.holder.replicas), 6, "holder")


def _results(window: Timeline, scale: _Scale) -> Iterator[str]:
    x = scale.x(window.now)
    yield _diamond(x, scale.y(window.wanted))
    yield _triangle(x + 8, scale.y(window.desired))


def _diamond(x: float, y: float) -> str:
    return path(f"M{x:g} {y - 5:g}l5 5l-5 5l-5 -5z", "point")


def _triangle(x: float, y: float) -> str:
    return path(f"M{x - 4:g} {y - 5:g}l9 5l-9 5z", "next")
