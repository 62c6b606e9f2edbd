"""Scalers in virtual time: up at once, down after a while, and on with whatever fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from ocf.cluster import InterceptingCluster, Request, Verb
from ocf.errors import ServerError
from tests.operators.workers.world import World, in_virtual_time


class Refusing(InterceptingCluster):
    """A cluster that refuses the number of workers of each group for a while."""

    refuses = False

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        if self.refuses and request.kind == "WorkerGroup" and request.verb is Verb.APPLY:
            raise ServerError("not now", code=503)
        return await send()


async def replicas(world: World) -> int | None:
    found: int | None = (await world.found(world.key("WorkerGroup", "main-a")))["spec"].get("replicas")
    return found


async def scaled(world: World, wanted: int, workers: int = 1, **spec: int) -> None:
    """Create a cluster and a scaler, and let them come to rest."""
    world.schedulers.wanted["main"] = wanted
    await world.cluster_of(a=workers)
    await asyncio.sleep(20)
    await world.scaler_of("main-a", **spec)
    await asyncio.sleep(20)


def test_more_workers_come_with_the_next_question_and_fewer_after_the_delay() -> None:
    async def scene(world: World) -> None:
        await scaled(world, 1)
        world.schedulers.wanted["main"] = 4
        await asyncio.sleep(11)
        assert await replicas(world) == 4
        world.schedulers.wanted["main"] = 2
        await asyncio.sleep(55)
        assert await replicas(world) == 4
        assert (await world.reasons("GroupScaler", "main-a"))["ScalingDown"] == "Waiting"
        await asyncio.sleep(16)
        assert await replicas(world) == 2
        assert "ScalingDown" not in await world.conditions("GroupScaler", "main-a")
        await asyncio.sleep(30)
        assert len(await world.names()) == 2
        assert len(world.schedulers.questions) == 2

    in_virtual_time(scene)


def test_a_number_that_is_lower_for_a_moment_ends_no_worker() -> None:
    async def scene(world: World) -> None:
        await scaled(world, 4)
        for _ in range(5):
            world.schedulers.wanted["main"] = 0
            await asyncio.sleep(50)
            world.schedulers.wanted["main"] = 4
            await asyncio.sleep(11)
            assert await replicas(world) == 4
        assert not world.schedulers.questions

    in_virtual_time(scene)


@pytest.mark.parametrize(
    ("wanted", "minimum", "maximum", "then"),
    [
        pytest.param(0, 2, 5, 2, id="fewer than allowed"),
        pytest.param(3, 2, 5, 3, id="allowed"),
        pytest.param(50, 2, 5, 5, id="more than allowed"),
        pytest.param(0, 0, 5, 0, id="none"),
    ],
)
def test_the_number_stays_between_its_limits(wanted: int, minimum: int, maximum: int, then: int) -> None:
    async def scene(world: World) -> None:
        await scaled(world, wanted, minimum=minimum, maximum=maximum)
        await asyncio.sleep(120)
        assert await replicas(world) == then
        assert len(await world.names()) == then

    in_virtual_time(scene)


def test_other_limits_hold_at_once_also_while_the_scheduler_gives_no_answer() -> None:
    async def scene(world: World) -> None:
        assert world.stub is not None
        await scaled(world, 6)
        world.stub.hang(world.host())
        await asyncio.sleep(30)
        assert await replicas(world) == 6
        condition = (await world.conditions("GroupScaler", "main-a"))["SchedulerAsked"]
        assert (condition["status"], condition["reason"]) == ("False", "NoAnswer")
        assert condition["message"] == "http://main-scheduler.town/desired: no answer within 5 s"
        await world.edit(world.key("GroupScaler", "main-a"), {"spec": {"maximum": 3}})
        await asyncio.sleep(15)
        assert await replicas(world) == 3
        await world.edit(world.key("GroupScaler", "main-a"), {"spec": {"maximum": 9, "minimum": 5}})
        await asyncio.sleep(15)
        assert await replicas(world) == 5
        world.stub.heal(world.host())
        await asyncio.sleep(20)
        assert await replicas(world) == 6
        assert (await world.reasons("GroupScaler", "main-a"))["SchedulerAsked"] == "Answered"

    in_virtual_time(scene)


@pytest.mark.parametrize("answer", ["5", -1, 2.5, True, {"workers": 3}, []], ids=str)
def test_an_answer_that_is_no_number_changes_nothing_and_is_shown(answer: Any) -> None:
    async def scene(world: World) -> None:
        await scaled(world, 4)
        world.schedulers.answer = answer
        await asyncio.sleep(120)
        assert await replicas(world) == 4
        condition = (await world.conditions("GroupScaler", "main-a"))["SchedulerAsked"]
        assert condition["status"] == "False"
        assert "a number from 0 on was expected" in condition["message"]

    in_virtual_time(scene)


def test_the_period_goes_on_while_the_component_fails() -> None:
    async def scene(world: World) -> None:
        world.account = account = Refusing(world.cluster)
        async with world.process():
            await scaled(world, 1, periodSeconds=30)
            world.schedulers.wanted["main"], account.refuses = 7, True
            await asyncio.sleep(40)
            polls = world.schedulers.polls["main"]
            polls.clear()
            await asyncio.sleep(3600)
            assert (await world.conditions("GroupScaler", "main-a"))["Ready"]["status"] == "False"
            assert await replicas(world) == 1
            assert len(polls) >= 119
            assert max(later - earlier for earlier, later in pairwise(polls)) <= 31
            account.refuses = False
            await asyncio.sleep(31)
            assert await replicas(world) == 7

    in_virtual_time(scene, operated=False)


def test_a_group_keeps_its_workers_when_its_scaler_goes_until_a_user_changes_that() -> None:
    async def scene(world: World) -> None:
        await world.cluster_of()
        group = world.key("WorkerGroup", "main-a")
        await world.create(group, spec={"cluster": "main", "image": "w:1", "replicas": 1})
        await asyncio.sleep(10)
        world.schedulers.wanted["main"] = 4
        await world.scaler_of()
        await asyncio.sleep(60)
        await world.cluster.delete(world.key("GroupScaler", "main-a"))
        await asyncio.sleep(60)
        assert (await replicas(world), len(await world.names())) == (None, 4)
        assert not world.schedulers.questions
        await world.scale(3)
        await asyncio.sleep(30)
        assert len(await world.names()) == 3

    in_virtual_time(scene)


def test_a_cluster_sets_the_number_of_a_group_unless_that_has_a_scaler() -> None:
    async def scene(world: World) -> None:
        await scaled(world, 4, workers=2)
        await world.regroup(a=1)
        await asyncio.sleep(120)
        assert await replicas(world) == 4
        await world.cluster.delete(world.key("GroupScaler", "main-a"))
        await asyncio.sleep(60)
        assert await replicas(world) == 1

    in_virtual_time(scene)


def test_a_scaler_that_comes_first_waits_for_its_group() -> None:
    async def scene(world: World) -> None:
        world.schedulers.wanted["main"] = 3
        await world.scaler_of()
        await asyncio.sleep(60)
        assert await world.reasons("GroupScaler", "main-a") == {"Ready": "Blocked"}
        await world.cluster_of(a=1)
        await asyncio.sleep(60)
        assert await replicas(world) == 3

    in_virtual_time(scene)


def test_a_number_that_a_user_sets_in_a_scaled_group_is_set_back() -> None:
    async def scene(world: World) -> None:
        await scaled(world, 4)
        await world.scale(9)
        await asyncio.sleep(60)
        assert await replicas(world) == 4

    in_virtual_time(scene)


def test_schedulers_that_hang_delay_no_other_scaler() -> None:
    async def scene(world: World) -> None:
        assert world.stub is not None
        hanging, healthy = [[f"{kind}-{number}" for number in range(20)] for kind in ("hanging", "healthy")]
        for name in (*hanging, *healthy):
            spec = {"cluster": name, "image": "w:1", "replicas": 0}
            await world.create(world.key("WorkerGroup", f"{name}-a"), spec=spec)
            await world.scaler_of(f"{name}-a")
        for name in hanging:
            world.stub.hang(world.host(name))
        await asyncio.sleep(60)
        world.schedulers.forget()
        await asyncio.sleep(300)
        for name in healthy:
            polls = world.schedulers.polls[name]
            assert len(polls) >= 28
            assert max(later - earlier for earlier, later in pairwise(polls)) < 12
        for name in hanging:
            condition = (await world.conditions("GroupScaler", f"{name}-a"))["SchedulerAsked"]
            assert condition["message"].endswith("no answer within 5 s")

    in_virtual_time(scene)
