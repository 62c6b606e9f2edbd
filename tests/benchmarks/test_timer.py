"""How a sample is taken."""

import asyncio
import gc
import os
import subprocess
import sys

import pytest

from benchmarks.timer import calls_for, each_call, each_turn, on_one_core, sample


def test_a_function_is_called_as_often_as_asked_between_two_looks_at_the_clock() -> None:
    seen: list[str] = []
    ticks = iter((100, 175))

    def clock() -> int:
        seen.append("clock")
        return next(ticks)

    assert each_call(lambda: seen.append("call"), clock=clock)(3) == 75
    assert seen == ["clock", "call", "call", "call", "clock"]


def test_a_coroutine_function_is_awaited_as_often_as_asked() -> None:
    done: list[bool] = []

    async def step() -> None:
        await asyncio.sleep(0)
        done.append(True)

    with asyncio.Runner() as runner:
        each_turn(runner, step)(3)

    assert len(done) == 3


def test_a_sample_is_made_long_enough() -> None:
    """A call of a microsecond is repeated for twenty milliseconds."""
    assert calls_for(lambda calls: calls * 1_000) == 20_000


def test_a_call_that_is_long_enough_is_made_once() -> None:
    assert calls_for(lambda calls: calls * 50_000_000) == 1


def test_a_sample_is_the_average_of_its_calls_without_the_collector() -> None:
    collecting: list[bool] = []

    def measure(calls: int) -> int:
        collecting.append(gc.isenabled())
        return calls * 7

    assert sample(measure, 10) == 7
    assert collecting == [False]
    assert gc.isenabled()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux pins processes to cores")
def test_a_process_and_what_it_starts_stay_on_one_core_meanwhile() -> None:
    before = os.sched_getaffinity(0)

    with on_one_core():
        own = os.sched_getaffinity(0)
        program = "import os; print(*os.sched_getaffinity(0))"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 (ours)

    assert own == {int(done.stdout)}
    assert own <= before == os.sched_getaffinity(0)
