"""Command `ocf validate`: as a process, as users and hooks start it, and over many files.

A process is measured in wall-clock time, beside a Python process that does nothing. The files are read and checked in
this process; they contain a thousand autoscalers, which is enough to estimate ten thousand.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks import hpa
from benchmarks.figures import Case, Suite
from benchmarks.timer import Measure, each_call
from ocf.autoscaling import FeatureGates
from ocf.cli.manifest_files import read_documents
from ocf.cli.validation_report import check
from ocf.objects import dump_document

__all__ = ["suite"]

_PROCESS_LIMIT: Final = 300_000_000
_THOUSAND_LIMIT: Final = 1_000_000_000
_FILES: Final = 10
_PER_FILE: Final = 100
_COMMAND: Final = "from ocf.cli import main; main()"


@contextmanager
def suite() -> Iterator[Suite]:
    """Give the cases, and the files that they read for as long."""
    text = dump_document(hpa.TYPICAL)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(_FILES):
            Path(folder, f"{number}.yaml").write_text("---\n".join([text] * _PER_FILE), encoding="utf-8")
        one = Path(folder, "one.yml")
        one.write_text(text, encoding="utf-8")
        files = [str(path) for path in sorted(Path(folder).glob("*.yaml"))]
        assert _judge(files) == _FILES * _PER_FILE
        yield [
            Case(name="command.bare", what="python -c pass", measure=_running("pass")),
            Case(
                name="command.validate",
                what="`ocf validate` of one file, the whole process",
                measure=_running(_COMMAND, "validate", str(one)),
                limit=_PROCESS_LIMIT,
                against="command.bare",
            ),
            Case(
                name="command.thousand",
                what="reading and judging 1 000 HPAs from ten files",
                measure=each_call(lambda: _judge(files)),
                limit=_THOUSAND_LIMIT,
            ),
        ]


def _judge(files: list[str]) -> int:
    gates = FeatureGates()
    return sum(check(document, gates=gates).valid for document in read_documents(files))


def _running(code: str, *arguments: str) -> Measure:
    command = [sys.executable, "-c", code, *arguments]
    return each_call(lambda: subprocess.run(command, check=True), clock=time.perf_counter_ns)  # noqa: S603 (our own)
