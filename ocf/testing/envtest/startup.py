"""Starting a server on a free port, and waiting until it is ready.

A port that is free now may be taken a moment later. So a server that ends because of its port is started again on
another one, and every other end is an error with the tail of its log.
"""

import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ocf.errors import ConfigError
from ocf.testing.envtest.child_process import ChildProcess
from ocf.testing.envtest.http_probe import HttpProbe

__all__ = ["Launch", "Ports", "RunningServer", "free_port", "start"]

_ATTEMPTS: Final = 5
_PAUSE: Final = 0.05  # seconds between two questions whether it is ready
_TAKEN: Final = "address already in use"  # EADDRINUSE, as Go words it

Ports = Callable[[], int]
"""Gives a port to try."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How a server is started.

    Args:
        program: The file.
        arguments: Its arguments, given the port.
        door: How to get in, given the port.
        ready: The path by which it tells that it is ready.
        folder: Where it works, and leaves its log.
        seconds: How long it may take.
    """

    program: Path
    arguments: Callable[[int], Sequence[str]]
    door: Callable[[int], HttpProbe]
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

    program: ChildProcess
    door: HttpProbe


def free_port() -> int:
    """Return a port of the loopback address that nobody uses at this moment."""
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
        launch: What to start.
        ports: Where to try.
        given_up: Set from another thread, it ends the waiting.
        clock: Seconds that never go back.

    Returns:
        The server. On an error nothing is left running.

    Raises:
        ConfigError: If it ends, takes too long, finds no port, or was given up.
    """
    given_up = given_up or threading.Event()
    for _ in range(_ATTEMPTS):
        door = launch.door(ports())
        command = [str(launch.program), *launch.arguments(door.port)]
        program = ChildProcess(command, folder=launch.folder, log=launch.folder / f"{launch.name}.log")
        try:
            if _wait(program, door, launch, given_up, clock):
                return RunningServer(program, door)
        except BaseException:
            program.stop()
            raise
        program.stop()
        if _TAKEN not in program.tail():
            raise ConfigError(_ended(launch.name, f"ended with code {program.exit_code} instead of serving", program))
    raise ConfigError(f"{launch.name} found {_ATTEMPTS} ports in use, one after another")


def _wait(
    program: ChildProcess,
    door: HttpProbe,
    launch: Launch,
    given_up: threading.Event,
    clock: Callable[[], float],
) -> bool:
    """Wait for the server; tell whether it is ready, which it is not if it has ended."""
    deadline = clock() + launch.seconds
    while program.running:
        if door.is_open(launch.ready):
            return True
        if clock() > deadline:
            raise ConfigError(_ended(launch.name, f"was not ready after {launch.seconds:g} s", program))
        if given_up.wait(_PAUSE):
            raise ConfigError(f"{launch.name} was given up while it started")
    return False


def _ended(name: str, what: str, program: ChildProcess) -> str:
    tail = program.tail()
    return f"{name} {what}; the end of its log:\n{tail}" if tail else f"{name} {what}, and printed nothing"
