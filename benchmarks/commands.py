"""Command `ocf validate`: as a process, as users and hooks start it, and over many files.

A process is measured in wall-clock time, with byte code on disk as after an installation, beside a Python process that
does nothing, and beside `kubectl apply --dry-run=server` on a real API server, if there is one. The files are read and
checked in this process; they contain a thousand autoscalers, which is enough to estimate ten thousand.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Final

from benchmarks import hpa
from benchmarks.figures import Case, Suite
from benchmarks.timer import Measure, each_call
from ocf.autoscaling import FeatureGates
from ocf.cli.manifest_files import read_documents
from ocf.cli.validate.report import check
from ocf.objects import dump_document
from ocf.testing.envtest import ControlPlane
from ocf.testing.envtest.binaries import Program, find_programs

__all__ = ["small_suite", "suite"]

_PROCESS_LIMIT: Final = 300_000_000
_SHARE_OF_KUBECTL: Final = 1.0
_THOUSAND_LIMIT: Final = 1_000_000_000
_FILES: Final = 10
_PER_FILE: Final = 100
_SMALL: Final = 2
_COMMAND: Final = "from ocf.cli import main; main()"


@contextmanager
def _suite(per_file: int, *, real: bool) -> Iterator[Suite]:
    text = dump_document(hpa.TYPICAL)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        for number in range(_FILES):
            Path(folder, f"{number}.yaml").write_text("---\n".join([text] * per_file), encoding="utf-8")
        one = Path(folder, "one.yml")
        one.write_text(text, encoding="utf-8")
        files = [str(path) for path in sorted(Path(folder).glob("*.yaml"))]
        assert _judge(files) == _FILES * per_file
        kubectl = list(_kubectl(stack, str(one))) if real else []
        yield [
            *kubectl,
            Case(name="command.bare", what="python -c pass", measure=_running("pass")),
            Case(
                name="command.validate",
                what="`ocf validate` of one file, the whole process",
                measure=_running(_COMMAND, "validate", str(one)),
                limit=_PROCESS_LIMIT,
                against="command.kubectl" if kubectl else "command.bare",
                share=_SHARE_OF_KUBECTL if kubectl else None,
            ),
            Case(
                name="command.thousand",
                what=f"reading and judging {_FILES * per_file:,} HPAs from ten files".replace(",", " "),
                measure=each_call(lambda: _judge(files)),
                limit=_THOUSAND_LIMIT,
            ),
        ]


suite = partial(_suite, _PER_FILE, real=True)
"""Give the cases, and the files that they read for as long."""
small_suite = partial(_suite, _SMALL, real=False)
"""Give them over small files, for a run that only shows that everything works."""


def _kubectl(stack: ExitStack, file: str) -> Iterator[Case]:
    """Give the case of kubectl, if the programs of a control plane are there."""
    programs = find_programs()
    if programs is None:
        print("no figures of kubectl: `make envtest` builds the programs of a control plane", file=sys.stderr)
        return
    program = str(programs.path(Program.KUBECTL))

    @cache
    def started() -> list[str]:
        """Start the server when its figure is wanted."""
        kubectl = [program, "--kubeconfig", str(stack.enter_context(ControlPlane()).kubeconfig)]
        subprocess.run([*kubectl, "create", "namespace", "shop"], check=True, capture_output=True)  # noqa: S603 (ours)
        return kubectl

    yield Case(
        name="command.kubectl",
        what="`kubectl apply --dry-run=server` of one file, the whole process",
        measure=_process(lambda: [*started(), "apply", "--dry-run=server", "--filename", file]),
    )


def _judge(files: list[str]) -> int:
    gates = FeatureGates()
    return sum(check(document, gates=gates).valid for document in read_documents(files))


def _running(code: str, *arguments: str) -> Measure:
    return _process(lambda: [sys.executable, "-c", code, *arguments])


def _process(command: Callable[[], list[str]]) -> Measure:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def run() -> object:
        return subprocess.run(command(), check=True, capture_output=True, env=environment)  # noqa: S603 (our commands)

    return each_call(run, clock=time.perf_counter_ns)
