"""Runs one program and ends it when asked to, or when whoever asked for the program is gone.

This file is run as a script, `python keeper.py PARENT FOLDER PROGRAM ARGUMENT...`, one per program, and imports the
standard library only. It stands between us and the program because a process that is killed cannot clean up, and
nothing in the program does it: the keeper outlives its parent long enough to kill the program and to remove the folder.

How it learns that its parent is gone: the parent holds the other end of standard input, which closes with it; and,
should a fork of the parent hold that end open, a keeper's parent changes when the real one dies. A byte on standard
input before it closes means that the parent is well and cleans up by itself. On Linux the program also dies when its
keeper is killed.

Programs are killed, not asked: what they keep is thrown away anyway, and a busy API server takes a minute to shut down.
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

_LOOK: Final = 1.0  # seconds between two looks at who our parent is
_ENDS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h


def main(arguments: Sequence[str]) -> int:
    """Run a program until it ends, or until it has to.

    Args:
        arguments: The parent's process id, the folder to remove if the parent disappears, and the program with its
            arguments.

    Returns:
        The program's exit code, 127 if it could not be started.
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
    """Wait until the child has ended or has to end; tell whether the parent is gone without a word."""
    while child.poll() is None:
        readable, _, _ = select.select([0, woken], [], [], _LOOK)
        if woken in readable and any(number in _ENDS for number in os.read(woken, 64)):
            return False
        if 0 in readable:
            return not os.read(0, 1)
        if os.getppid() != parent:
            return True
    return False


def _wake_on_signals() -> int:
    """Make signals readable, the end of the child among them, and return where to read them."""

    def ignore(_number: int, _frame: FrameType | None) -> None:
        """Do nothing: without a handler the signal would not be written to the pipe."""

    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    for number in (*_ENDS, signal.SIGCHLD):
        signal.signal(number, ignore)
    return reading


def _die_with_parent() -> Callable[[], None] | None:
    """Return what a new process calls so that it dies with us, where the system can do that."""
    if sys.platform != "linux":
        return None
    import ctypes

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
