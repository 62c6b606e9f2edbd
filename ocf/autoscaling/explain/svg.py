"""SVG elements of charts. Every text is escaped here, and every number is written in its shortest form."""

import math
from collections.abc import Iterable
from html import escape
from typing import Final

__all__ = ["circle", "element", "line", "path", "picture", "rect", "round_step", "text"]

# The last one is for a power of ten that is rounded down.
_STEPS: Final = (1, 2, 5, 10, 20)


def element(name: str, content: str | None = None, /, **attributes: str | float) -> str:
    """Return an element; `class_` is the attribute `class`, an underscore in a name a hyphen, and "" no attribute.

    The content is SVG; without any the element is empty.
    """
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(f"{value:g}" if isinstance(value, float) else str(value))}"'
        for key, value in attributes.items()
        if value != ""
    )
    return f"<{name}{shown}/>" if content is None else f"<{name}{shown}>{content}</{name}>"


def line(x: tuple[str | float, str | float], y: tuple[str | float, str | float], style: str) -> str:
    """Return a line from the first to the second coordinates."""
    return element("line", class_=style, x1=x[0], x2=x[1], y1=y[0], y2=y[1])


def text(x: str | float, y: float, words: str, *, anchor: str = "", style: str = "") -> str:
    """Return a text that begins at a place, or has its middle or end there."""
    return element("text", escape(words), class_=style, x=x, y=y, text_anchor=anchor)


def circle(x: float, y: float, radius: float, style: str) -> str:
    """Return a circle."""
    return element("circle", class_=style, cx=x, cy=y, r=radius)


def rect(x: str | float, y: float, size: tuple[str | float, float], style: str) -> str:
    """Return a rectangle; the size is width and height."""
    return element("rect", class_=style, x=x, y=y, width=size[0], height=size[1])


def path(commands: str, style: str) -> str:
    """Return a path."""
    return element("path", class_=style, d=commands)


def picture(content: Iterable[str], *, title: str, description: str, identifier: str, **attributes: str | float) -> str:
    """Return a picture with a title and a description for readers who do not see it.

    The identifier is the prefix of the identifiers in the picture, unique within its page.
    """
    title_id, text_id = f"{identifier}-title", f"{identifier}-text"
    parts = (
        element("title", escape(title), id=title_id),
        element("desc", escape(description), id=text_id),
        *content,
    )
    return element("svg", "".join(parts), **attributes, aria_labelledby=f"{title_id} {text_id}")


def round_step(length: float, most: int, *, whole: bool = False) -> float:
    """Return the distance between the lines of an axis: 1, 2 or 5 times a power of ten, for about `most` lines.

    The length of the axis is more than 0. A distance that must be whole is at least 1.
    """
    rough = length / most
    power = 10 ** math.floor(math.log10(rough))
    step: float = next(each * power for each in _STEPS if each * power >= rough)
    return max(1, step) if whole else step
