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
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks import hpa
from benchmarks.figures import Case, Suite
from benchmarks.timer import Measure, each_call
from ocf.autoscaling import FeatureGates
from ocf.cli.manifest_files import read_documents
from ocf.cli.validation_report import check
from ocf.objects import dump_document

__all__ = ["small_suite", "suite"]

_PROCESS_LIMIT: Final = 300_000_000
_THOUSAND_LIMIT: Final = 1_000_000_000
_FILES: Final = 10
_PER_FILE: Final = 100
_SMALL: Final = 2
_COMMAND: Final = "from ocf.cli import main; main()"


@contextmanager
def _suite(per_file: int) -> Iterator[Suite]:
    text = dump_document(hpa.TYPICAL)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(_FILES):
            Path(folder, f"{number}.yaml").write_text("---\n".join([text] * per_file), encoding="utf-8")
        one = Path(folder, "one.yml")
        one.write_text(text, encoding="utf-8")
        files = [str(path) for path in sorted(Path(folder).glob("*.yaml"))]
        assert _judge(files) == _FILES * per_file
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
                what=f"reading and judging {_FILES * per_file:,} HPAs from ten files".replace(",", " "),
                measure=each_call(lambda: _judge(files)),
                limit=_THOUSAND_LIMIT,
            ),
        ]


suite = partial(_suite, _PER_FILE)
"""Give the cases, and the files that they read for as long."""
small_suite = partial(_suite, _SMALL)
"""Give them over small files, for a run that only shows that everything works."""


def _judge(files: list[str]) -> int:
    gates = FeatureGates()
    return sum(check(document, gates=gates).valid for document in read_documents(files))


def _running(code: str, *arguments: str) -> Measure:
    command = [sys.executable, "-c", code, *arguments]
    return each_call(lambda: subprocess.run(command, check=True), clock=time.perf_counter_ns)  # noqa: S603 (our own)
