"""Go toolchain: version check and running commands."""

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
_SWITCHES: Final = (1, 21)  # the first Go that downloads a newer toolchain if a module requires it
_INSTEAD: Final = "install it from https://go.dev/dl, or let KUBEBUILDER_ASSETS name a folder that setup-envtest filled"


@dataclass(frozen=True, slots=True)
class Go:
    """The Go toolchain with an environment.

    Args:
        program: The `go` command.
    """

    environ: Mapping[str, str]
    program: str = "go"

    def check(self, minimum: str, folder: Path) -> None:
        """Check that Go is installed and new enough."""
        try:
            version, toolchain = self.run(["env", "GOVERSION", "GOTOOLCHAIN"], folder)
        except ValueError as error:  # Go before 1.21 prints an empty line for GOTOOLCHAIN, which `run` drops
            raise ConfigError(
                f"the programs need Go {minimum} or newer to be built, and {self.program} is older"
            ) from error
        found = problem(version, toolchain, minimum)
        if found:
            raise ConfigError(found)

    def run(self, arguments: Sequence[str], folder: Path, see: Callable[[str], None] = lambda _: None) -> list[str]:
        """Run a command and wait until it ends.

        Args:
            arguments: Arguments of `go`.

        Returns:
            The printed lines, without empty lines and without Go's own messages (`go: ...`).
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
                f"the programs need Go to be built, and `{self.program}` cannot be run; {_INSTEAD}"
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


def problem(version: str, toolchain: str, minimum: str) -> str:
    """Return why a Go version cannot build the programs.

    Args:
        version: The version that Go reports, such as `go1.26.8`.
        toolchain: The setting GOTOOLCHAIN; unless it is `local`, Go downloads a newer version on its own.

    Returns:
        A sentence; empty if the version is accepted.

    Example:
        >>> problem("go1.26.8", "local", "1.26")
        ''
    """
    numbers = _numbers(version)
    if not numbers or numbers >= _numbers(minimum):  # a custom build of Go may have no version number
        return ""
    if numbers >= _SWITCHES and toolchain != "local":
        return ""
    found = version.removeprefix("go")
    return f"the programs need Go {minimum} or newer to be built, and this one is {found}; {_INSTEAD}"


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"(?:go)?(\d+)\.(\d+)", version)
    return tuple(int(each) for each in found.groups()) if found else ()


def _end(process: subprocess.Popen[str]) -> None:
    """Kill the command and its child processes if it is still running."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
