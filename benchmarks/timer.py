"""Measuring small pieces of code.

This is a timer of our own, and a small one. The standard would be `pyperf`, which starts many processes and knows
about CPU isolation; what is wanted here is one table in well under a minute, from one process, so that it is looked at
often. What is kept of its habits: enough calls per sample that the clock's own cost disappears, several rounds, the
median with the spread beside it, and everything that is compared measured in turns, so that a machine that slows down
slows both.

The clock counts the CPU time of this process. What is measured here never waits for anything, so on a quiet machine
that is the time on the wall; on a busy one it is still the time that the code takes, and a limit that holds keeps
holding. Whole processes are measured by the wall (`imports`).

The garbage collector runs before each sample and is off within it, as in `timeit`: a collection walks everything the
process holds, and would charge it to whichever piece of code happens to be running.
"""

import asyncio
import gc
import itertools
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

__all__ = ["Measure", "calls_for", "each_call", "each_turn", "on_one_core", "once", "sample"]

Measure: TypeAlias = Callable[[int], int]
"""Makes so many calls, and returns the nanoseconds that all of them took together."""

# Long against the clock's own cost of less than a microsecond, short enough for many rounds.
_SAMPLE_NANOSECONDS: Final = 20_000_000


def each_call(function: Callable[[], object], *, clock: Callable[[], int] = time.process_time_ns) -> Measure:
    """Measure a function.

    Args:
        function: What is called, again and again.
        clock: Returns nanoseconds.
    """

    def measure(calls: int) -> int:
        turns = itertools.repeat(None, calls)
        start = clock()
        for _ in turns:
            function()
        return clock() - start

    return measure


def each_turn(runner: asyncio.Runner, function: Callable[[], Awaitable[object]]) -> Measure:
    """Measure a coroutine function, without what it takes to start the event loop.

    Args:
        runner: Runs it.
        function: What is called and awaited, again and again.
    """

    async def turns(calls: int) -> int:
        start = time.process_time_ns()
        for _ in range(calls):
            await function()
        return time.process_time_ns() - start

    return lambda calls: runner.run(turns(calls))


@contextmanager
def on_one_core() -> Iterator[None]:
    """Keep this process, and those that it starts meanwhile, on one core.

    Two processes that are measured in turns are compared fairly only there: two cores of a virtual machine differ by
    half, depending on what their hosts do. Where the platform cannot pin a process, nothing changes.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def once(measure: Measure) -> Measure:
    """Return a measure that makes one call in all, after the first one, which warms up: each takes seconds.

    Args:
        measure: Makes the calls.
    """
    known: list[int] = []

    def measured(calls: int) -> int:
        if len(known) < 2:
            known.append(measure(1))
        return known[-1] * calls

    return measured


def calls_for(measure: Measure) -> int:
    """Find out how many calls make a sample long enough; trying it also warms up what is measured."""
    calls = 1
    while (elapsed := measure(calls)) < _SAMPLE_NANOSECONDS // 10:
        calls *= 10
    return max(1, calls * _SAMPLE_NANOSECONDS // elapsed)


def sample(measure: Measure, calls: int, *, collect: bool = True) -> float:
    """Return the nanoseconds that one call takes, on average over a sample.

    Args:
        measure: The case.
        calls: The number of calls of the sample.
        collect: Whether garbage is collected first, so that samples are comparable.
    """
    if collect:
        gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        return measure(calls) / calls
    finally:
        if enabled:
            gc.enable()
