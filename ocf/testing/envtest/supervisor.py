"""Supervisor process that runs one program and kills it on request, or when the parent process ends.

This file is run as a script, `python supervisor.py PARENT FOLDER PROGRAM ARGUMENT...`, once per program, and imports
the standard library only. A killed process cannot clean up, and the program does not do it either. The supervisor
outlives its parent long enough to kill the program and to remove the folder.

It detects the end of its parent in two ways. The parent holds the other end of standard input, which is closed when the
parent ends. If a fork of the parent keeps that end open, the parent process id of the supervisor changes. A byte on
standard input before the end of file means that the parent is alive and cleans up the folder itself. On Linux the
program also dies if its supervisor is killed.

Programs are killed instead of terminated: their data is not needed any more, and a busy API server takes a minute to
shut down.
"""

import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Final

__all__ = ["main"]

_POLL: Final = 1.0  # seconds between two checks of the parent process id
_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h


def main(arguments: Sequence[str]) -> int:
    """Run a program until it ends or must be killed.

    Returns:
        The exit code of the program; 127 if it could not be started.
    """
    parent, folder, *command = arguments
    woken = _wake_on_signals()
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent())  # noqa: S603, PLW1509 (our own commands; there are no threads here)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127
    orphaned = _wait(child, int(parent), woken)
    child.kill()
    code = child.wait()
    if orphaned:
        shutil.rmtree(folder, ignore_errors=True)
    return code if code >= 0 else 128 - code


def _wait(child: subprocess.Popen[bytes], parent: int, woken: int) -> bool:
    """Wait until the child has ended or must be killed; return whether the parent ended without a stop request."""
    while child.poll() is None:
        readable, _, _ = select.select([0, woken], [], [], _POLL)
        if woken in readable and any(number in _STOP_SIGNALS for number in os.read(woken, 64)):
            return False
        if 0 in readable:
            return not os.read(0, 1)
        if os.getppid() != parent:
            return True
    return False


def _wake_on_signals() -> int:
    """Write signals, including SIGCHLD, to a pipe, and return its reading end."""

    def ignore(_number: int, _frame: FrameType | None) -> None:
        """Do nothing; without a handler Python does not write the signal to the pipe."""

    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    for number in (*_STOP_SIGNALS, signal.SIGCHLD):
        signal.signal(number, ignore)
    return reading


def _die_with_parent() -> Callable[[], None] | None:
    """Return the function that makes a new process die with this one; None if the system does not support it."""
    if sys.platform != "linux":
        return None
    import ctypes

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
