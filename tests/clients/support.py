"""What the tests of foreign clients share: the servers, and programs that are run against them."""

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from scripts.cached_environment import CLIENTS
from tests import requirements
from tests.clients import go_programs

__all__ = ["JAVASCRIPT", "SECONDS", "Server", "command", "go_program", "leave_out", "run"]

PROGRAMS: Final = Path(__file__).parent / "programs"
JAVASCRIPT: Final = ("client_node",)
OURS: Final = ("kubernetes",)
"""Clients that the environment of the tests has."""
SECONDS: Final = 600.0  # of a program; a busy machine may need long for what usually takes seconds


@dataclass(frozen=True)
class Server:
    """A server that clients are run against.

    Args:
        kubeconfig: The path of its kubeconfig.
        namespace: An empty namespace.
    """

    kubeconfig: Path
    namespace: str


def leave_out() -> NoReturn:
    """Skip the test because what it needs is not installed; fail it where clients are required."""
    requirements.leave_out("clients", "the clients of other projects are not installed: `make clients` installs them")


def command(client: str) -> list[str | Path]:
    """Return the command that runs the program of a client; skip the test if the client is not installed."""
    if client in JAVASCRIPT:
        program = shutil.which("node")
        script = CLIENTS.folder() / f"run_{client}.mjs"
        if program and script.exists():
            return [program, script]
    elif client in OURS:
        return [sys.executable, "-W", "ignore", PROGRAMS / f"run_{client}.py"]
    elif (python := CLIENTS.program("python")).exists():
        return [python, "-W", "ignore", PROGRAMS / f"run_{client}.py"]
    leave_out()


def go_program(name: str) -> Path:
    """Return a client in Go; skip the test if it is not built."""
    return go_programs.program(name) or leave_out()


async def run(arguments: list[str | Path], server: Server, environ: Mapping[str, str] | None = None) -> str:
    """Run a program against a server.

    Args:
        arguments: The program and its arguments.
        server: The server; the variable `KUBECONFIG` names its kubeconfig.
        environ: More environment variables.

    Returns:
        What it prints. It must succeed.
    """
    process = await asyncio.create_subprocess_exec(
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(environ or {}), "KUBECONFIG": str(server.kubeconfig)},
    )
    try:
        output, errors = await asyncio.wait_for(process.communicate(), SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, f"{arguments[0]}: {errors.decode()}"
    return output.decode()
