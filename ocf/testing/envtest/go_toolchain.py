"""Running Go."""

import os
import re
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ocf.errors import ConfigError

__all__ = ["Go", "problem"]

_TAIL: Final = 20  # lines of a failed command that are shown
_SWITCHES: Final = (1, 21)  # the first Go that fetches a newer one when a module demands it
_INSTEAD: Final = "install it from https://go.dev/dl, or let KUBEBUILDER_ASSETS name a folder that setup-envtest filled"


@dataclass(frozen=True, slots=True)
class Go:
    """The Go toolchain, with an environment.

    Args:
        environ: What it is run with.
        program: Its command.
    """

    environ: Mapping[str, str]
    program: str = "go"

    def check(self, floor: str, folder: Path) -> None:
        """Make sure that it is there and new enough.

        Args:
            floor: The oldest version that will do.
            folder: Where to run it; outside of any module.

        Raises:
            ConfigError: If it is not.
        """
        try:
            version, toolchain = self.run(["env", "GOVERSION", "GOTOOLCHAIN"], folder)
        except ValueError as error:  # before 1.21 one of them is unknown, and empty lines are left out
            raise ConfigError(
                f"the programs are built with Go {floor} or newer, and {self.program} is older"
            ) from error
        found = problem(version, toolchain, floor)
        if found:
            raise ConfigError(found)

    def run(self, arguments: Sequence[str], folder: Path, see: Callable[[str], None] = lambda _: None) -> list[str]:
        """Run a command to its end.

        Args:
            arguments: Of `go`.
            folder: Where.
            see: Told each line that is printed, as it comes.

        Returns:
            The lines that were printed, empty ones left out; what Go says about itself is not among them.

        Raises:
            ConfigError: If there is no Go, or it fails; with the end of what it printed.
        """
        lines, tail = [], deque[str](maxlen=_TAIL)
        try:
            process = subprocess.Popen(  # noqa: S603 (our own commands)
                [self.program, *arguments],
                cwd=folder,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise ConfigError(
                f"the programs are built with Go, and `{self.program}` cannot be run; {_INSTEAD}"
            ) from error
        assert process.stdout is not None  # noqa: S101 (it was opened with a pipe)
        try:
            for line in filter(None, map(str.rstrip, process.stdout)):
                tail.append(line)
                if not line.startswith("go: "):
                    lines.append(line)
                see(line)
            code = process.wait()
        finally:
            _end(process)
        if code:
            raise ConfigError("\n".join([f"go {arguments[0]} failed with code {code}:", *tail]))
        return lines


def problem(version: str, toolchain: str, floor: str) -> str:
    """Tell what is wrong with a Go.

    Args:
        version: What it calls itself, `go1.26.8`.
        toolchain: Its setting GOTOOLCHAIN; unless that is `local`, Go fetches a newer one by itself.
        floor: The oldest version that will do.

    Returns:
        A sentence; empty if nothing is wrong.

    Example:
        >>> problem("go1.26.8", "local", "1.26")
        ''
    """
    numbers = _numbers(version)
    if not numbers or numbers >= _numbers(floor):  # no number: somebody built it, and knows
        return ""
    if numbers >= _SWITCHES and toolchain != "local":
        return ""
    return f"the programs are built with Go {floor} or newer, and this one is {version.removeprefix('go')}; {_INSTEAD}"


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"(?:go)?(\d+)\.(\d+)", version)
    return tuple(int(each) for each in found.groups()) if found else ()


def _end(process: subprocess.Popen[str]) -> None:
    """End the command and the compilers that it has started, if we leave before it has ended."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
