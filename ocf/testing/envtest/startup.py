"""Startup of a server on a free port, including the wait until it is ready.

Another program may take a free port at any moment. A server that ends because its port is in use is therefore started
again on another port; any other exit is an error with the end of the server's log.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ocf.errors import ConfigError
from ocf.testing.envtest.child_process import ChildProcess
from ocf.testing.envtest.http_probe import HttpProbe

__all__ = ["Launch", "Ports", "RunningServer", "free_port", "start"]

_ATTEMPTS: Final = 5
_PAUSE: Final = 0.05  # seconds between two readiness checks
_TAKEN: Final = "address already in use"  # EADDRINUSE, as Go words it

Ports = Callable[[], int]
"""Returns a port to try."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Settings for starting a server.

    Args:
        program: File of the program.
        arguments: Returns the arguments for a port.
        probe: Returns the client for a port.
        ready: Path of the readiness endpoint.
        folder: Folder for its files and its log.
        seconds: Start timeout.
    """

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
    """A server that is ready.

    Args:
        name: The program's name.
        program: The process.
        probe: The client for its port.
    """

    name: str
    program: ChildProcess
    probe: HttpProbe

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Check that the program runs until the block ends.

        An exception of the block gets a note with the state of the program and the end of its log: tests that wait for
        it in vain would not show why otherwise.

        Raises:
            ConfigError: If the block succeeds, and the program has ended by itself.
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
        launch: The settings.
        ports: Returns a port to try.
        given_up: Event that aborts waiting; may be set from another thread.
        clock: Monotonic clock in seconds.

    Returns:
        The server. On an error no process is left running.

    Raises:
        ConfigError: If the server ends, times out, finds no free port, or `given_up` is set.
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
