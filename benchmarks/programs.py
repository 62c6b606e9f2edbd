"""Programs under measurement: separate processes that talk to the embedded cluster over HTTP."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from ocf.cluster import PatchOptions, PatchType, WatchOptions
from ocf.objects import ObjectKey
from ocf_server import EmbeddedCluster

__all__ = [
    "TIMEOUT",
    "Program",
    "cpu_seconds",
    "reaction",
    "resident",
    "resident_memory",
    "running",
    "until",
    "waiting_for",
]

TIMEOUT: Final = 300.0
"""Seconds after which something that is waited for has failed."""


class Program:
    """A process under measurement.

    Args:
        process: The process; it can write a line for each owner that it sees.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def seen(self, count: int) -> None:
        """Wait until it has seen so many owners."""
        assert self.process.stdout is not None
        names: set[bytes] = set()
        async with waiting_for(lambda: f"the names of {count} owners; the process wrote {len(names)}"):
            while len(names) < count:
                line = await self.process.stdout.readline()
                if not line:
                    raise RuntimeError("the process under measurement has ended")
                names.add(line)


@asynccontextmanager
async def running(program: Sequence[str], kubeconfig: Path, variables: Mapping[str, str]) -> AsyncIterator[Program]:
    """Run a program for as long as the block runs.

    Args:
        program: The arguments of the interpreter: `-m benchmarks.ours`, or `-c` and code, then those of the program.
        kubeconfig: How it finds the cluster.
        variables: What else is in its environment.
    """
    # Installed programs have their byte code on disk; without it, each start would compile our modules again.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *program,
        env={**inherited, "KUBECONFIG": str(kubeconfig), **variables},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=Path(__file__).parents[1],
    )
    try:
        yield Program(process)
    finally:
        process.kill()
        await process.communicate()


@asynccontextmanager
async def waiting_for(what: Callable[[], str]) -> AsyncIterator[None]:
    """Limit how long a block waits.

    Args:
        what: Returns what it waits for, and what it has seen of it.

    Raises:
        TimeoutError: If the block has not ended within `TIMEOUT`.
    """
    limit = asyncio.timeout(TIMEOUT)
    try:
        async with limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise TimeoutError(f"waited {TIMEOUT:g} s for {what()}") from error


async def until(holds: Callable[[], bool], what: Callable[[], str], *, every: float = 0.01) -> None:
    """Wait until a condition holds.

    Args:
        holds: The condition.
        what: Returns what is waited for, and what was seen of it.
        every: Seconds between two checks.

    Raises:
        TimeoutError: If it does not hold within `TIMEOUT`.
    """
    async with waiting_for(what):
        while not holds():  # noqa: ASYNC110 (a request log has no callbacks)
            await asyncio.sleep(every)


def resident(program: Program) -> int:
    """Return the resident memory of a process in MiB; 0 if the system does not report it."""
    return resident_memory(program.process.pid)


def resident_memory(pid: int) -> int:
    """Return the resident memory of the process of an id in MiB; 0 if the system does not report it."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def cpu_seconds(program: Program) -> float:
    """Return the CPU time of a process so far, user and system, in seconds; 0 if the system does not report it."""
    try:
        stat = Path(f"/proc/{program.process.pid}/stat").read_text(encoding="ascii")
    except OSError:
        return 0.0
    # Fields 14 and 15; the second one, the command, may contain blanks.
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


async def reaction(cluster: EmbeddedCluster, name: str, namespace: str) -> float:
    """Return the seconds until the operator has reverted a user's change of an autoscaler to `maxReplicas` of 10."""
    key = ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", name, namespace)
    edited = await cluster.patch(
        key, {"spec": {"maxReplicas": 99}}, PatchOptions(patch_type=PatchType.MERGE, field_manager="kubectl")
    )
    began = time.perf_counter()
    events = cluster.watch(
        key.api_version,
        key.kind,
        WatchOptions(
            resource_version=edited["metadata"]["resourceVersion"],
            namespace=namespace,
            field_selector=f"metadata.name={name}",
        ),
    )
    try:
        async with waiting_for(lambda: f"the repair of {key}"):
            async for event in events:
                if event.object["spec"].get("maxReplicas") == 10:
                    break
    finally:
        await events.aclose()
    return time.perf_counter() - began
