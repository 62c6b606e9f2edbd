"""Output of the demo: plain text when piped, colours in a terminal."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text

from examples.memcached.demo.played import PERIOD
from ocf.objects import dump_document

if TYPE_CHECKING:
    from ocf.objects import Manifest

__all__ = ["chapter", "fact", "say", "show", "time_of"]

console: Final = Console(highlight=False, soft_wrap=True)


def chapter(text: str) -> None:
    """Print a headline."""
    console.print(Text(f"\n{text}", "bold"))


def say(text: str, style: str = "", *, mark: str = "   ") -> None:
    """Print a paragraph."""
    filled = textwrap.fill(text, 78, initial_indent=mark, subsequent_indent=" " * len(mark), break_on_hyphens=False)
    console.print(Text(filled, style))


def show(manifest: Manifest) -> None:
    """Print a manifest."""
    console.print(Text(textwrap.indent(dump_document(manifest).rstrip(), " " * 5)))


def fact(claim: str, *, holds: bool) -> None:
    """Print a claim; end the demo with an error if it does not hold."""
    if not holds:
        raise SystemExit(f"this should hold, and does not: {claim}")
    say(claim, "green", mark="   ok  ")


def time_of(number: int) -> str:
    """Return the time of an HPA period, `minutes:seconds`."""
    minutes, seconds = divmod(number * PERIOD.seconds, 60)
    return f"{minutes:02}:{seconds:02}"
