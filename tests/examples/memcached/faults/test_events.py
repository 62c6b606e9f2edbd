"""Watch events are lost, duplicated, reordered, or compacted."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

from examples.memcached.samples import AUTOSCALED
from ocf.cluster import Cluster, Verb, WatchEvent, WatchOptions
from ocf.errors import ServerError
from ocf.testing import FaultyCluster, InterceptingCluster, faults, run_in_virtual_time
from tests.examples.memcached.faults.env import HPA, Ended, OperatorEnv, Step, cache_timing, new_env
from tests.requirements import Sampled

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager

# A lost event is repaired by the next list. Two lists fit between two steps.
RELIST: Final = 60.0
PAUSE: Final = 130.0
LOSING: Final[Mapping[str, Step]] = {
    "create": lambda env: env.create(AUTOSCALED),
    "edit by hand": lambda env: env.meddle(HPA, spec={"maxReplicas": 99}),
    "delete by hand": lambda env: env.remove("Service"),
    "change": lambda env: env.change(image="memcached:1.6.30"),
}


def end_without(*lost: int) -> tuple[Any, int]:
    """Return the final state of a run in which some events were lost, and the number of events."""

    async def run() -> tuple[Any, int]:
        env = await new_env()
        losing = FaultyCluster(env.gateway, [faults.dropped_event(first=number) for number in lost])
        counting = Counting(losing)
        async with env.operating(counting, {"cache_timing": cache_timing(idle_timeout=RELIST, relist_every=RELIST)}):
            await env.live(LOSING, PAUSE)
        losing.assert_all_injected()
        return await env.ended(), counting.events

    return run_in_virtual_time(run())


class Counting(InterceptingCluster):
    """Counts the watch events."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.events = 0

    async def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        async for event in super().watch(api_version, kind, options):
            self.events += 1
            yield event


@pytest.mark.promise("events", runs="each of 16 events lost, and each pair of them (in `make test` one pair in ten)")
@pytest.mark.matrix
def test_one_or_two_lost_events_do_not_change_the_final_state(sampled: Sampled) -> None:
    """A single event of a run, or a pair, is lost; the next event or the next list repairs it."""
    wanted, events = end_without()
    singles = [(number,) for number in range(1, events + 1)]
    pairs = list(itertools.combinations(range(1, events + 1), 2))
    assert 100 <= len(pairs) <= 500
    for lost in (*singles, *sampled(pairs)):
        found, _ = end_without(*lost)
        found.assert_as(wanted)


class Scrambled(InterceptingCluster):
    """A cluster whose watch events are delayed, reordered and duplicated.

    Args:
        cluster: The cluster.
        rng: Chooses the delay and the number of copies of each event.

    Attributes:
        repeated: The number of events that were duplicated.
        overtaken: The number of events that arrived after a later one.
    """

    def __init__(self, cluster: Cluster, rng: random.Random) -> None:
        super().__init__(cluster)
        self._rng = rng
        self.repeated = 0
        self.overtaken = 0

    async def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        delayed: asyncio.Queue[WatchEvent | None] = asyncio.Queue()
        reading = asyncio.create_task(self._read(super().watch(api_version, kind, options), delayed))
        try:
            while event := await delayed.get():
                yield event
            await reading
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read(self, events: AsyncGenerator[WatchEvent, None], delayed: asyncio.Queue[WatchEvent | None]) -> None:
        loop, last = asyncio.get_running_loop(), 0.0
        try:
            async for event in events:
                for copy in range(self._rng.choice((1, 1, 2, 3))):
                    at = loop.time() + self._rng.choice((0, 0, 0.01, 0.5, 3))
                    self.repeated += copy > 0
                    self.overtaken += at < last
                    last = max(last, at)
                    loop.call_at(at, delayed.put_nowait, event)
        finally:
            delayed.put_nowait(None)


async def all_at_once(env: OperatorEnv, turn: int) -> None:
    """Change, edit and delete at once, before any event has been handled."""
    await env.change(image=f"memcached:1.6.{turn}")
    await env.meddle(HPA, spec={"maxReplicas": 50 + turn})
    await env.remove("Service")


Fault: TypeAlias = "Callable[[OperatorEnv], AbstractAsyncContextManager[None]]"
"""A fault injected around an act."""

ACTS: Final[tuple[Callable[[OperatorEnv, int], Awaitable[object]], ...]] = (
    lambda env, turn: env.change(image=f"memcached:1.6.{turn}"),
    lambda env, turn: env.meddle(HPA, spec={"maxReplicas": 50 + turn}),
    lambda env, turn: env.scale(2 + turn % 9),
    lambda env, turn: env.remove(HPA if turn % 2 else "Service"),
    lambda env, turn: env.meddle("Service", spec={"selector": {"turn": str(turn)}}),
    all_at_once,
    lambda env, _: env.change(suspended=True),
    lambda env, _: env.change(suspended=False),
    lambda env, turn: env.change(security={"networkPolicy": {"enabled": bool(turn % 3)}}),
    lambda env, _: env.remove("Deployment"),
)


async def run_acts(
    env: OperatorEnv, acts: int, *, pause: float, through: Cluster | None = None, fault: Fault | None = None
) -> list[Ended]:
    """Return the state some time after each act; the fault is injected around every one of them."""
    found = []
    async with env.operating(through):
        await env.create(AUTOSCALED)
        await asyncio.sleep(pause)
        for turn in range(acts):
            async with fault(env) if fault is not None else nullcontext():
                await ACTS[turn % len(ACTS)](env, turn)
            await asyncio.sleep(pause)
            found.append(await env.ended())
    return found


@cache
def undisturbed_acts(acts: int) -> list[Ended]:
    async def run() -> list[Ended]:
        return await run_acts(await new_env(), acts, pause=50)

    return run_in_virtual_time(run())


@pytest.mark.promise("events", runs="a thousand random schedules (in `make test` fifty)")
@pytest.mark.matrix
def test_the_order_and_number_of_events_makes_no_difference(sampled: Sampled) -> None:
    """A thousand random schedules: twenty runs, compared after each of fifty acts."""

    async def run(seed: int) -> None:
        env = await new_env()
        scrambled = Scrambled(env.gateway, random.Random(seed))  # noqa: S311 (the same in each run)
        found = await run_acts(env, 50, pause=50, through=scrambled)
        assert min(scrambled.repeated, scrambled.overtaken) > 50
        for one, wanted in zip(found, undisturbed, strict=True):
            one.assert_as(wanted)

    undisturbed = undisturbed_acts(50)
    seeds = sampled(range(20))
    assert seeds
    for seed in seeds:
        run_in_virtual_time(run(seed))


@pytest.mark.promise("cache-lost-events", runs="fifty compactions while everything changes")
def test_compacted_versions_are_listed_again() -> None:
    """Fifty compactions while everything changes: no object is missed, and none is created or reported twice.

    A watch that keeps failing is restarted every 45 seconds, so a step may take that long.
    """

    @asynccontextmanager
    async def compaction(env: OperatorEnv) -> AsyncIterator[None]:
        assert env.gateway.cut(ServerError("connection lost")) > 0
        yield
        env.server.compact()

    async def run() -> None:
        env = await new_env()
        found = await run_acts(env, 50, pause=50, fault=compaction)
        for one, wanted in zip(found, undisturbed, strict=True):
            one.assert_as(wanted)
        assert len([one for one in env.gateway.requests if one.verb is Verb.LIST]) >= 2 * 50

    undisturbed = undisturbed_acts(50)
    run_in_virtual_time(run())
