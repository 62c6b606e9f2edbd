"""A diagram as SVG: boxes within boxes, states as colours, signs and words, arrows beside them; no script, no font.

Its coordinates are chosen so that its texts can be read on a screen of 390 pixels, and the colours follow the scheme of
the reader, light or dark.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from ocf.autoscaling.explain.html_page import COLOURS, html_page
from ocf.autoscaling.explain.svg import circle, element, path, picture, rect, text
from ocf.objects.printable import printable, visible
from ocf.ownership.diagram import Arrow, Box, Diagram
from ocf.ownership.tree import State

__all__ = ["MARKS", "standalone_svg", "to_html", "to_svg"]

_WIDTH: Final = 380
_LINE: Final = 14
_PAD: Final = 6
_STEP: Final = 9
_DEEPEST: Final = 9
"""Boxes that are deeper are not indented further, so that their texts have room."""
_SIGN: Final = 22
_LETTER: Final = 6.2
"""Width of a letter of 11 pixels, as wide as common fonts have it."""
_FEWEST_COLUMNS: Final = 12
_MOST_LINES: Final = 6
_LANE: Final = 9
_MOST_LANES: Final = 6

MARKS: Final = """\
.owner{font:11px system-ui,sans-serif}.owner text{fill:var(--ink)}.owner .name{font-weight:600}
.owner .note{fill:var(--muted)}.owner .box{fill:var(--paper);stroke:var(--line)}.owner .group{fill:var(--card)}
.owner .declared{stroke-dasharray:3 2}.owner .sign{fill:none;stroke:var(--muted);stroke-width:1.8}
.owner .ready{stroke:var(--good)}.owner .failing,.owner .gone{stroke:var(--bad)}.owner .progressing{stroke:var(--warn)}
.owner .gone{stroke-dasharray:2 1.5}.owner .arrow{fill:none;stroke:var(--up)}
.owner .optional{stroke-dasharray:3 2}.owner .head{fill:var(--up)}
"""
"""The style of the marks of the picture."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A box with its coordinates.

    Args:
        lines: Its texts, each with its style.
        height: With everything in it.
    """

    box: Box
    x: float
    y: float
    right: float
    height: float
    lines: tuple[tuple[str, str], ...]

    @property
    def middle(self) -> float:
        """The middle of its first line, where arrows begin and end."""
        return self.y + _PAD + _LINE / 2


def to_svg(diagram: Diagram, *, identifier: str = "owner", style: str = "") -> str:
    """Draw a diagram as an `svg` element, with a description that is read aloud in place of the picture.

    Args:
        diagram: The diagram; its texts may contain any character.
        identifier: Prefix of the identifiers in the picture, unique within its page.
        style: A style sheet to embed; a page has `MARKS` once for all of its pictures.

    Example:
        >>> to_svg(Diagram("Shop corner is ready.", Box("Shop corner", "shop", State.READY)))[:38]
        '<svg xmlns="http://www.w3.org/2000/svg'
    """
    lanes = _lanes(diagram)
    edge = _WIDTH - 4 - (_LANE * (1 + max(lanes.values())) if lanes else 0)
    placed = list(_place(diagram.root, 4, 4, edge, 0))
    by_identity = {one.box.identity: one for one in placed}
    parts = (
        element("style", style) if style else "",
        *(part for one in placed for part in _drawn(one, has_states=diagram.root.state is not None)),
        *(_arrow(by_identity[a.source], by_identity[a.target], edge + _LANE * lane, a) for a, lane in lanes.items()),
    )
    return picture(
        filter(None, parts),
        title=_shown(diagram.root.name),
        description=_description(diagram),
        identifier=identifier,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH} {placed[0].height + 8:g}",
        role="img",
        class_="owner",
    )


def standalone_svg(diagram: Diagram) -> str:
    """Draw a diagram as a file of its own."""
    paper = ".owner{background:var(--paper)}\n"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{to_svg(diagram, style=COLOURS + MARKS + paper)}\n'


def to_html(diagram: Diagram, lines: Iterable[tuple[int, str]]) -> str:
    """Return a page with a diagram, and below it the lines of the explanation with their indentation.

    Args:
        lines: Depth and text of each, such as those of `explanation_lines`; the first one is the headline.
    """
    first, *rest = lines
    tree = "\n".join(f"{'  ' * depth}{_shown(line)}" for depth, line in rest)
    body = (
        f"<main>\n<header><h1>{escape(_shown(first[1]))}</h1></header>\n"
        f"<figure>{to_svg(diagram)}</figure>\n<pre>{escape(tree.strip())}</pre>\n</main>"
    )
    return html_page(title=_shown(diagram.root.name), body=body, marks=f"{MARKS}pre{{white-space:pre-wrap}}\n")


def _description(diagram: Diagram) -> str:
    """Return what the picture shows, in sentences."""
    boxes = (
        ", ".join(filter(None, (box.title, box.state, box.text, *box.notes))) for box in [*diagram.root.walk()][1:]
    )
    return _shown(". ".join([diagram.title.rstrip("."), *boxes]))


def _lanes(diagram: Diagram) -> dict[Arrow, int]:
    """Return the lane of each arrow that fits, the short ones next to the boxes; the others are notes only."""
    rows = {box.identity: number for number, box in enumerate(diagram.root.walk())}
    spans = [(sorted((rows[one.source], rows[one.target])), one) for one in diagram.arrows]
    taken: list[list[Sequence[int]]] = []
    lanes: dict[Arrow, int] = {}
    for span, arrow in sorted(spans, key=lambda each: (each[0][1] - each[0][0], each[0])):
        free = (
            number
            for number, lane in enumerate(taken)
            if all(span[1] < other[0] or span[0] > other[1] for other in lane)
        )
        lane = next(free, len(taken))
        if lane == len(taken):
            if lane >= _MOST_LANES:
                continue
            taken.append([])
        taken[lane].append(span)
        lanes[arrow] = lane
    return lanes


def _place(box: Box, x: float, y: float, right: float, depth: int) -> Iterator[_Placed]:
    """Yield a box and what is in it, from top to bottom."""
    columns = max(_FEWEST_COLUMNS, int((right - x - _SIGN - _PAD) / _LETTER))
    lines = tuple(_lines(box, columns))
    bottom = y + 2 * _PAD + _LINE * len(lines)
    step = _STEP if depth < _DEEPEST else 0
    children: list[_Placed] = []
    for child in box.children:
        inner = [*_place(child, x + step, bottom, right - step / 3, depth + 1)]
        children += inner
        bottom += inner[0].height + _PAD
    yield _Placed(box, x, y, right, bottom - y, lines)
    yield from children


def _lines(box: Box, columns: int) -> Iterator[tuple[str, str]]:
    state = str(box.state) if box.state is not None else ""
    # Names are bold, and so wider.
    yield from ((line, "name") for line in _wrapped(box.title, columns * 7 // 8))
    said = f"{state}: {box.text}" if state and box.text else state or box.text
    yield from ((line, "") for line in _wrapped(said, columns))
    for note in box.notes:
        yield from ((line, "note") for line in _wrapped(note, columns))


def _wrapped(words: str, columns: int) -> list[str]:
    """Return a text in lines that fit, and of a long one the first lines."""
    shown = _shown(words)
    # Characters of East Asian scripts are twice as wide.
    wide = sum(unicodedata.east_asian_width(one) in "WF" for one in shown)
    fitting = max(_FEWEST_COLUMNS, columns // 2) if 3 * wide > len(shown) else columns
    return textwrap.wrap(shown, fitting, max_lines=_MOST_LINES, placeholder="…")


def _shown(words: str) -> str:
    """Return a text with what is not visible as escapes: XML has no place for most of that."""
    return visible(printable(words))


def _drawn(placed: _Placed, *, has_states: bool) -> Iterator[str]:
    box = placed.box
    is_absent = has_states and box.state is None
    style = f"box{' group' if box.children else ''}{' declared' if is_absent else ''}"
    yield rect(placed.x, placed.y, (placed.right - placed.x, placed.height), style)
    yield from _sign(box.state, placed.x + _SIGN / 2, placed.middle)
    for number, (words, kind) in enumerate(placed.lines):
        y = placed.y + _PAD + _LINE * (number + 1) - 3.5
        yield text(placed.x + _SIGN, y, words, style=kind)


def _sign(state: State | None, x: float, y: float) -> Iterator[str]:
    """Yield the sign of a state: each has a shape of its own."""
    style = f"sign {state or 'none'}"
    if state is State.READY:
        yield circle(x, y, 6, style)
        yield path(f"M{x - 3:g} {y:g}l2.2 2.5l3.8 -4.5", style)
    elif state is State.PROGRESSING:
        yield path(f"M{x - 5:g} {y - 5.5:g}h10l-10 11h10z", style)
    elif state is State.FAILING:
        yield path(f"M{x - 5:g} {y - 5:g}l10 10m0 -10l-10 10", style)
    elif state is State.GONE:
        yield circle(x, y, 6, style)
        yield path(f"M{x - 4:g} {y + 4:g}l8 -8", style)
    elif state is State.SUPERSEDED:
        yield circle(x, y, 6, style)
        yield path(f"M{x - 3:g} {y:g}h6", style)
    elif state is State.UNKNOWN:
        yield circle(x, y, 6, style)
        yield text(x, y + 4, "?", anchor="middle")
    else:
        yield circle(x, y, 2, style)


def _arrow(source: _Placed, target: _Placed, lane: float, arrow: Arrow) -> str:
    down = source.y < target.y
    # Several arrows may begin and end at one box: those that come in end above the middle of those that go out.
    start, end = source.middle + (2 if down else -2), target.middle + (-2 if down else 2)
    x = lane + _LANE / 2
    words = element("title", escape(_shown(f"{source.box.name}: {arrow.label}: {target.box.name}")))
    line = path(
        f"M{source.right:g} {start:g}H{x:g}V{end:g}H{target.right + 4:g}",
        f"arrow{'' if arrow.is_required else ' optional'}",
    )
    head = path(f"M{target.right:g} {end:g}l5 -3v6z", "head")
    return element("g", words + line + head)
