"""Imports in new processes: the start-up cost of a command.

Every sample is a new interpreter, in turns with bare ones that import nothing; the figure is the difference. Byte code
is already on disk, as for every start but the first.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.figures import Case, Count, Suite
from benchmarks.timer import Measure, each_call

__all__ = ["suite"]

_LIMIT: Final = 50_000_000
_BARE: Final = "import.bare"
_MODELS_LOADED: Final = "import sys, ocf; print(sum(name.partition('.')[0] == 'kubernetes' for name in sys.modules))"


@contextmanager
def suite() -> Iterator[Suite]:
    """Give the cases."""
    yield [
        Case(name=_BARE, what="python -c pass", measure=_running("pass")),
        _importing("ocf", limit=_LIMIT),
        _importing("ocf.component"),
        _importing("ocf.primitives.hpa"),
        _importing("ocf_server"),
        _importing("kubernetes.client"),
        Count(
            name="import.ocf.models",
            what="modules of the Kubernetes client that `import ocf` loads",
            value=int(_python(_MODELS_LOADED)),
            limit=0,
        ),
    ]


def _importing(module: str, limit: float | None = None) -> Case:
    return Case(
        name=f"import.{module}",
        what=f"import {module}, beyond bare Python",
        measure=_running(f"import {module}"),
        limit=limit,
        against=_BARE,
        beyond=True,
    )


def _running(code: str) -> Measure:
    # By the wall: reading files is part of an import.
    return each_call(lambda: _python(code), clock=time.perf_counter_ns)


def _python(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603 (our own code)
