"""Scalers in random histories: they end with what the triggers ask for, quiet, and no target ever has two HPAs."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.scaler.world import MAIN, WEB, World, in_virtual_time, queue

SECOND: Final = MAIN._replace(name="second")
STEPS: Final = st.one_of(
    st.tuples(st.just("mail"), st.sampled_from([0, 5, 15, 45])),
    st.tuples(st.just("fail"), st.integers(0, 2)),
    st.tuples(st.just("refuse"), st.integers(0, 1)),
    st.tuples(st.just("name"), st.integers(0, 2)),
    st.tuples(st.just("suspended"), st.integers(0, 1)),
    st.tuples(st.just("minReplicas"), st.integers(0, 2)),
    st.tuples(st.just("replicas"), st.integers(0, 6)),
    st.tuples(st.just("second"), st.integers(0, 1)),
    st.tuples(st.just("restart"), st.just(0)),
)


async def take(world: World, step: str, number: int) -> None:
    """Let something happen."""
    assert world.stub is not None
    match step:
        case "mail":
            world.amounts["mail"] = number
        case "fail":
            (world.stub.heal, world.stub.hang, partial(world.stub.fail, status=503))[number]("queues")
        case "refuse":
            world.refused.clear() if number else world.refused.update({"HorizontalPodAutoscaler", "Deployment"})
        case "name":
            await world.change(autoscaler=["main", "other", "third"][number])
        case "replicas":
            await world.edit(WEB, {"spec": {"replicas": number}})
        case "second" if number and not await world.found(SECOND):
            await world.scaler("second", queue("news"))
        case "second":
            if await world.found(SECOND):
                await world.cluster.delete(SECOND)
        case _:
            await world.edit(MAIN, {"spec": {step: bool(number) if step == "suspended" else number}})


@settings(max_examples=6)
@given(st.lists(st.tuples(STEPS, st.sampled_from([0.3, 3, 20, 70, 400])), min_size=2, max_size=8))
def test_whatever_happens_the_target_has_what_its_triggers_ask_for_at_the_end(
    steps: list[tuple[tuple[str, int], float]],
) -> None:
    async def scene(world: World) -> None:
        assert world.stub is not None
        world.amounts["news"] = 45
        async with AsyncExitStack() as process:
            await process.enter_async_context(world.operating(world.operator()))
            await world.scaler(fallback={"afterSeconds": 90, "replicas": 2})
            for (step, number), seconds in steps:
                if step == "restart":
                    await process.aclose()
                    await process.enter_async_context(world.operating(world.operator()))
                else:
                    await take(world, step, number)
                await asyncio.sleep(seconds)
            # Faults end, and the last state has time.
            world.stub.heal("queues")
            world.refused.clear()
            await world.change(suspended=False)
            await asyncio.sleep(1800)
            wanted = (await world.cluster.get(MAIN))["spec"]
            asked = min(4, -(-int(world.amounts["mail"]) // 10))
            assert await world.replicas() == max(asked, wanted.get("minReplicas", 0))
            assert await world.autoscalers() == [wanted.get("autoscaler", "main")]
            assert (await world.conditions())["Ready"] == ("True", "Healthy")
            if await world.found(SECOND):
                assert (await world.conditions(SECOND))["Ready"] == ("False", "TargetTaken")
            await world.settle()

    in_virtual_time(scene, operating=False)
