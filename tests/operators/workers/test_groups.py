"""Clusters and groups of workers in virtual time: who leaves is what the scheduler said, whatever fails afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import pytest

from ocf.cluster import PatchOptions, PatchType, Subresource, Verb
from ocf.objects import Manifest
from ocf.testing import FaultyCluster, OwnerEnv, VirtualClock, faults
from ocf_server import EmbeddedCluster
from tests.operators.workers.world import KINDS, World, in_virtual_time, operators, unconnected

THREE: Final = ["main-a-0", "main-a-1", "main-a-2"]
STATUS: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="user", subresource=Subresource.STATUS)


def hang(world: World) -> None:
    assert world.stub is not None
    world.stub.hang(world.host())


def fail(world: World) -> None:
    assert world.stub is not None
    world.stub.fail(world.host(), 503)


def answer_wrongly(world: World) -> None:
    world.schedulers.answer = ["nonsense"]


def heal(world: World) -> None:
    assert world.stub is not None
    world.stub.heal(world.host())
    world.schedulers.answer = None


SILENCE: Final = pytest.mark.parametrize("silence", [hang, fail, answer_wrongly])


def test_a_cluster_has_a_scheduler_and_its_groups_and_all_of_it_goes_with_it() -> None:
    async def scene(world: World) -> None:
        await world.cluster_of(a=2, b=1)
        await world.cluster_of("other", a=1)
        await asyncio.sleep(30)
        assert await world.names() == ["main-a-0", "main-a-1", "main-b-0", "other-a-0"]
        assert await world.found(world.key("Service", "main-scheduler"))
        assert await world.reasons("ComputeCluster", "main") == {"Ready": "Healthy"}
        await world.regroup(a=3, b=None, c=1)
        await asyncio.sleep(30)
        assert await world.names() == [*THREE, "main-c-0", "other-a-0"]
        await world.cluster.delete(world.key("ComputeCluster", "main"))
        await asyncio.sleep(30)
        assert await world.names() == ["other-a-0"]
        assert not await world.found(world.key("Service", "main-scheduler"))
        assert not world.schedulers.questions

    in_virtual_time(scene)


def test_a_group_shrinks_by_one_answer_for_each_worker_and_no_name_is_used_again() -> None:
    async def scene(world: World) -> None:
        await world.cluster_of(a=3)
        await asyncio.sleep(30)
        await world.regroup(a=1)
        await asyncio.sleep(30)
        assert world.schedulers.questions == [THREE, ["main-a-1", "main-a-2"]]
        assert world.schedulers.chosen == ["main-a-0", "main-a-2"]
        assert await world.names() == ["main-a-1"]
        assert world.schedulers.retired == {"main-a-0": 1, "main-a-2": 1}
        await world.regroup(a=3)
        await asyncio.sleep(30)
        assert await world.names() == ["main-a-1", "main-a-3", "main-a-4"]
        await world.regroup(a=0)
        await asyncio.sleep(30)
        assert await world.names() == []
        assert await world.reasons("WorkerGroup", "main-a") == {"Ready": "Healthy"}

    in_virtual_time(scene)


def test_nothing_is_written_at_rest_for_an_hour_nor_by_a_process_with_an_empty_memory() -> None:
    async def scene(world: World) -> None:
        async with world.process():
            await world.cluster_of(a=2)
            await world.scaler_of(minimum=2)
            await world.run()
            await asyncio.sleep(60)
            await world.settle()
            assert len(world.schedulers.polls["main"]) > 300
        async with world.process():
            await asyncio.sleep(3600)
        assert not world.written, [str(one) for one in world.written]

    in_virtual_time(scene, operated=False)


@SILENCE
def test_a_scheduler_that_gives_no_answer_is_waited_for_and_all_else_goes_on(silence: Callable[[World], None]) -> None:
    async def scene(world: World) -> None:
        await world.cluster_of(a=3)
        await asyncio.sleep(30)
        silence(world)
        await world.regroup(a=2, b=1)
        await asyncio.sleep(40)
        assert await world.names() == [*THREE, "main-b-0"]
        condition = (await world.conditions("WorkerGroup", "main-a"))["WaitingForScheduler"]
        assert (condition["status"], condition["reason"]) == ("True", "NoAnswer")
        assert "main" in condition["message"]
        # What was not asked for yet is given up without a trace.
        await world.regroup(a=3)
        await asyncio.sleep(10)
        assert await world.reasons("WorkerGroup", "main-a") == {"Ready": "Healthy"}
        await world.regroup(a=2)
        await asyncio.sleep(10)
        heal(world)
        world.schedulers.chosen.clear()
        await asyncio.sleep(20)
        assert world.schedulers.chosen == ["main-a-0"]
        assert await world.names() == ["main-a-1", "main-a-2", "main-b-0"]
        assert await world.reasons("WorkerGroup", "main-a") == {"Ready": "Healthy"}

    in_virtual_time(scene)


@SILENCE
def test_a_scheduler_that_gives_no_answer_for_too_long_is_not_asked(silence: Callable[[World], None]) -> None:
    async def scene(world: World) -> None:
        await world.cluster_of(a=3)
        await asyncio.sleep(30)
        silence(world)
        await world.regroup(a=1)
        await asyncio.sleep(50)
        assert await world.names() == THREE
        await asyncio.sleep(30)
        assert await world.names() == ["main-a-0"]
        await world.until_event(
            world.key("WorkerGroup", "main-a"), "SchedulerTimedOut", "main-a-1, main-a-2 end unasked"
        )
        await asyncio.sleep(30)
        assert await world.reasons("WorkerGroup", "main-a") == {"Ready": "Healthy"}
        # Another wait has a time of its own.
        await world.regroup(a=0)
        await asyncio.sleep(50)
        assert await world.names() == ["main-a-0"]

    in_virtual_time(scene)


@pytest.mark.parametrize("delay", [0.1, 0.5, 3])
def test_a_scheduler_that_answers_slowly_is_asked_once_for_each_answer(delay: float) -> None:
    async def scene(world: World) -> None:
        await world.cluster_of(a=3)
        await asyncio.sleep(30)
        world.schedulers.delay = delay
        await world.regroup(a=1)
        await asyncio.sleep(30)
        assert world.schedulers.questions == [THREE, ["main-a-1", "main-a-2"]]
        assert world.schedulers.retired == {"main-a-0": 1, "main-a-2": 1}
        assert await world.names() == ["main-a-1"]
        assert await world.reasons("WorkerGroup", "main-a") == {"Ready": "Healthy"}

    in_virtual_time(scene)


def test_schedulers_that_hang_delay_no_other_group() -> None:
    async def scene(world: World) -> None:
        assert world.stub is not None
        names = [f"other-{number}" for number in range(20)]
        for name in (*names, "main"):
            await world.cluster_of(name, a=2)
        await asyncio.sleep(60)
        for name in names:
            world.stub.hang(world.host(name))
            await world.regroup(name, a=1)
        await asyncio.sleep(1)
        await world.regroup(a=1)
        await asyncio.sleep(4)
        assert [name for name in await world.names() if name.startswith("main")] == ["main-a-1"]
        assert len(await world.names()) == 2 * len(names) + 1

    in_virtual_time(scene)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_lost_answer_ends_no_second_worker(times: int) -> None:
    """An answer to a question is lost with nothing done; one about a worker that retires leaves it retired."""

    async def scene(world: World) -> None:
        assert world.stub is not None
        await world.cluster_of(a=3)
        await asyncio.sleep(30)
        world.stub.lose_answers(world.host(), times)
        await world.regroup(a=2)
        await asyncio.sleep(60)
        stayed = await world.names()
        assert len(stayed) == 2
        assert {*world.schedulers.retired} == {*THREE} - {*stayed} == {world.schedulers.chosen[-1]}

    in_virtual_time(scene)


@pytest.mark.parametrize("refusal", [faults.server_error, faults.conflict, faults.timeout, faults.lost_reply])
def test_a_deletion_that_is_refused_asks_no_second_time(refusal: Callable[..., Any]) -> None:
    async def scene(world: World) -> None:
        world.account = faulty = FaultyCluster(
            world.cluster, [refusal(verbs=[Verb.DELETE], kind="Deployment", times=2)]
        )
        async with world.process():
            await world.cluster_of(a=3)
            await asyncio.sleep(30)
            await world.regroup(a=1)
            await asyncio.sleep(300)
        faulty.assert_all_injected()
        assert world.schedulers.questions == [THREE, ["main-a-1", "main-a-2"]]
        assert {*world.schedulers.retired} == {"main-a-0", "main-a-2"}
        assert await world.names() == ["main-a-1"]

    in_virtual_time(scene, operated=False)


def test_a_group_without_its_cluster_has_no_pods_and_asks_no_scheduler() -> None:
    async def scene(world: World) -> None:
        await world.create(world.key("WorkerGroup", "extra"), spec={"cluster": "main", "image": "w:1", "replicas": 2})
        await asyncio.sleep(20)
        assert await world.reasons("WorkerGroup", "extra") == {"Ready": "Suspended"}
        assert await world.names("Pod") == []
        await world.cluster_of()
        await asyncio.sleep(30)
        assert await world.reasons("WorkerGroup", "extra") == {"Ready": "Healthy"}
        assert len(await world.names("Pod")) == 3
        await world.cluster.delete(world.key("ComputeCluster", "main"))
        await asyncio.sleep(30)
        await world.scale(1, "extra")
        await asyncio.sleep(30)
        assert (await world.names(), await world.names("Pod")) == (["extra-0"], [])
        assert not world.schedulers.questions

    in_virtual_time(scene)


def test_names_that_were_lost_with_the_status_are_those_of_the_workers() -> None:
    async def scene(world: World) -> None:
        await world.cluster_of(a=3)
        await asyncio.sleep(30)
        await world.regroup(a=2)
        await asyncio.sleep(30)
        await world.cluster.patch(world.key("WorkerGroup", "main-a"), {"status": None}, STATUS)
        await asyncio.sleep(30)
        assert (await world.status("WorkerGroup", "main-a"))["workers"] == ["main-a-1", "main-a-2"]
        await world.regroup(a=3)
        await asyncio.sleep(30)
        assert await world.names() == ["main-a-1", "main-a-2", "main-a-3"]
        assert len(world.schedulers.questions) == 1

    in_virtual_time(scene)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"spec": {"replicas": 0}}, id="a count"),
        pytest.param({"metadata": {"ownerReferences": None}}, id="its owner"),
        pytest.param(None, id="a deletion"),
    ],
)
def test_what_another_client_does_to_a_worker_is_undone(change: Manifest | None) -> None:
    async def scene(world: World) -> None:
        await world.cluster_of(a=3)
        await asyncio.sleep(30)
        worker = world.key("Deployment", "main-a-1")
        await (world.cluster.delete(worker) if change is None else world.edit(worker, change))
        await asyncio.sleep(30)
        assert await world.names() == THREE
        assert (await world.found(worker))["spec"]["replicas"] == 1
        assert (await world.found(worker))["metadata"]["ownerReferences"][0]["name"] == "main-a"
        assert await world.reasons("WorkerGroup", "main-a") == {"Ready": "Healthy"}
        assert not world.schedulers.questions

    in_virtual_time(scene)


async def test_without_a_lifespan_as_in_a_diff_no_scheduler_is_asked_and_no_worker_ends() -> None:
    clock = VirtualClock()
    cluster = EmbeddedCluster(namespaces=["town"], now=clock.now)
    for kind in KINDS:
        await cluster.apply(kind.definition(), field_manager="user")
    world = World(cluster)
    await world.cluster_of(a=3)
    await world.scaler_of("main-a", minimum=1)
    first, *others = operators(unconnected)
    env = OwnerEnv(first, world.key("ComputeRun", "none"), cluster, clock, others=others)
    await env.settle()
    await world.edit(world.key("GroupScaler", "main-a"), {"spec": {"maximum": 2}})
    await env.settle()
    assert await world.names() == THREE
    assert await world.reasons("WorkerGroup", "main-a") == {"Ready": "Healthy", "WaitingForScheduler": "NoAnswer"}
