"""What the tests of foreign clients share: the servers, and programs that are run against them."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from scripts.cached_environment import CLIENTS
from tests import requirements
from tests.clients import go_programs

__all__ = ["JAVASCRIPT", "SECONDS", "Server", "command", "go_program", "leave_out", "run", "run_suite"]

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


async def run_suite(program: Path, assets: Path, folder: Path) -> dict[str, str]:
    """Run a suite of Ginkgo that starts its server with envtest.

    Args:
        program: The program that `go test -c` has made of the suite.
        assets: The folder with the programs of the server.
        folder: The working directory.

    Returns:
        The state of each spec that ran, by name.
    """
    report = folder / "report.json"
    process = await asyncio.create_subprocess_exec(
        program,
        f"-ginkgo.json-report={report}",
        cwd=folder,
        # Where a suite names no time limit, Gomega's is a second, which a busy machine misses.
        env={"GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT": "10s", **os.environ, "KUBEBUILDER_ASSETS": str(assets)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await asyncio.wait_for(process.wait(), SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    specs: list[dict[str, Any]] = [
        spec
        for part in json.loads(report.read_text(encoding="utf-8"))
        for spec in part["SpecReports"] or ()
        if spec["LeafNodeType"] == "It" and spec["State"] not in ("pending", "skipped")
    ]
    return {" ".join([*(spec["ContainerHierarchyTexts"] or ()), spec["LeafNodeText"]]): spec["State"] for spec in specs}
