"""The operators of workers in random histories: they end with what the specs and the schedulers want, and are quiet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.workers.world import World, in_virtual_time

if TYPE_CHECKING:
    from ocf.testing.http_stub import HttpStub

STEPS: Final = st.one_of(
    st.tuples(st.just("declare"), st.integers(0, 4)),
    st.tuples(st.just("want"), st.integers(0, 6)),
    st.tuples(st.just("limit"), st.integers(1, 4)),
    st.tuples(st.just("edit"), st.integers(0, 4)),
    st.tuples(st.sampled_from(["delete", "hold", "lose answers"]), st.integers(0, 3)),
    st.tuples(st.sampled_from(["hang", "fail", "heal", "restart", "end run", "lose runner"]), st.just(0)),
)


async def take(world: World, processes: AsyncExitStack, step: str, number: int) -> None:
    """Let something happen."""
    assert world.stub is not None
    workers = [world.key("Deployment", name) for name in await world.names() if name.startswith("main-")]
    match step:
        case "declare":
            await world.regroup(a=number)
        case "want":
            world.schedulers.wanted["main"] = number
        case "limit":
            await world.edit(world.key("GroupScaler", "main-b"), {"spec": {"maximum": number}})
        case "edit":
            await world.scale(number, "main-a")
            await world.scale(number, "main-b")
        case "delete" if workers:
            await world.cluster.delete(workers[number % len(workers)])
        case "hold" if workers:
            await world.edit(workers[number % len(workers)], {"metadata": {"finalizers": ["example.com/held"]}})
        case "restart":
            await processes.aclose()
            await processes.enter_async_context(world.process())
        case _ if step in FAULTS:
            FAULTS[step](world.stub, world.host(), number)
        case _ if step in ENDS and "night-runner" in await world.names("Pod"):
            await ENDS[step](world)


async def end(world: World) -> None:
    annotations = {"ocf.dev/finish-after": "1s", "ocf.dev/exit-code": "0"}
    await world.annotate(world.key("Pod", "night-runner"), annotations)


async def lose(world: World) -> None:
    await world.cluster.delete(world.key("Pod", "night-runner"))


FAULTS: Final[dict[str, Callable[[HttpStub, str, int], None]]] = {
    "lose answers": lambda stub, host, number: stub.lose_answers(host, number + 1),
    "hang": lambda stub, host, _: stub.hang(host),
    "fail": lambda stub, host, _: stub.fail(host, 500),
    "heal": lambda stub, host, _: stub.heal(host),
}
ENDS: Final = {"end run": end, "lose runner": lose}


async def release(world: World) -> None:
    for name in await world.names():
        await world.edit(world.key("Deployment", name), {"metadata": {"finalizers": None}})


@settings(max_examples=4)
@given(st.lists(st.tuples(STEPS, st.sampled_from([0.3, 3, 20, 70, 200])), min_size=2, max_size=8))
def test_whatever_happens_there_are_as_many_workers_as_wanted_at_the_end(
    steps: list[tuple[tuple[str, int], float]],
) -> None:
    async def scene(world: World) -> None:
        assert world.stub is not None
        async with AsyncExitStack() as processes:
            await processes.enter_async_context(world.process())
            world.schedulers.wanted["main"] = 2
            await world.cluster_of(a=2, b=1)
            await world.scaler_of("main-b", maximum=3, minimum=1)
            await world.run()
            await asyncio.sleep(30)
            for (step, number), seconds in steps:
                await take(world, processes, step, number)
                await asyncio.sleep(seconds)
            world.stub.heal(world.host())
            await release(world)
            await asyncio.sleep(300)
            # Counts that a user has set in the groups are set back with those that are declared.
            spec = (await world.found(world.key("ComputeCluster", "main")))["spec"]
            limit = (await world.found(world.key("GroupScaler", "main-b")))["spec"]["maximum"]
            wanted = {"main-a": spec["groups"]["a"], "main-b": min(max(1, world.schedulers.wanted["main"]), limit)}
            names = await world.names()
            for group, count in wanted.items():
                mine = [name for name in names if name.startswith(group)]
                assert (len(mine), {*mine}) == (count, {*(await world.status("WorkerGroup", group))["workers"]})
                assert await world.reasons("WorkerGroup", group) == {"Ready": "Healthy"}
            assert not {*world.schedulers.retired} & {*names}
            has_ended = any(step in ENDS for (step, _), _ in steps)
            assert ("result" in await world.status("ComputeRun", "night")) == has_ended
            assert [name for name in names if name.startswith("night")] == (
                [] if has_ended else ["night-a-0", "night-a-1"]
            )
            await world.settle()

    in_virtual_time(scene, operated=False)
