"""Chart of the recommendation window in a file: SVG, PNG, or HTML with the SVG inside.

It is chart with matplotlib, which writes SVG and PNG by itself; libraries that draw in a browser need one for that. The
chart is static, so a page needs no scripts either.
"""

from __future__ import annotations

import html
import io
from collections.abc import Sequence
from datetime import UTC
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ocf.autoscaling.explain import Explanation, Timeline, timeline
from ocf.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["check", "figure", "save"]

_FORMATS: Final = (".svg", ".png", ".html")
_INCHES: Final = (9.0, 3.6)
_DOTS: Final = 120
_INK, _MUTED, _UP, _DOWN, _WANTED = "#24292f", "#8c959f", "#0969da", "#bc4c00", "#8250df"
# Text is not converted to paths, and equal charts give equal files.
_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "ocf",
    "font.family": "sans-serif",
    "font.size": 9,
}
_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title></head>
<body style="font-family: sans-serif; max-width: 60em; margin: 2em auto">
<h1 style="font-size: 1.2em">{title}</h1>
{picture}
</body>
</html>
"""


def check(path: Path) -> None:
    """Reject a file that cannot be chart.

    Args:
        path: The file.

    Raises:
        ConfigError: If its suffix is unknown, its folder does not exist, or matplotlib is not installed.
    """
    if path.suffix not in _FORMATS:
        raise ConfigError(f"--picture must end in {', '.join(_FORMATS)}, got {path.name!r}")
    if not path.parent.is_dir():
        raise ConfigError(f"--picture: the folder {path.parent} does not exist")
    if find_spec("matplotlib") is None:
        raise ConfigError("--picture needs matplotlib, which is not installed: pip install 'ocf[plots]'")


def save(explanation: Explanation, path: Path) -> None:
    """Draw the recommendation window into a file.

    Args:
        explanation: The explanation to draw.
        path: The file; its suffix selects the format.

    Raises:
        ConfigError: If there is no window to draw, or the file cannot be written.
    """
    from matplotlib import rc_context

    with rc_context(_STYLE):
        chart = figure(explanation)
        content = _page(explanation, chart) if path.suffix == ".html" else _render(chart, path.suffix[1:])
    try:
        path.write_bytes(content)
    except OSError as error:
        raise ConfigError(f"--picture: {path} cannot be written: {error.strerror}") from error


def _render(chart: Figure, form: str) -> bytes:
    buffer = io.BytesIO()
    chart.savefig(buffer, format=form, dpi=_DOTS, metadata={"Date": None} if form == "svg" else {})
    return buffer.getvalue()


def _page(explanation: Explanation, chart: Figure) -> bytes:
    svg = _render(chart, "svg").decode()
    title = html.escape(f"Recommendations for {_name(explanation)}")
    return _PAGE.format(title=title, picture=svg[svg.index("<svg") :]).encode()


def figure(explanation: Explanation) -> Figure:
    """Draw the recommendation window, or both ends of its range if the history is not known.

    Args:
        explanation: The explanation to draw.

    Raises:
        ConfigError: If the metrics were not evaluated, so that no window applied.
    """
    from matplotlib.figure import Figure

    bounds = _bounds(explanation)
    if not bounds:
        raise ConfigError("--picture: the metrics were not evaluated, so there is no recommendation window to draw")
    chart = Figure(figsize=(_INCHES[0], _INCHES[1] * len(bounds)), layout="constrained")
    for axes, (title, window) in zip(chart.subplots(len(bounds), squeeze=False).flat, bounds, strict=True):
        _draw(axes, window, title)
    return chart


def _bounds(explanation: Explanation) -> Sequence[tuple[str, Timeline]]:
    least, name = timeline(explanation), _name(explanation)
    if least is None:
        return ()
    most = None if explanation.most is None or explanation.exact else timeline(explanation.most)
    if most is None:
        return ((f"{name}: {least.current} replicas, {least.desired} next", least),)
    return (
        (f"{name}: {least.desired} next, if the history permits the fewest", least),
        (f"{name}: {most.desired} next, if the history permits the most", most),
    )


def _name(explanation: Explanation) -> str:
    autoscaler = explanation.decision.snapshot.autoscaler
    return f"{autoscaler.namespace}/{autoscaler.name}"


def _draw(axes: Axes, window: Timeline, title: str) -> None:
    from matplotlib.dates import AutoDateLocator, DateFormatter
    from matplotlib.ticker import MaxNLocator

    _windows(axes, window)
    axes.axhline(window.current, color=_INK, linewidth=1.2, label=f"size now: {window.current}")
    _recommendations(axes, window)
    _now(axes, window)
    _changes(axes, window)
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_ylabel("replicas")
    axes.set_xlabel(f"{window.now:%Y-%m-%d}, UTC")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.xaxis.set_major_locator(AutoDateLocator(tz=UTC))  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M:%S", tz=UTC))  # type: ignore[no-untyped-call]
    length = window.now - window.start
    axes.set_xlim(_x(window.start - length * 0.02), _x(window.now + length * 0.04))
    axes.margins(y=0.18)
    axes.grid(axis="y", color=_MUTED, alpha=0.25, linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def _x(instant: Any) -> float:
    from matplotlib.dates import date2num

    return float(date2num(instant))  # type: ignore[no-untyped-call]


def _windows(axes: Axes, window: Timeline) -> None:
    for length, colour, word in (
        (window.scale_down_window, _DOWN, "scale-down"),
        (window.scale_up_window, _UP, "scale-up"),
    ):
        if length:
            label = f"{word} window: {length.total_seconds():g}s"
            axes.axvspan(_x(window.now - length), _x(window.now), color=colour, alpha=0.08, label=label)


def _recommendations(axes: Axes, window: Timeline) -> None:
    found = window.recommendations
    for assumed, label, fill in ((False, "recommended", _WANTED), (True, "may have been recommended", "none")):
        points = [each for each in found if (each.at in window.assumed) is assumed]
        if points:
            axes.scatter(
                [_x(each.at) for each in points],
                [each.replicas for each in points],
                s=28,
                facecolors=fill,
                edgecolors=_WANTED,
                zorder=3,
                label=label,
            )
    if window.holder is not None:
        at, count = _x(window.holder.at), window.holder.replicas
        axes.scatter([at], [count], s=150, facecolors="none", edgecolors=_DOWN, linewidths=1.6, zorder=4, label="holds")


def _now(axes: Axes, window: Timeline) -> None:
    at = _x(window.now)
    axes.scatter([at], [window.wanted], marker="D", s=44, color=_WANTED, zorder=4, label=f"wanted: {window.wanted}")
    axes.scatter([at], [window.desired], marker=">", s=60, color=_INK, zorder=5, label=f"next: {window.desired}")


def _changes(axes: Axes, window: Timeline) -> None:
    for events, sign, colour, word in ((window.added, "+", _UP, "added"), (window.removed, "-", _DOWN, "removed")):
        for number, event in enumerate(events):
            label = word if number == 0 else None
            axes.axvline(_x(event.at), color=colour, linewidth=1, linestyle=":", label=label)
            axes.annotate(
                f"{sign}{event.change}",
                (_x(event.at), 0.02),
                xycoords=("data", "axes fraction"),
                xytext=(3, 0),
                textcoords="offset points",
                color=colour,
            )
