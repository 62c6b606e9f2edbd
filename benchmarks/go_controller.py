"""The real HPA controller as a yardstick: its own package, in a process of its own, on the same snapshot.

`scripts/oracles/hpa/build.sh` builds the program from the Go module of Kubernetes. It runs `reconcileKey` of the real
`HorizontalController` with its informers, clients and clock replaced by values, so that neither side reads a cluster.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.timer import Measure, on_one_core
from ocf.schema.kubernetes import KUBERNETES_VERSION
from ocf.testing.envtest.versions import cache_folder

__all__ = ["go_controller"]

_PROGRAM: Final = f"hpa-oracle-{KUBERNETES_VERSION}"


@contextmanager
def go_controller(case: Mapping[str, Any], *, environ: Mapping[str, str] = os.environ) -> Iterator[Measure | None]:
    """Run the controller on a case that has converged.

    Args:
        case: The snapshot, history and settings, in the form that the program reads.
        environ: The environment variables; they say where the cache is.

    Yields:
        Makes so many reconciles and returns the CPU time that all of them took together, in nanoseconds; None where the
        program was not built, which is said on stderr.
    """
    program = program_path(environ)
    if not program.exists():
        print(f"deciding.go is left out: scripts/oracles/hpa/build.sh builds {program}", file=sys.stderr)
        yield None
        return
    with on_one_core():
        process = subprocess.Popen(  # noqa: S603 (our own program)
            [program, "benchmark"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked, answered = process.stdin, process.stdout
        asked.write(json.dumps(case) + "\n")

        def measure(calls: int) -> int:
            asked.write(f"{calls}\n")
            asked.flush()
            return int(answered.readline())

        yield measure


def program_path(environ: Mapping[str, str]) -> Path:
    """Return where the program is if it was built."""
    return cache_folder(environ).parent / _PROGRAM
