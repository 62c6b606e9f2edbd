"""Timeline of the recommendation window: its values, and their rendering as text for a terminal."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm import Recommendation
from ocf.autoscaling.algorithm.history import ScaleEvent, window_start
from ocf.autoscaling.algorithm.normalize import downscale_window
from ocf.autoscaling.explain.explanation import Explanation
from ocf.autoscaling.explain.formatting import clock, duration
from ocf.autoscaling.explain.last_sync import MOST

__all__ = ["Timeline", "bounded_timelines", "render_text", "timeline"]

_ROWS: Final = 10
# A narrower terminal breaks the lines rather than the chart.
_NARROWEST: Final = 20
_LEAST: Final = timedelta(minutes=1)


class Timeline(NamedTuple):
    """Content of a picture of the recommendation window.

    Args:
        start: The start of the timeline.
        now: The end of the timeline.
        scale_down_window: Length of the scale-down stabilization window.
        scale_up_window: Length of the scale-up stabilization window.
        recommendations: Recommendations since the start, oldest first.
        added: Replicas added since the start.
        removed: Replicas removed since the start.
        holder: The recommendation that holds the number of replicas, if any.
        current: The replicas now.
        wanted: The replicas that the metrics want.
        desired: The replicas next.
        assumed: The instants of recommendations that are assumed, not known.
    """

    start: datetime
    now: datetime
    scale_down_window: timedelta
    scale_up_window: timedelta
    recommendations: tuple[Recommendation, ...]
    added: tuple[ScaleEvent, ...]
    removed: tuple[ScaleEvent, ...]
    holder: Recommendation | None
    current: int
    wanted: int
    desired: int
    assumed: frozenset[datetime]


class _Symbols(NamedTuple):
    point: str
    holder: str
    wanted: str
    desired: str
    level: str
    axis: str
    corner: str
    tick: str
    added: str
    removed: str


_ASCII: Final = _Symbols("o", "@", "+", "=", "-", "|", "+", "-", "^", "v")
_UNICODE: Final = _Symbols("•", "●", "◆", "▶", "─", "│", "└", "─", "▲", "▼")


def timeline(explanation: Explanation) -> Timeline | None:
    """Return the timeline of an explanation.

    Returns:
        The timeline; None if the metrics were not evaluated, so that no window applied.
    """
    trace, autoscaler = explanation.decision.trace, explanation.decision.snapshot.autoscaler
    if trace.stabilization is None or trace.current is None:
        return None
    behavior, history = autoscaler.behavior, explanation.history.with_first_recommendation(trace.current, trace.now)
    scale_down = downscale_window(autoscaler, explanation.settings)
    scale_up = timedelta() if behavior is None else behavior.up.window or timedelta()
    longest = timedelta() if behavior is None else max(behavior.up.longest_period, behavior.down.longest_period)
    # The API server accepts windows up to an hour and periods up to half an hour; an unvalidated spec may have longer
    # ones.
    start = window_start(trace.now, max(_LEAST, scale_down, scale_up, longest))
    assumed = frozenset(each.at for each in history.recommendations or () if explanation.is_assumed(each.at))
    # Assumed recommendations are shown only where they count.
    counts = window_start(trace.now, max(scale_down, scale_up))
    listed = [each for each in history.recommendations or () if each.at >= (counts if each.at in assumed else start)]
    # One that is only known to be larger than the others is drawn just above them.
    known = [each.replicas for each in listed if each.replicas < MOST]
    above = 1 + max(*known, trace.current, trace.stabilization.wanted, trace.desired)
    shown = [each._replace(replicas=min(each.replicas, above)) for each in listed]
    hold = None if explanation.hold is None else explanation.hold.recommendation
    return Timeline(
        start=start,
        now=trace.now,
        scale_down_window=scale_down,
        scale_up_window=scale_up,
        recommendations=tuple(sorted(shown, key=lambda each: each.at)),
        added=tuple(each for each in history.scale_ups if each.at >= start),
        removed=tuple(each for each in history.scale_downs if each.at >= start),
        holder=None if hold is None else hold._replace(replicas=min(hold.replicas, above)),
        current=trace.current,
        wanted=trace.stabilization.wanted,
        desired=trace.desired,
        assumed=assumed,
    )


def bounded_timelines(explanation: Explanation) -> Iterator[tuple[str, Timeline]]:
    """Yield the timelines of an explanation with their titles: two for the ends of a range, otherwise one.

    Yields:
        Titles and timelines; none if the metrics were not evaluated.
    """
    bounds = [("The recommendation window", explanation)]
    if not explanation.exact and explanation.most is not None:
        title = "The recommendation window, if the history permits the {}"
        bounds = [(title.format("fewest"), explanation), (title.format("most"), explanation.most)]
    for title, each in bounds:
        window = timeline(each)
        if window is not None:
            yield title, window


def render_text(window: Timeline, *, width: int = 80, unicode: bool = True) -> Iterator[str]:
    """Render a timeline as text.

    Args:
        window: The timeline.
        width: Number of columns.
        unicode: Whether the terminal can show more than ASCII.

    Yields:
        The lines of the picture and its legend.
    """
    symbols = _UNICODE if unicode else _ASCII
    levels = _levels(window)
    label = max(len(str(level)) for level in levels)
    columns = max(_NARROWEST, width - label - len(" now ") - 6)
    for low, high in zip((*levels[1:], -1), levels, strict=True):
        yield _row(window, symbols, columns, (low, high), str(high).rjust(label)).rstrip()
    yield f"{' ' * label} {symbols.corner}{symbols.tick * columns}"
    changes = _changes(window, symbols, columns)
    if changes.strip():
        yield f"{' ' * (label + 2)}{changes}".rstrip()
    first, last = clock(window.start, window.now), clock(window.now, window.now)
    yield f"{' ' * (label + 2)}{first}{last.rjust(columns - len(first))}"
    yield from _legend(window, symbols)


def _levels(window: Timeline) -> list[int]:
    """Return the replica counts that have a row, the highest first."""
    counts = {each.replicas for each in window.recommendations}
    counts |= {window.current, window.wanted, window.desired}
    low, high = min(counts), max(counts)
    step = -(-(high - low + 1) // _ROWS)
    return list(range(high, low - 1, -step))


def _row(window: Timeline, symbols: _Symbols, columns: int, levels: tuple[int, int], label: str) -> str:
    low, high = levels
    cells = [symbols.level if low < window.current <= high else " "] * columns
    for each in window.recommendations:
        if low < each.replicas <= high:
            column = _column(each.at, window, columns)
            known = "?" if each.at in window.assumed else symbols.point
            cells[column] = symbols.holder if each == window.holder and known != "?" else known
    wanted = symbols.wanted if low < window.wanted <= high else " "
    desired = symbols.desired if low < window.desired <= high else " "
    return f"{label} {symbols.axis}{''.join(cells)} {wanted}{desired}"


def _column(at: datetime, window: Timeline, columns: int) -> int:
    share = (at - window.start) / (window.now - window.start)
    return min(columns - 1, max(0, int(share * columns)))


def _changes(window: Timeline, symbols: _Symbols, columns: int) -> str:
    cells = [" "] * columns
    for events, symbol in ((window.added, symbols.added), (window.removed, symbols.removed)):
        for each in events:
            cells[_column(each.at, window, columns)] = symbol
    return "".join(cells)


def _legend(window: Timeline, symbols: _Symbols) -> Iterator[str]:
    known = [
        (f"{symbols.point} recommended", any(each.at not in window.assumed for each in window.recommendations)),
        ("? may have been recommended", bool(window.assumed)),
        (f"{symbols.holder} holds", window.holder is not None and window.holder.at not in window.assumed),
        (f"{symbols.level} size now", True),
        (f"{symbols.wanted} wanted", True),
        (f"{symbols.desired} next", True),
        (f"{symbols.added} added", bool(window.added)),
        (f"{symbols.removed} removed", bool(window.removed)),
    ]
    yield ", ".join(text for text, shown in known if shown)
    down, up = (duration(length) or "0s" for length in (window.scale_down_window, window.scale_up_window))
    yield f"stabilization windows: scale down {down}, scale up {up}"
