"""The chart of a front: two objectives of all candidates, drawn as an SVG that needs no script."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor
from typing import Final

from ocf.autoscaling.explain.svg import circle, element, line, picture, round_step, text
from ocf.simulation.measures.catalog import MEASURES
from ocf.simulation.measures.formatting import value_text
from ocf.simulation.tuning.tables import setting_text, short_names
from ocf.simulation.tuning.tuned import Member, Tuned

__all__ = ["Axis", "figures"]

_WIDTH: Final = 340
_HEIGHT: Final = 300
_LEFT: Final = 66
_RIGHT: Final = 14
_TOP: Final = 10
_BOTTOM: Final = 44
_TICKS: Final = 6
_FEW_TICKS: Final = 3
_MARGIN: Final = 0.04
_MOST_OTHERS: Final = 2_000
_WINNER: Final = 7
_FRONT: Final = 4.5
_OTHER: Final = 2.2


@dataclass(frozen=True, slots=True)
class Axis:
    """The scale of an objective.

    Args:
        high: The value at the end, more than `low`.
    """

    name: str
    low: float
    high: float
    begin: float
    end: float

    @classmethod
    def of(cls, name: str, values: Iterable[float], begin: float, end: float) -> "Axis":
        """Return a scale with all values, and some space around them.

        Args:
            values: The values, at least one.
        """
        known = list(values)
        low, high = min(known), max(known)
        margin = (high - low) * _MARGIN or abs(low) * _MARGIN or 1.0
        return cls(name, low - (margin if low else 0.0), high + margin, begin, end)

    def at(self, value: float) -> float:
        """Return the place of a value."""
        share = (value - self.low) / (self.high - self.low)
        return round(self.begin + share * (self.end - self.begin), 1)

    def ticks(self, currency: str) -> Iterator[tuple[float, str]]:
        """Yield places and texts of round values."""
        step = round_step(self.high - self.low, _TICKS)
        for number in range(ceil(self.low / step), floor(self.high / step) + 1):
            yield self.at(number * step), value_text(self.name, number * step, currency=currency)


def figures(tuned: Tuned, *, currency: str = "") -> Iterator[str]:
    """Yield a chart of the first objective and each other one."""
    first, *others = (each.name for each in tuned.objectives)
    for number, name in enumerate(others):
        yield _figure(tuned, number, (first, name), currency)


def _figure(tuned: Tuned, number: int, names: tuple[str, str], currency: str) -> str:
    cloud = tuned.others[:_MOST_OTHERS]
    shown = [*tuned.front, *cloud]
    across, up = names
    x = Axis.of(across, (each.measures[across] for each in shown), _LEFT, _WIDTH - _RIGHT)
    y = Axis.of(up, (each.measures[up] for each in shown), _HEIGHT - _BOTTOM, _TOP)
    title = f"{MEASURES[up].title} and {MEASURES[across].title}"
    description = (
        f"{len(tuned.front)} candidates of the front and {len(cloud)} others, by {MEASURES[across].title} across and"
        f" {MEASURES[up].title} up. The table of the front has the values."
    )
    marks = (
        *_grid(x, y, currency),
        *(_dot(each, x, y) for each in cloud),
        *(_point(tuned, rank, x, y, currency) for rank in reversed(range(len(tuned.front)))),
    )
    chart = picture(
        marks,
        title=title,
        description=description,
        identifier=f"front{number}",
        class_="plot front",
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="group",
    )
    return (
        f"<section>\n<h2>{escape(title.capitalize())}</h2>\n<figure>{chart}\n"
        f'<figcaption><output class="seen" aria-live="polite">{_HINT}</output>{_legend(tuned)}</figcaption></figure>'
        "</section>"
    )


_HINT: Final = "Point at a candidate of the front, or move to it with <kbd>Tab</kbd>."


def _grid(x: Axis, y: Axis, currency: str) -> Iterator[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    ticks = list(x.ticks(currency))
    for number, (at, value) in enumerate(ticks):
        # Every other text is left out on a narrow screen, where texts are larger than the chart is.
        style = "between" if number % 2 and len(ticks) > _FEW_TICKS else ""
        yield line((at, at), (_TOP, bottom), "grid")
        yield text(at, bottom + 14, value, anchor="middle", style=style)
    for at, value in y.ticks(currency):
        yield line((_LEFT, right), (at, at), "grid")
        yield text(_LEFT - 4, at + 4, value, anchor="end")
    yield text((_LEFT + right) / 2, _HEIGHT - 10, MEASURES[x.name].title, anchor="middle")
    upwards = f"translate(11 {(_TOP + bottom) / 2:g}) rotate(-90)"
    yield element("text", escape(MEASURES[y.name].title), transform=upwards, text_anchor="middle")


def _dot(member: Member, x: Axis, y: Axis) -> str:
    style = "now" if member.candidate is None else "other"
    size = _FRONT if member.candidate is None else _OTHER
    return circle(x.at(member.measures[x.name]), y.at(member.measures[y.name]), size, style)


def _point(tuned: Tuned, rank: int, x: Axis, y: Axis, currency: str) -> str:
    member = tuned.front[rank]
    style = "winner" if rank == 0 else "now" if member.candidate is None else "member"
    name = point_text(tuned, rank, currency)
    return element(
        "circle",
        element("title", escape(name)),
        class_=style,
        tabindex=0,
        role="img",
        aria_label=name,
        data_point=rank,
        cx=x.at(member.measures[x.name]),
        cy=y.at(member.measures[y.name]),
        r=_WINNER if rank == 0 else _FRONT,
    )


def point_text(tuned: Tuned, rank: int, currency: str) -> str:
    """Return objectives and settings of a member of the front in one line."""
    member = tuned.front[rank]
    name = "current" if member.candidate is None else f"rank {rank + 1}"
    values = (
        f"{MEASURES[each.name].title} {value_text(each.name, member.measures[each.name], currency=currency)}"
        for each in tuned.objectives
    )
    settings = (f"{short} {setting_text(member.values[path])}" for path, short in _short(tuned).items())
    return f"{name}: {', '.join(values)}; {', '.join(settings)}"


def _short(tuned: Tuned) -> dict[str, str]:
    return short_names(list(tuned.winner.values))


def _legend(tuned: Tuned) -> str:
    kinds: Sequence[tuple[str, str]] = [
        ("winner", "winner"),
        ("member", "front"),
        ("now", "current settings"),
        ("other", "other candidates"),
    ]
    rest = [("member", each) for each in tuned.front[1:]] + [("other", each) for each in tuned.others]
    present = {"winner", *("now" if each.candidate is None else style for style, each in rest)}
    items = "".join(f"<li>{_mark(style)}{name}</li>" for style, name in kinds if style in present)
    return f'<ul class="legend">{items}</ul>'


def _mark(style: str) -> str:
    """Return a mark of the legend."""
    return element("svg", circle(6, 6, 4, style), viewBox="0 0 12 12", class_="front", aria_hidden="true")
