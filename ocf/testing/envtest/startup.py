"""Startup of a server on a free port, including the wait until it is ready.

Another program may take a free port at any moment. A server that ends because its port is in use is therefore started
again on another port; any other exit is an error with the end of the server's log.
"""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ocf.errors import ConfigError
from ocf.testing.envtest import supervisor
from ocf.testing.envtest.http_probe import HttpProbe

__all__ = ["ChildProcess", "Launch", "Ports", "RunningServer", "free_port", "start"]

_ATTEMPTS: Final = 5
_PAUSE: Final = 0.05  # seconds between two readiness checks
_TAKEN: Final = "address already in use"  # EADDRINUSE, as Go words it
Ports = Callable[[], int]
"""Returns a port to try."""
_STOP_TIMEOUT: Final = 10.0  # seconds the supervisor has to kill its program before it is killed itself
_TAIL: Final = 64 * 1024  # bytes read from the end of a log


class ChildProcess:
    """A program under a supervisor, see `ocf.testing.envtest.supervisor`.

    Args:
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

        Returns:
            The lines, without a final line feed; empty if the program printed nothing.
        """
        with self.log.open("rb") as printed:
            printed.seek(max(0, self.log.stat().st_size - _TAIL))
            text = printed.read().decode(errors="replace")
        return "\n".join(text.rstrip().splitlines()[-lines:])


@dataclass(frozen=True, slots=True)
class Launch:
    """Settings for starting a server."""

    program: Path
    arguments: Callable[[int], Sequence[str]]
    probe: Callable[[int], HttpProbe]
    ready: str
    folder: Path
    seconds: float

    @property
    def name(self) -> str:
        """The program's name."""
        return self.program.name


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that is ready."""

    name: str
    program: ChildProcess
    probe: HttpProbe

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Check that the program runs until the block ends.

        An exception of the block gets a note with the state of the program and the end of its log: tests that wait for
        it in vain would not show why otherwise.
        """
        try:
            yield
        except BaseException as error:
            error.add_note(self._state())
            raise
        if not self.program.running:
            raise ConfigError(self._state())

    def _state(self) -> str:
        running = self.program.running
        state = "is running" if running else f"ended with code {self.program.exit_code} while it was in use"
        return _with_log(self.name, state, self.program)


def free_port() -> int:
    """Return a port of the loopback address that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def start(
    launch: Launch,
    *,
    ports: Ports = free_port,
    given_up: threading.Event | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> RunningServer:
    """Start a server and wait until it is ready.

    Args:
        given_up: Event that aborts waiting; may be set from another thread.
        clock: Monotonic clock in seconds.
    """
    given_up = given_up or threading.Event()
    for _ in range(_ATTEMPTS):
        probe = launch.probe(ports())
        command = [str(launch.program), *launch.arguments(probe.port)]
        program = ChildProcess(command, folder=launch.folder, log=launch.folder / f"{launch.name}.log")
        try:
            if _wait(program, probe, launch, given_up, clock):
                return RunningServer(launch.name, program, probe)
        except BaseException:
            program.stop()
            raise
        program.stop()
        if _TAKEN not in program.tail():
            raise ConfigError(
                _with_log(launch.name, f"ended with code {program.exit_code} instead of serving", program)
            )
    raise ConfigError(f"{launch.name} found {_ATTEMPTS} ports in use, one after another")


def _wait(
    program: ChildProcess,
    probe: HttpProbe,
    launch: Launch,
    given_up: threading.Event,
    clock: Callable[[], float],
) -> bool:
    """Wait until the server is ready or has ended; return whether it is ready."""
    deadline = clock() + launch.seconds
    while program.running:
        if probe.is_open(launch.ready):
            return True
        if clock() > deadline:
            raise ConfigError(_with_log(launch.name, f"was not ready after {launch.seconds:g} s", program))
        if given_up.wait(_PAUSE):
            raise ConfigError(f"the start of {launch.name} was aborted")
    return False


def _with_log(name: str, what: str, program: ChildProcess) -> str:
    tail = program.tail()
    return f"{name} {what}; the end of its log:\n{tail}" if tail else f"{name} {what}; it printed nothing"
