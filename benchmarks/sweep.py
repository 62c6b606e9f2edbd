"""A sweep of settings over a load, as a program of its own: `python -m benchmarks.sweep SETTINGS SECONDS`.

It runs `tune` with the grid in two processes, and prints what all processes took as JSON: CPU seconds, and the peak
memory of the main process and of the largest worker.
"""

import json
import resource
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import Final, NamedTuple

__all__ = ["Swept", "swept"]

_PROCESSES: Final = 2
_TARGETS: Final = 10
_KIB: Final = 1024


class Swept(NamedTuple):
    """What a sweep took.

    Args:
        nanoseconds: CPU time of all processes, shared by two processors.
        peak: Bytes of the main process and of the largest worker, each at its peak.
    """

    nanoseconds: int
    peak: int


@cache
def swept(settings: int, seconds: int) -> Swept:
    """Run a sweep.

    Args:
        settings: Number of settings, a multiple of ten.
        seconds: Length of the load.
    """
    command = [sys.executable, "-m", "benchmarks.sweep", str(settings), str(seconds)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    return Swept(**json.loads(ran.stdout))


def main() -> None:
    """Run the sweep of the arguments, and print what it took."""
    from benchmarks.simulation import inputs
    from ocf.simulation.tuning import LoadTrace, Method, Problem, Target, parse_objectives, tune
    from ocf.simulation.tuning.samplers import SamplerName
    from ocf.simulation.tuning.settings import range_setting

    settings, seconds = map(int, sys.argv[1:])
    scenario, load = inputs(seconds, 1)
    problem = Problem(
        traces=(LoadTrace(name="day", scenario=scenario, load=load),),
        settings=(
            range_setting("spec.metrics[0].resource.target.averageUtilization", 50, 50 + 2 * (_TARGETS - 1), 2),
            range_setting("spec.minReplicas", 1, settings // _TARGETS),
        ),
    )
    method = Method(sampler=SamplerName.GRID, holdout=0)
    with ProcessPoolExecutor(_PROCESSES, mp_context=get_context("spawn")) as executor:
        found = tune(problem, Target(objectives=parse_objectives([])), method, executor=executor)
    assert found.evaluated >= settings
    own, children = (resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    taken = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    peak = (own.ru_maxrss + children.ru_maxrss) * _KIB
    print(json.dumps(Swept(int(taken / _PROCESSES * 1e9), peak)._asdict()))


if __name__ == "__main__":
    main()
