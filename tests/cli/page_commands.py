"""The commands of a page of the documentation, run in the current folder."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from click.testing import CliRunner

from ocf.cli.app import app

__all__ = ["run_commands"]

_SESSION: Final = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _steps(page: str) -> Iterator[tuple[list[str], str]]:
    """Yield the commands of a page, each with the output that the page shows."""
    for session in _SESSION.findall(page):
        for step in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
            command, _, output = step.partition("\n")
            yield shlex.split(command), output


def run_commands(page: str) -> int:
    """Run the commands of a page in the current folder, and compare their standard output with what the page shows.

    Args:
        page: The text of the page; a file that it shows with `cat` is written, or compared if a command wrote it.

    Returns:
        The number of commands of `ocf`.
    """
    ran = 0
    for (program, *arguments), output in _steps(page):
        if program == "cat":
            file = Path(arguments[0])
            if file.exists():
                assert file.read_text(encoding="utf-8") == output
            file.write_text(output, encoding="utf-8")
            continue
        assert program == "ocf"
        assert CliRunner().invoke(app, arguments).stdout == output
        ran += 1
    return ran
