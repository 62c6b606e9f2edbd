"""Decisions about node groups beside those of Karpenter, on the recorded workloads.

`python -m scripts.oracles.karpenter.build` builds the program that decides as Karpenter does, in a process of its own.
Both hold the cluster in memory. What either does between two decisions is not measured: the API server of the program
is a fake one.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import Case, Suite
from benchmarks.timer import Measure, once
from ocf.nodegroups.decide import Direction
from scripts.oracles.karpenter.build import program_path
from tests.nodegroups.karpenter.replay import Cluster, rows
from tests.nodegroups.karpenter.workloads import MAKERS, make

__all__ = ["small_suite", "suite"]

_SECOND: Final = 1_000_000_000
_ALL: Final = len(MAKERS)


@contextmanager
def _suite(number: int, *, environ: Mapping[str, str] = os.environ) -> Iterator[Suite]:
    names = list(islice(MAKERS, number))
    program = program_path(environ)
    others: list[Case] = []
    if program.exists():
        answers = cache(partial(_answers, program, names))
        others = [
            Case(
                name=f"karpenter.{phase}.go",
                what=f"the same as Karpenter decides{after}",
                measure=once(_seconds(answers, phase)),
            )
            for phase, after in (("up", ""), ("down", ", until its disruption finds nothing"))
        ]
    else:
        print(
            f"karpenter.*.go is left out: python -m scripts.oracles.karpenter.build builds {program}", file=sys.stderr
        )
    yield [
        Case(
            name="karpenter.up",
            what=f"deciding on the cheapest nodes for the pods of {number} workloads, once",
            measure=once(lambda _: sum(_grow(name) for name in names)),
            against="karpenter.up.go" if others else "",
        ),
        Case(
            name="karpenter.down",
            what=f"consolidating the nodes of {number} workloads after a fall of the load, once",
            measure=once(lambda _: sum(_shrink(name) for name in names)),
            against="karpenter.down.go" if others else "",
        ),
        *others,
    ]


def _grow(name: str) -> int:
    cluster = Cluster.of(rows()[name], rows()[name]["nodes"], kept=False)
    start = time.process_time_ns()
    cluster.decide()
    return time.process_time_ns() - start


def _shrink(name: str) -> int:
    """Return what all decisions take until nothing is found any more."""
    cluster = Cluster.of(rows()[name], rows()[name]["up"]["nodes"], kept=True)
    spent = 0
    while True:
        start = time.process_time_ns()
        decision = cluster.decide()
        spent += time.process_time_ns() - start
        if decision.direction is Direction.NONE:
            return spent
        cluster.carry_out(decision)


def _answers(program: Path, names: Sequence[str]) -> list[dict[str, Any]]:
    asked = "".join(json.dumps(make(name)) + "\n" for name in names)
    done = subprocess.run([program, "1"], input=asked, capture_output=True, text=True, check=True)  # noqa: S603 (our own)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _seconds(answers: Callable[[], list[dict[str, Any]]], phase: str) -> Measure:
    return lambda _: round(sum(each[phase]["seconds"] for each in answers()) * _SECOND)


suite = partial(_suite, _ALL)
"""Give the cases."""
small_suite = partial(_suite, 2)
"""Give them for few workloads, for a run that only shows that everything works."""
