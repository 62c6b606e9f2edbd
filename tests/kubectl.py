"""kubectl, run against a server by tests of several packages."""

import asyncio
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Done", "Kubectl"]


@dataclass(frozen=True)
class Done:
    """Exit code and output of kubectl."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Kubectl:
    """kubectl, and one server.

    Args:
        program: The program.
        kubeconfig: Kubeconfig of the server.
        folder: A folder for its caches.
        namespace: The namespace of commands that name none; empty for that of the kubeconfig.
    """

    program: Path
    kubeconfig: Path
    folder: Path
    namespace: str = ""

    async def __call__(self, *arguments: str, stdin: str = "", code: int | None = 0) -> Done:
        """Run kubectl.

        Args:
            *arguments: Its arguments.
            stdin: Its standard input.
            code: Its exit code; another one is an error. None allows any.
        """
        process = await self._start(*arguments)
        out, err = await process.communicate(stdin.encode())
        done = Done(process.returncode or 0, out.decode(), err.decode())
        assert code is None or done.code == code, f"kubectl {' '.join(arguments)}: {done}"
        return done

    @asynccontextmanager
    async def printing(self, *arguments: str) -> AsyncIterator[Callable[[], Awaitable[str]]]:
        """Run kubectl, which does not end by itself, during a block; yield a function that awaits its next line."""
        process = await self._start(*arguments)
        output = process.stdout
        assert output is not None

        async def next_line() -> str:
            return (await output.readline()).decode()

        try:
            yield next_line
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.communicate()

    async def _start(self, *arguments: str) -> Process:
        home = {"HOME": str(self.folder), "KUBECACHEDIR": str(self.folder / "c"), "KUBECONFIG": str(self.kubeconfig)}
        given = [f"--namespace={self.namespace}"] if self.namespace else []
        return await asyncio.create_subprocess_exec(
            self.program, *given, *arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE, env={**os.environ, **home}
        )
