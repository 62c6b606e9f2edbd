"""helm, run against a server by several tests."""

import asyncio
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.support import SECONDS, Server, go_program

__all__ = ["Helm"]


@dataclass(frozen=True)
class Helm:
    """helm, and one server.

    Args:
        program: `helm`, which is Helm 4, or `helm3`.
    """

    server: Server
    folder: Path
    program: str = "helm"

    async def __call__(self, *arguments: str) -> tuple[int, str]:
        """Run helm; return its exit code and what it prints, warnings and errors last."""
        code, output, errors = await self._run(*arguments)
        return code, output + errors

    async def _run(self, *arguments: str) -> tuple[int, str, str]:
        state = {f"HELM_{name}_HOME": str(self.folder / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
        process = await asyncio.create_subprocess_exec(
            go_program(self.program),
            *arguments,
            f"--namespace={self.server.namespace}",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **state, "KUBECONFIG": str(self.server.kubeconfig)},
            cwd=self.folder,
        )
        output, errors = await asyncio.wait_for(process.communicate(), SECONDS)
        assert process.returncode is not None
        return process.returncode, output.decode(), errors.decode()

    async def succeeds(self, *arguments: str) -> str:
        """Run helm, which has to succeed; return what it prints."""
        code, output = await self(*arguments)
        assert code == 0, f"helm {' '.join(arguments)}: {output}"
        return output

    async def json(self, *arguments: str) -> Any:
        """Run helm, which has to succeed; return the JSON that it prints beside its warnings."""
        code, output, errors = await self._run(*arguments, "--output=json")
        assert code == 0, f"helm {' '.join(arguments)}: {errors}"
        return json.loads(output)

    async def manifest(self, release: str) -> str:
        """Return the manifest of the release."""
        return await self.succeeds("get", "manifest", release)
