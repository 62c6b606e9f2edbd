"""`ChildProcess`: a program that runs in the background and ends with us, however we end."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ocf.testing.envtest import supervisor

__all__ = ["ChildProcess"]

_PATIENCE: Final = 10.0  # seconds the supervisor has to kill its program before it is killed itself
_TAIL: Final = 64 * 1024  # bytes of a log that are looked at


class ChildProcess:
    """A program under a supervisor, see `ocf.testing.envtest.supervisor`.

    Args:
        command: The program and its arguments.
        folder: What the supervisor removes if we disappear without a word; the log is written there, too.
        log: The file for what the program prints; overwritten.
    """

    def __init__(self, command: Sequence[str], *, folder: Path, log: Path) -> None:
        self.log = log
        argv = [sys.executable, "-I", "-S", supervisor.__file__, str(os.getpid()), str(folder), *command]
        with log.open("wb") as output:
            # A session of its own: the Ctrl-C of a terminal is for us, and we pass on what follows from it.
            self._supervisor = subprocess.Popen(  # noqa: S603 (our own commands)
                argv, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._supervisor.poll() is None

    @property
    def exit_code(self) -> int | None:
        """What it ended with, by the shell's convention for signals; None while it is running."""
        return self._supervisor.poll()

    def stop(self) -> None:
        """End it and wait for its end; may be called at any time, and again."""
        assert self._supervisor.stdin is not None  # noqa: S101 (it was opened with a pipe)
        try:
            self._supervisor.stdin.write(b".")
            self._supervisor.stdin.close()
        except (BrokenPipeError, ValueError):  # it has ended by itself; it was stopped before
            self._supervisor.stdin.close()
        try:
            self._supervisor.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()
            self._supervisor.wait()

    def tail(self, lines: int = 15) -> str:
        """Return the last lines of what it printed.

        Args:
            lines: How many.

        Returns:
            The lines, without a final line end; empty if there are none.
        """
        with self.log.open("rb") as printed:
            printed.seek(max(0, self.log.stat().st_size - _TAIL))
            text = printed.read().decode(errors="replace")
        return "\n".join(text.rstrip().splitlines()[-lines:])
