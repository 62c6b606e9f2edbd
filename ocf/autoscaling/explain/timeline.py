"""The recommendation window as a picture: first as values, and drawn with letters for a terminal."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from ocf.autoscaling.algorithm import Recommendation, ScaleEvent, downscale_window
from ocf.autoscaling.algorithm.history import window_start
from ocf.autoscaling.explain.explanation import Explanation
from ocf.autoscaling.explain.formatting import clock, duration

__all__ = ["Timeline", "render_text", "timeline"]

_ROWS: Final = 10
_NARROWEST: Final = 20
_LEAST: Final = timedelta(minutes=1)


class Timeline(NamedTuple):
    """What is to be seen in a picture of the recommendation window.

    Args:
        start: Where it begins.
        now: Where it ends.
        shrinking: How far back shrinking looks.
        growing: How far back growing looks.
        recommendations: What was recommended since it begins, oldest first.
        added: What was added since then.
        removed: What was removed since then.
        holder: The recommendation that holds the size; None if none does.
        current: The replicas now.
        wanted: What the metrics want.
        desired: The replicas next.
        assumed: The instants of recommendations that are only possible, and not known.
    """

    start: datetime
    now: datetime
    shrinking: timedelta
    growing: timedelta
    recommendations: tuple[Recommendation, ...]
    added: tuple[ScaleEvent, ...]
    removed: tuple[ScaleEvent, ...]
    holder: Recommendation | None
    current: int
    wanted: int
    desired: int
    assumed: frozenset[datetime]


class _Signs(NamedTuple):
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


_PLAIN: Final = _Signs("o", "@", "+", "=", "-", "|", "+", "-", "^", "v")
_FINE: Final = _Signs("•", "●", "◆", "▶", "─", "│", "└", "─", "▲", "▼")


def timeline(explanation: Explanation) -> Timeline | None:
    """Return what is to be seen of an explanation.

    Args:
        explanation: The explanation.

    Returns:
        The picture's content; None if the metrics had no say, so that no window was looked at.
    """
    trace, autoscaler = explanation.decision.trace, explanation.decision.snapshot.autoscaler
    if trace.stabilization is None or trace.current is None:
        return None
    behavior, history = autoscaler.behavior, explanation.history.with_first_recommendation(trace.current, trace.now)
    shrinking = downscale_window(autoscaler, explanation.settings)
    growing = timedelta() if behavior is None else behavior.up.window or timedelta()
    longest = timedelta() if behavior is None else max(behavior.up.longest_period, behavior.down.longest_period)
    # No window is longer than an hour, and no period than half of one, unless somebody made them up.
    start = window_start(trace.now, max(_LEAST, shrinking, growing, longest))
    assumed = frozenset(each.at for each in history.recommendations or () if explanation.assumes(each.at))
    # What may have been recommended is of interest only where it counts.
    counts = window_start(trace.now, max(shrinking, growing))
    shown = [each for each in history.recommendations or () if each.at >= (counts if each.at in assumed else start)]
    return Timeline(
        start=start,
        now=trace.now,
        shrinking=shrinking,
        growing=growing,
        recommendations=tuple(sorted(shown, key=lambda each: each.at)),
        added=tuple(each for each in history.scale_ups if each.at >= start),
        removed=tuple(each for each in history.scale_downs if each.at >= start),
        holder=None if explanation.hold is None else explanation.hold.recommendation,
        current=trace.current,
        wanted=trace.stabilization.wanted,
        desired=trace.desired,
        assumed=assumed,
    )


def render_text(picture: Timeline, *, width: int = 80, fine: bool = True) -> Iterator[str]:
    """Draw the window with letters.

    Args:
        picture: What is to be seen.
        width: How many columns there are.
        fine: Whether the terminal has more than ASCII.

    Yields:
        The lines of the picture, and what its signs mean.
    """
    signs = _FINE if fine else _PLAIN
    levels = _levels(picture)
    label = max(len(str(level)) for level in levels)
    columns = max(_NARROWEST, width - label - len(" now ") - 6)
    for low, high in zip((*levels[1:], -1), levels, strict=True):
        yield _row(picture, signs, columns, (low, high), str(high).rjust(label)).rstrip()
    yield f"{' ' * label} {signs.corner}{signs.tick * columns}"
    changes = _changes(picture, signs, columns)
    if changes.strip():
        yield f"{' ' * (label + 2)}{changes}".rstrip()
    first, last = clock(picture.start, picture.now), clock(picture.now, picture.now)
    yield f"{' ' * (label + 2)}{first}{last.rjust(columns - len(first))}"
    yield from _legend(picture, signs)


def _levels(picture: Timeline) -> list[int]:
    """Return the counts that have a row, the highest first."""
    counts = {each.replicas for each in picture.recommendations}
    counts |= {picture.current, picture.wanted, picture.desired}
    low, high = min(counts), max(counts)
    step = -(-(high - low + 1) // _ROWS)
    return list(range(high, low - 1, -step))


def _row(picture: Timeline, signs: _Signs, columns: int, span: tuple[int, int], label: str) -> str:
    low, high = span
    cells = [signs.level if low < picture.current <= high else " "] * columns
    for each in picture.recommendations:
        if low < each.replicas <= high:
            place = _column(each.at, picture, columns)
            known = "?" if each.at in picture.assumed else signs.point
            cells[place] = signs.holder if each == picture.holder and known != "?" else known
    wanted = signs.wanted if low < picture.wanted <= high else " "
    desired = signs.desired if low < picture.desired <= high else " "
    return f"{label} {signs.axis}{''.join(cells)} {wanted}{desired}"


def _column(at: datetime, picture: Timeline, columns: int) -> int:
    share = (at - picture.start) / (picture.now - picture.start)
    return min(columns - 1, max(0, int(share * columns)))


def _changes(picture: Timeline, signs: _Signs, columns: int) -> str:
    cells = [" "] * columns
    for events, sign in ((picture.added, signs.added), (picture.removed, signs.removed)):
        for each in events:
            cells[_column(each.at, picture, columns)] = sign
    return "".join(cells)


def _legend(picture: Timeline, signs: _Signs) -> Iterator[str]:
    known = [
        (f"{signs.point} recommended", any(each.at not in picture.assumed for each in picture.recommendations)),
        ("? may have been recommended", bool(picture.assumed)),
        (f"{signs.holder} holds", picture.holder is not None and picture.holder.at not in picture.assumed),
        (f"{signs.level} size now", True),
        (f"{signs.wanted} wanted", True),
        (f"{signs.desired} next", True),
        (f"{signs.added} added", bool(picture.added)),
        (f"{signs.removed} removed", bool(picture.removed)),
    ]
    yield ", ".join(text for text, shown in known if shown)
    yield f"window of shrinking {duration(picture.shrinking) or '0s'}, of growing {duration(picture.growing) or '0s'}"
