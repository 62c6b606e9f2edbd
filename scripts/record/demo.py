"""Write docs/pictures/demo.svg, the terminal picture of the README, from a run of the demo.

    python -m scripts.record.demo

The demo prints the same every time, so a run without a change of the demo leaves the file as it is.
"""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

__all__ = ["CHAPTERS", "PICTURE", "chapters_of"]

ROOT: Final = Path(__file__).parents[2]
PICTURE: Final = ROOT / "docs" / "pictures" / "demo.svg"
CHAPTERS: Final = (3, 4, 6, 7)
"""Numbers of the chapters of the demo that are shown: all of them would not fit on a screen."""

_COLUMNS: Final = 80
_COMMAND: Final = "$ make demo"
_CUT: Final = "..."
_BACKGROUND: Final = (13, 17, 23)
_FOREGROUND: Final = (201, 209, 217)
_COLOURS: Final = [
    (68, 76, 86),
    (255, 123, 114),
    (86, 211, 100),
    (227, 179, 65),
    (121, 192, 255),
    (210, 168, 255),
    (86, 212, 221),
    _FOREGROUND,
]
_THEME: Final = TerminalTheme(_BACKGROUND, _FOREGROUND, _COLOURS)
_FORMAT: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="Output of make demo">
<style>
.{unique_id}-matrix {{
  font: {char_height}px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""A template of `rich` that names no font of another host: the picture is complete in itself."""


def chapters_of(output: str) -> str:
    """Return the chapters that the picture shows, as the terminal prints them after the command.

    Args:
        output: The whole output of the demo, with or without colours.
    """
    chapters = output.strip("\n").split("\n\n")
    shown = [chapters[number - 1].rstrip("\n") for number in CHAPTERS]
    return "\n".join([_COMMAND, _CUT, "\n\n".join(shown), _CUT])


def main() -> None:
    """Run the demo, and write the picture."""
    environment = os.environ | {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": str(_COLUMNS)}
    command = [sys.executable, "-m", "examples.memcached.demo"]
    output = subprocess.run(  # noqa: S603 (our own program)
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), legacy_windows=False)
    console.print(Text.from_ansi(chapters_of(output)))
    picture = console.export_svg(title="make demo", theme=_THEME, code_format=_FORMAT, unique_id="demo")
    PICTURE.write_text("\n".join(line.rstrip() for line in picture.splitlines()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
