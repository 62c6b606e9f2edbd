"""The three operators as processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from examples.comparison.ocf_operator.model import Site
from ocf.objects import Manifest, load_document
from tests.clients.support import go_program

__all__ = ["PROGRAMS", "Program", "running"]

CHECKOUT: Final = Path(__file__).parents[3]
EXAMPLES: Final = CHECKOUT / "examples/comparison"


@dataclass(frozen=True, slots=True)
class Program:
    """An operator of sites.

    Args:
        name: The name of its folder.
        definition: The file with the definition of its kind; None for the one that is made from the model.
        arguments: The arguments of Python; none for the program in Go.
    """

    name: str
    definition: str | None
    arguments: tuple[str, ...]

    def load_definition(self) -> Manifest:
        if self.definition is None:
            return Site.definition()
        return load_document((EXAMPLES / self.name / self.definition).read_text(encoding="utf-8"))

    def command(self) -> list[str | Path]:
        """Return the command that runs it; skip the test if it is not built."""
        return [sys.executable, *self.arguments] if self.arguments else [go_program("site-operator")]


_OCF: Final = "from ocf.cli import main; main()"
_HANDLERS: Final = "examples.comparison.kopf_operator.handlers"
PROGRAMS: Final = (
    Program("ocf_operator", None, ("-c", _OCF, "run", "examples.comparison.ocf_operator")),
    Program("kopf_operator", "crd.yaml", ("-m", "kopf", "run", "--standalone", "--all-namespaces", "-m", _HANDLERS)),
    Program("controller_runtime", "config/crd/go.comparison.example.com_sites.yaml", ()),
)


@asynccontextmanager
async def running(program: Program, kubeconfig: Path) -> AsyncIterator[None]:
    """Run an operator until the block ends; it must exit successfully.

    Ports are free ones: the test needs neither metrics nor probes.
    """
    given = {
        "KUBECONFIG": str(kubeconfig),
        "PYTHONPATH": str(CHECKOUT),
        "PORT": "0",
        "METRICS_ADDRESS": "0",
        "PROBE_ADDRESS": "0",
    }
    process = await asyncio.create_subprocess_exec(
        *program.command(), cwd=CHECKOUT, env={**os.environ, **given}, stderr=asyncio.subprocess.PIPE
    )
    output = asyncio.create_task(process.communicate())
    try:
        yield
    except BaseException as error:
        process.kill()
        error.add_note((await output)[1].decode()[-4000:])
        raise
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(600):
        _, errors = await output
    assert process.returncode == 0, errors.decode()
