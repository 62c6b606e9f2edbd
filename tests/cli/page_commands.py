"""The commands of a page of the documentation, run in the current folder."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from click.testing import CliRunner

from ocf.cli.app import app

__all__ = ["run_commands"]

_BLOCK: Final = re.compile(
    r"^(?:`(?P<file>[\w.-]+)`:\n\n```yaml|```console)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)


def _steps(page: str) -> Iterator[tuple[list[str], str]]:
    """Yield the commands of a page with the output that it shows, and no command with the name of a file before it."""
    for block in _BLOCK.finditer(page):
        if block["file"]:
            yield [block["file"]], block["body"]
            continue
        for step in re.split(r"^\$ ", block["body"], flags=re.MULTILINE)[1:]:
            command, _, output = step.partition("\n")
            yield shlex.split(command), output


def run_commands(page: str) -> int:
    """Run the commands of a page in the current folder, and compare what they print, errors last.

    Args:
        page: The text of the page; a file whose name is above it is written, or compared if a command wrote it.

    Returns:
        The number of commands of `ocf`.
    """
    ran = 0
    for (program, *arguments), shown in _steps(page):
        if not arguments:
            file = Path(program)
            if file.exists():
                assert file.read_text(encoding="utf-8") == shown
            file.write_text(shown, encoding="utf-8")
            continue
        assert program == "ocf"
        done = CliRunner().invoke(app, arguments)
        assert done.stdout + done.stderr == shown
        ran += 1
    return ran
