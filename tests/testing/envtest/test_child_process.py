"""A child process ends when it is stopped, and when its parent ends for any reason."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ocf.testing.envtest.startup import ChildProcess

if TYPE_CHECKING:
    from tests.testing.envtest.conftest import Eventually

Gone = Callable[[int], bool]

# Writes its process id and keeps running; ignores SIGTERM.
SLEEPER = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1] + ".new", "w").write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(600)
"""

# A process with a child process that is killed; it may have forked before, as multiprocessing does.
PARENT = """
import os, signal, sys, time
from pathlib import Path
from ocf.testing.envtest.startup import ChildProcess

folder, forks, *command = sys.argv[1:]
program = ChildProcess(command, folder=Path(folder), log=Path(folder, "log"))
while not os.path.exists(command[-1]):
    time.sleep(0.01)
if forks == "forks":
    child = os.fork()
    if not child:
        time.sleep(600)
    print(child, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


class Sleeper:
    """A program to run as a child process, and the file with its process id."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        self._file = folder / "pid"
        self.command = [sys.executable, "-c", SLEEPER, str(self._file)]

    @property
    def running(self) -> bool:
        return self._file.exists()

    @property
    def process(self) -> int:
        return int(self._file.read_text())

    def keep(self) -> ChildProcess:
        return ChildProcess(self.command, folder=self.folder, log=self.folder / "log")


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Sleeper]:
    made = Sleeper(tmp_path)
    yield made
    if made.running:
        with suppress(ProcessLookupError):
            os.kill(made.process, signal.SIGKILL)


def keep(folder: Path, code: str) -> ChildProcess:
    return ChildProcess([sys.executable, "-c", code], folder=folder, log=folder / "log")


def test_stop_ends_the_program_immediately_and_keeps_its_files(
    sleeper: Sleeper, eventually: Eventually, gone: Gone
) -> None:
    program = sleeper.keep()
    eventually(lambda: sleeper.running)
    assert program.running
    program.stop()
    assert not program.running
    assert gone(sleeper.process)
    assert program.exit_code == 128 + signal.SIGKILL
    assert program.log.exists()


def test_stop_may_be_called_again(sleeper: Sleeper) -> None:
    program = sleeper.keep()
    program.stop()
    program.stop()


def test_a_program_that_has_ended_can_be_stopped(tmp_path: Path, eventually: Eventually) -> None:
    program = keep(tmp_path, "raise SystemExit(7)")
    eventually(lambda: not program.running)
    assert program.exit_code == 7
    program.stop()


@pytest.mark.parametrize("forks", ["forks", "does not fork"])
def test_a_killed_parent_ends_the_program_and_removes_its_folder(
    forks: str, sleeper: Sleeper, eventually: Eventually, gone: Gone
) -> None:
    """A fork holds the parent's end of the supervisor's input; that must not keep the program alive."""
    command = [sys.executable, "-c", PARENT, str(sleeper.folder), forks, *sleeper.command]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:  # noqa: S603 (ours)
        assert parent.stdout is not None
        child = int(parent.stdout.readline() or 0)
        try:
            eventually(lambda: gone(sleeper.process))
            eventually(lambda: not sleeper.folder.exists())
        finally:
            if child:
                os.kill(child, signal.SIGKILL)
    assert parent.returncode == -signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals a process that its parent has died")
def test_a_killed_supervisor_ends_the_program(sleeper: Sleeper, eventually: Eventually, gone: Gone) -> None:
    program = sleeper.keep()
    eventually(lambda: sleeper.running)
    program._supervisor.kill()
    eventually(lambda: gone(sleeper.process))
    program.stop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_terminated_supervisor_ends_the_program(
    number: signal.Signals, sleeper: Sleeper, eventually: Eventually, gone: Gone
) -> None:
    program = sleeper.keep()
    eventually(lambda: sleeper.running)
    program._supervisor.send_signal(number)
    eventually(lambda: gone(sleeper.process))
    program.stop()


def test_the_tail_is_the_end_of_the_output(tmp_path: Path, eventually: Eventually) -> None:
    program = keep(tmp_path, "import sys; print('a\\nb\\nc'); sys.stdout.flush(); print('d\\n', file=sys.stderr)")
    eventually(lambda: not program.running)
    assert program.tail(lines=2) == "c\nd"
    program.stop()


def test_a_program_that_cannot_be_started_says_why(tmp_path: Path, eventually: Eventually) -> None:
    program = ChildProcess([str(tmp_path / "absent")], folder=tmp_path, log=tmp_path / "log")
    eventually(lambda: not program.running)
    assert (program.exit_code, program.tail()) == (127, f"{tmp_path / 'absent'}: No such file or directory")
    program.stop()
