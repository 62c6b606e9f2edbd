"""`ChildProcess`: a program in the background that ends when this process ends, even if it is killed."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ocf.testing.envtest import supervisor

__all__ = ["ChildProcess"]

_STOP_TIMEOUT: Final = 10.0  # seconds the supervisor has to kill its program before it is killed itself
_TAIL: Final = 64 * 1024  # bytes read from the end of a log


class ChildProcess:
    """A program under a supervisor, see `ocf.testing.envtest.supervisor`.

    Args:
        command: The program and its arguments.
        folder: Folder that the supervisor removes if this process ends without stopping it.
        log: File for the output of the program; overwritten.
    """

    def __init__(self, command: Sequence[str], *, folder: Path, log: Path) -> None:
        self.log = log
        argv = [sys.executable, "-I", "-S", supervisor.__file__, str(os.getpid()), str(folder), *command]
        with log.open("wb") as output:
            # In a new session, so that Ctrl-C in a terminal reaches only this process, which then stops the program.
            self._supervisor = subprocess.Popen(  # noqa: S603 (our own commands)
                argv, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    @property
    def running(self) -> bool:
        """Whether the program is running."""
        return self._supervisor.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Exit code of the program, by the shell's convention for signals; None while it is running."""
        return self._supervisor.poll()

    def stop(self) -> None:
        """Stop the program and wait until it has ended; may be called repeatedly."""
        assert self._supervisor.stdin is not None  # noqa: S101 (it was opened with a pipe)
        try:
            self._supervisor.stdin.write(b".")
            self._supervisor.stdin.close()
        except (BrokenPipeError, ValueError):  # it ended on its own; it was stopped before
            self._supervisor.stdin.close()
        try:
            self._supervisor.wait(_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()
            self._supervisor.wait()

    def tail(self, lines: int = 15) -> str:
        """Return the last lines of the output.

        Args:
            lines: How many.

        Returns:
            The lines, without a final line feed; empty if the program printed nothing.
        """
        with self.log.open("rb") as printed:
            printed.seek(max(0, self.log.stat().st_size - _TAIL))
            text = printed.read().decode(errors="replace")
        return "\n".join(text.rstrip().splitlines()[-lines:])
